import torch
import torch.nn as nn


class Model(nn.Module):
    """Steps of the Gray-Scott reaction and diffusion on a periodic grid, with the nine-point Laplacian."""

    def __init__(self, du, dv, feed, kill, num_steps):
        super().__init__()
        self.du, self.dv, self.feed, self.kill, self.num_steps = du, dv, feed, kill, num_steps

    def laplacian(self, w):
        near = sum(torch.roll(w, s, d) for s in (1, -1) for d in (-1, -2))
        corners = sum(torch.roll(w, (s, r), (-1, -2)) for s in (1, -1) for r in (1, -1))
        return 0.2 * near + 0.05 * corners - w

    def forward(self, u, v):
        for _ in range(self.num_steps):
            reaction = u * v * v
            u, v = (u + self.du * self.laplacian(u) - reaction + self.feed * (1 - u),
                    v + self.dv * self.laplacian(v) + reaction - (self.feed + self.kill) * v)
        return u, v


batch_size = 4
height = 1024
width = 1000
num_steps = 4


def get_inputs():
    return [torch.rand(batch_size, height, width), torch.rand(batch_size, height, width) * 0.5]


def get_init_inputs():
    return [0.16, 0.08, 0.035, 0.06, num_steps]
