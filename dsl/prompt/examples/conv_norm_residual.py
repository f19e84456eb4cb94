import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Two convolutions with batch norms and a shortcut that has a convolution of its own."""

    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.shortcut = nn.Sequential(nn.Conv2d(channels, width, 1, stride=stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(h)) + self.shortcut(x))


batch = 16
channels = 32
width = 64
stride = 2
height = 64


def get_inputs():
    return [torch.randn(batch, channels, height, height)]


def get_init_inputs():
    return [channels, width, stride]
