import torch
import torch.nn as nn


class Model(nn.Module):
    """Explicit Euler steps of the heat equation with a source on a 3-D grid; the border keeps its values."""

    def __init__(self, alpha, dt, num_steps):
        super().__init__()
        self.alpha = alpha
        self.dt = dt
        self.num_steps = num_steps

    def laplacian(self, u):
        center = u[:, 1:-1, 1:-1, 1:-1]
        return (
            u[:, 2:, 1:-1, 1:-1] + u[:, :-2, 1:-1, 1:-1]
            + u[:, 1:-1, 2:, 1:-1] + u[:, 1:-1, :-2, 1:-1]
            + u[:, 1:-1, 1:-1, 2:] + u[:, 1:-1, 1:-1, :-2]
            - 6.0 * center
        )

    def forward(self, u, source):
        u = u.clone()
        inner = source[:, 1:-1, 1:-1, 1:-1]
        for _ in range(self.num_steps):
            step = self.alpha * self.laplacian(u) + inner
            u[:, 1:-1, 1:-1, 1:-1] += self.dt * step
        return u


batch_size = 2
depth = 12
height = 14
width = 18
num_steps = 5


def get_inputs():
    return [
        torch.rand(batch_size, depth, height, width),
        torch.randn(batch_size, depth, height, width),
    ]


def get_init_inputs():
    return [0.6, 0.2, num_steps]
