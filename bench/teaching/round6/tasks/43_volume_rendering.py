import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Composites samples along rays: opacity from density and step, transmittance as the product before each sample; gives
    colours on a white background, depths and the weights."""

    def forward(self, density, colour, depth):
        # density (R, S), colour (R, S, 3), depth (R, S + 1) ascending edges of the samples
        step = depth[:, 1:] - depth[:, :-1]
        alpha = 1 - torch.exp(-F.softplus(density) * step)
        before = torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha[:, :-1] + 1e-10], dim=1)
        weights = alpha * torch.cumprod(before, dim=1)
        total = weights.sum(dim=1)
        rgb = (weights[..., None] * torch.sigmoid(colour)).sum(dim=1) + (1 - total)[:, None]
        middle = 0.5 * (depth[:, 1:] + depth[:, :-1])
        return rgb, (weights * middle).sum(dim=1) / (total + 1e-6), weights


rays = 32768
samples = 128


def get_inputs():
    depth = torch.rand(rays, samples + 1).cumsum(dim=1) * 0.05
    return [torch.randn(rays, samples), torch.randn(rays, samples, 3), depth]


def get_init_inputs():
    return []
