import torch
import torch.nn as nn


class Model(nn.Module):
    """
    One step of a D2Q9 lattice Boltzmann method (BGK, the incompressible equilibrium of He and Luo with density 1):
    collide, then stream to the neighbours of a periodic grid.
    """

    def __init__(self, tau):
        super().__init__()
        self.omega = 1.0 / tau
        self.shifts = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
        self.register_buffer("velocities", torch.tensor(self.shifts, dtype=torch.get_default_dtype()))  # (9, 2): x, y
        self.register_buffer("weights", torch.tensor([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4))

    def equilibrium(self, rho, u):
        cu = torch.einsum("qd,dyx->qyx", self.velocities, u)
        usq = (u * u).sum(dim=0)
        return self.weights.view(9, 1, 1) * (rho + 3.0 * cu + 4.5 * cu ** 2 - 1.5 * usq)

    def forward(self, f):
        # (9, height, width)
        rho = f.sum(dim=0)
        u = torch.einsum("qd,qyx->dyx", self.velocities, f)
        post = f + self.omega * (self.equilibrium(rho, u) - f)
        streamed = [torch.roll(post[q], shifts=(dy, dx), dims=(0, 1)) for q, (dx, dy) in enumerate(self.shifts)]
        return torch.stack(streamed), rho, u


height = 40
width = 56


def get_inputs():
    return [torch.rand(9, height, width) * 0.2]


def get_init_inputs():
    return [0.7]
