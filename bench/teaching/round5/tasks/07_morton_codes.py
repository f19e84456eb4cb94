import torch
import torch.nn as nn


def spread_bits(v):
    """Puts two zero bits between the lowest 10 bits of v."""
    v = v & 0x3FF
    v = (v | (v << 16)) & 0x030000FF
    v = (v | (v << 8)) & 0x0300F00F
    v = (v | (v << 4)) & 0x030C30C3
    v = (v | (v << 2)) & 0x09249249
    return v


class Model(nn.Module):
    """30-bit Morton (Z-order) codes of points in a cube, and whether a point lies in it."""

    def __init__(self, low, high):
        super().__init__()
        self.low = low
        self.high = high

    def forward(self, points):
        # (B, N, 3)
        unit = (points - self.low) / (self.high - self.low)
        cells = (unit * 1024.0).clamp(0.0, 1023.0).long()
        x, y, z = cells.unbind(dim=-1)
        code = spread_bits(x) | (spread_bits(y) << 1) | (spread_bits(z) << 2)
        inside = ((points >= self.low) & (points < self.high)).all(dim=-1)
        return code, inside


batch_size = 3
num_points = 400


def get_inputs():
    return [torch.rand(batch_size, num_points, 3) * 3.0 - 1.5]


def get_init_inputs():
    return [-2.0, 2.0]
