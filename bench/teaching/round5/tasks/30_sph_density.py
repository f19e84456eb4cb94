import math

import torch
import torch.nn as nn


def cubic_spline(q, h):
    """The 3-D cubic spline kernel of Monaghan for q = r / h, zero beyond 2."""
    norm = 1.0 / (math.pi * h ** 3)
    near = 1.0 - 1.5 * q ** 2 + 0.75 * q ** 3
    far = 0.25 * (2.0 - q).clamp(min=0.0) ** 3
    return norm * torch.where(q < 1.0, near, far)


class Model(nn.Module):
    """Smoothed particle hydrodynamics: densities, and pressures by Tait's equation, none below zero."""

    def __init__(self, smoothing_length, rest_density, stiffness):
        super().__init__()
        self.h = smoothing_length
        self.rest_density = rest_density
        self.stiffness = stiffness

    def forward(self, positions, masses):
        # (N, 3), (N,)
        delta = positions.unsqueeze(1) - positions.unsqueeze(0)
        q = delta.norm(dim=-1) / self.h
        density = cubic_spline(q, self.h) @ masses.abs()
        ratio = density / self.rest_density
        pressure = self.stiffness * (ratio ** 7 - 1.0)
        return density, torch.relu(pressure)


num_particles = 200


def get_inputs():
    return [torch.rand(num_particles, 3), 0.5 + torch.rand(num_particles)]


def get_init_inputs():
    return [0.2, 40.0, 2.0]
