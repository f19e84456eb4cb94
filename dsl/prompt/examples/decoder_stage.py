import torch
import torch.nn as nn


class Model(nn.Module):
    """A transposed convolution, a group norm, an activation, a learned scale for each channel."""

    def __init__(self, channels, width, groups):
        super().__init__()
        self.up = nn.ConvTranspose2d(channels, width, 4, stride=2, padding=1)
        self.norm = nn.GroupNorm(groups, width)
        self.scale = nn.Parameter(torch.rand(width, 1, 1))

    def forward(self, x):
        h = torch.nn.functional.leaky_relu(self.norm(self.up(x)), negative_slope=0.2)
        return torch.tanh(h * self.scale)


batch = 8
channels = 64
width = 32
groups = 8
height = 32


def get_inputs():
    return [torch.randn(batch, channels, height, height)]


def get_init_inputs():
    return [channels, width, groups]
