import torch
import torch.nn as nn


def haar_2d(x):
    """One level: low and the three details, each half as high and wide."""
    a = x[:, :, 0::2, 0::2]
    b = x[:, :, 0::2, 1::2]
    c = x[:, :, 1::2, 0::2]
    d = x[:, :, 1::2, 1::2]
    ll = (a + b + c + d) / 2
    lh = (a - b + c - d) / 2
    hl = (a + b - c - d) / 2
    hh = (a - b - c + d) / 2
    return ll, (lh, hl, hh)


def tile(ll, details):
    lh, hl, hh = details
    return torch.cat([torch.cat([ll, lh], dim=3), torch.cat([hl, hh], dim=3)], dim=2)


class Model(nn.Module):
    """Two levels of the orthonormal 2-D Haar transform in the pyramid layout, details shrunk by a soft threshold."""

    def __init__(self, threshold):
        super().__init__()
        self.threshold = threshold

    def shrink(self, details):
        return tuple(torch.sign(d) * torch.relu(d.abs() - self.threshold) for d in details)

    def forward(self, x):
        ll1, details1 = haar_2d(x)
        ll2, details2 = haar_2d(ll1)
        return tile(tile(ll2, self.shrink(details2)), self.shrink(details1))


batch_size = 3
channels = 2
blocks_h = 9
blocks_w = 12


def get_inputs():
    return [torch.randn(batch_size, channels, 4 * blocks_h, 4 * blocks_w)]


def get_init_inputs():
    return [0.3]
