import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A gated feed-forward layer with a residual."""

    def __init__(self, dim, hidden):
        super().__init__()
        self.gate = nn.Linear(dim, hidden, bias=False)
        self.up = nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim)

    def forward(self, x):
        return x + self.down(F.silu(self.gate(x)) * self.up(x))


batch = 64
tokens = 128
dim = 512
hidden = 1408


def get_inputs():
    return [torch.randn(batch, tokens, dim)]


def get_init_inputs():
    return [dim, hidden]
