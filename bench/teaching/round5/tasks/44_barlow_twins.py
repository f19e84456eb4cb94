import torch
import torch.nn as nn


def off_diagonal(x):
    """A flattened view of all elements of a square matrix that are not on its diagonal."""
    n, m = x.shape
    assert n == m
    return x.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten()


class Model(nn.Module):
    """Barlow Twins: projector with batch norm on both views, cross-correlation of its outputs towards the identity."""

    def __init__(self, in_dim, hidden_dim, proj_dim, lambd):
        super().__init__()
        self.lambd = lambd
        self.projector = nn.Sequential(
            nn.Linear(in_dim, hidden_dim, bias=False),
            nn.BatchNorm1d(hidden_dim),
            nn.ReLU(inplace=True),
            nn.Linear(hidden_dim, proj_dim, bias=False),
        )
        self.bn = nn.BatchNorm1d(proj_dim, affine=False)

    def forward(self, y1, y2):
        z1 = self.projector(y1)
        z2 = self.projector(y2)
        c = self.bn(z1).T @ self.bn(z2)
        c = c / y1.shape[0]
        on_diag = torch.diagonal(c).add(-1).pow(2).sum()
        off_diag = off_diagonal(c).pow(2).sum()
        return on_diag + self.lambd * off_diag


batch_size = 48
in_dim = 32
hidden_dim = 40
proj_dim = 24


def get_inputs():
    y = torch.randn(batch_size, in_dim)
    return [y + 0.3 * torch.randn(batch_size, in_dim), y + 0.3 * torch.randn(batch_size, in_dim)]


def get_init_inputs():
    return [in_dim, hidden_dim, proj_dim, 0.0051]
