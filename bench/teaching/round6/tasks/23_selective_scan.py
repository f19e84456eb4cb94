import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Selective state-space scan with a gate: h_t = exp(dt_t A) h_{t-1} + dt_t B_t x_t, y_t = C_t h_t + D x_t."""

    def __init__(self, channels, states):
        super().__init__()
        self.a_log = nn.Parameter(torch.rand(channels, states))
        self.d = nn.Parameter(torch.randn(channels))
        self.dt_bias = nn.Parameter(torch.randn(channels) - 2)

    def forward(self, x, z, dt, b, c):
        # x, z, dt (B, T, channels), b, c (B, T, states)
        a = -torch.exp(self.a_log)
        dt = F.softplus(dt + self.dt_bias)
        h = torch.zeros(x.shape[0], *a.shape, dtype=x.dtype, device=x.device)
        steps = []
        for t in range(x.shape[1]):
            h = torch.exp(dt[:, t, :, None] * a) * h + (dt[:, t] * x[:, t])[:, :, None] * b[:, t, None, :]
            steps.append((h * c[:, t, None, :]).sum(dim=-1))
        y = torch.stack(steps, dim=1) + self.d * x
        return y * F.silu(z), h


batch_size = 4
seq_len = 256
channels = 1024
states = 16


def get_inputs():
    return [torch.randn(batch_size, seq_len, channels) for _ in range(3)] + [
        torch.randn(batch_size, seq_len, states) for _ in range(2)]


def get_init_inputs():
    return [channels, states]
