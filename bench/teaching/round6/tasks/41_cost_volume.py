import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Correlation of two feature maps for all displacements up to a radius (zero outside), scaled by the number of channels, with a
    leaky ReLU."""

    def __init__(self, radius):
        super().__init__()
        self.radius = radius

    def forward(self, first, second):
        # (B, C, H, W) -> (B, (2 r + 1)^2, H, W)
        _, C, H, W = first.shape
        r = self.radius
        padded = F.pad(second, (r, r, r, r))
        costs = [(first * padded[:, :, dy:dy + H, dx:dx + W]).sum(dim=1) / C
                 for dy in range(2 * r + 1) for dx in range(2 * r + 1)]
        return F.leaky_relu(torch.stack(costs, dim=1), 0.1)


batch_size = 4
channels = 64
height = 96
width = 128
radius = 4


def get_inputs():
    return [torch.randn(batch_size, channels, height, width), torch.randn(batch_size, channels, height, width)]


def get_init_inputs():
    return [radius]
