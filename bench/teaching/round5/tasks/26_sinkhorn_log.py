import math

import torch
import torch.nn as nn


class Model(nn.Module):
    """Entropic optimal transport between two weighted point clouds: a fixed number of Sinkhorn steps on potentials."""

    def __init__(self, eps, num_iters):
        super().__init__()
        self.eps = eps
        self.num_iters = num_iters

    def forward(self, x, y, a):
        # x: (B, N, D), y: (B, M, D), a: (B, N) sums to one; y's points weigh the same
        cost = torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
        cost = cost / cost.amax(dim=(1, 2), keepdim=True).clamp(min=1e-8)
        log_a = torch.log(a + 1e-12)
        log_b = -math.log(y.shape[1])

        f = torch.zeros_like(log_a)
        g = torch.zeros_like(y[:, :, 0])
        for _ in range(self.num_iters):
            f = self.eps * (log_a - torch.logsumexp((g[:, None, :] - cost) / self.eps, dim=2))
            g = self.eps * (log_b - torch.logsumexp((f[:, :, None] - cost) / self.eps, dim=1))
        plan = torch.exp((f[:, :, None] + g[:, None, :] - cost) / self.eps)
        return (plan * cost).sum(dim=(1, 2)), plan


batch_size = 3
num_x = 24
num_y = 30
dim = 3
num_iters = 8


def get_inputs():
    return [
        torch.randn(batch_size, num_x, dim),
        torch.randn(batch_size, num_y, dim),
        torch.softmax(torch.randn(batch_size, num_x), dim=-1),
    ]


def get_init_inputs():
    return [0.1, num_iters]
