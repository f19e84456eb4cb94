import torch
import torch.nn as nn


class Model(nn.Module):
    """Sparse matrix (compressed rows) times dense, rows divided by the sum of their absolute values, then a dense
    layer."""

    def __init__(self, dim, out_dim):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_dim, dim) * dim ** -0.5)

    def forward(self, row_start, columns, values, x):
        # row_start (R + 1,), columns, values (Z,), x (C, D)
        R = row_start.shape[0] - 1
        row = torch.searchsorted(row_start, torch.arange(columns.shape[0], device=x.device), right=True) - 1
        y = torch.zeros(R, x.shape[1], dtype=x.dtype, device=x.device)
        y = y.index_add(0, row, values[:, None] * x[columns])
        total = torch.zeros(R, dtype=x.dtype, device=x.device).index_add(0, row, values.abs())
        y = y / (total + 1e-2)[:, None]
        return y @ self.weight.t()


num_rows = 32768
num_columns = 30000
nonzeros = 260000
dim = 64
out_dim = 64


def get_inputs():
    cuts = torch.randint(0, nonzeros + 1, (num_rows - 1,)).sort().values
    row_start = torch.cat([cuts.new_zeros(1), cuts, cuts.new_full((1,), nonzeros)])
    return [row_start, torch.randint(0, num_columns, (nonzeros,)), torch.randn(nonzeros), torch.randn(num_columns, dim)]


def get_init_inputs():
    return [dim, out_dim]
