import torch
import torch.nn as nn


class Model(nn.Module):
    """A linear recurrence for each channel, with a decay that depends on the input, step by step."""

    def __init__(self, dim):
        super().__init__()
        self.decay = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        a = torch.sigmoid(self.decay(x))
        h = torch.zeros_like(x[:, 0])
        states = []
        for t in range(x.size(1)):
            h = a[:, t] * h + (1 - a[:, t]) * x[:, t]
            states.append(h)
        return self.norm(torch.stack(states, dim=1))


batch = 16
steps = 256
dim = 256


def get_inputs():
    return [torch.randn(batch, steps, dim)]


def get_init_inputs():
    return [dim]
