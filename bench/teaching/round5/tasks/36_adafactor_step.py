import torch
import torch.nn as nn


def rms(x):
    return x.norm() / x.numel() ** 0.5


class Model(nn.Module):
    """
    One Adafactor step on a matrix: factored second moments (row and column means), update clipping, a step size relative
    to the weights' size. Gives the new weight and moments; nothing is changed in place.
    """

    def __init__(self, rows, cols, step, lr, decay_rate, clip_threshold):
        super().__init__()
        self.lr = lr
        self.beta2 = 1.0 - step ** decay_rate
        self.clip_threshold = clip_threshold
        self.weight = nn.Parameter(torch.randn(rows, cols) * 0.1)
        self.register_buffer("exp_avg_sq_row", torch.rand(rows) + 0.1)
        self.register_buffer("exp_avg_sq_col", torch.rand(cols) + 0.1)

    def forward(self, grad):
        sq = grad ** 2 + 1e-30
        row = self.beta2 * self.exp_avg_sq_row + (1.0 - self.beta2) * sq.mean(dim=-1)
        col = self.beta2 * self.exp_avg_sq_col + (1.0 - self.beta2) * sq.mean(dim=-2)

        r_factor = (row / row.mean(dim=-1, keepdim=True)).rsqrt().unsqueeze(-1)
        c_factor = col.rsqrt().unsqueeze(-2)
        update = grad * r_factor * c_factor
        update = update / (rms(update) / self.clip_threshold).clamp(min=1.0)

        step_size = self.lr * rms(self.weight).clamp(min=1e-3)
        return self.weight - step_size * update, row, col


rows = 60
cols = 84


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return [rows, cols, 10, 0.05, -0.8, 1.0]
