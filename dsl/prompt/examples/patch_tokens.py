import torch
import torch.nn as nn


class Model(nn.Module):
    """An image cut into patches, projected, with a class token in front and positions added, normalised."""

    def __init__(self, channels, patch, dim, tokens):
        super().__init__()
        self.patch = patch
        self.project = nn.Linear(channels * patch * patch, dim)
        self.token = nn.Parameter(torch.randn(1, 1, dim))
        self.position = nn.Parameter(torch.randn(1, tokens + 1, dim))
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        n, c, h, w = x.shape
        p = self.patch
        x = x.reshape(n, c, h // p, p, w // p, p).permute(0, 2, 4, 1, 3, 5).reshape(n, -1, c * p * p)
        x = torch.cat([self.token.expand(n, -1, -1), self.project(x)], dim=1)
        return self.norm(x + self.position)


batch = 16
channels = 3
patch = 8
side = 8
dim = 192


def get_inputs():
    return [torch.randn(batch, channels, side * patch, side * patch)]


def get_init_inputs():
    return [channels, patch, dim, side * side]
