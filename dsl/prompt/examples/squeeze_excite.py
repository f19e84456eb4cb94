import torch
import torch.nn as nn


class Model(nn.Module):
    """A depthwise convolution whose channels are weighted by what the whole image says."""

    def __init__(self, channels, reduced):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 5, padding=2, groups=channels)
        self.squeeze = nn.Linear(channels, reduced)
        self.excite = nn.Linear(reduced, channels)

    def forward(self, x):
        h = nn.functional.hardswish(self.depthwise(x))
        s = torch.sigmoid(self.excite(torch.relu(self.squeeze(h.mean(dim=(2, 3))))))
        return h * s[:, :, None, None]


batch = 16
channels = 96
reduced = 24
height = 56


def get_inputs():
    return [torch.randn(batch, channels, height, height)]


def get_init_inputs():
    return [channels, reduced]
