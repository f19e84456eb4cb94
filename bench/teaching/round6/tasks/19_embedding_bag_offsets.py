import torch
import torch.nn as nn


class Model(nn.Module):
    """Weighted sums of rows of a table over bags: bag b has the entries offsets[b] .. offsets[b + 1] - 1; bags may be empty.
    Gives sums and, for each bag, the elementwise maximum of its rows without weights (zero for an empty bag)."""

    def __init__(self, rows, dim):
        super().__init__()
        self.table = nn.Parameter(torch.randn(rows, dim))

    def forward(self, indices, weights, offsets):
        # indices, weights (N,), offsets (B + 1,) from 0 to N
        B = offsets.shape[0] - 1
        rows = self.table[indices]
        bag = torch.searchsorted(offsets, torch.arange(indices.shape[0], device=indices.device), right=True) - 1
        sums = torch.zeros(B, rows.shape[1], dtype=rows.dtype, device=rows.device)
        sums = sums.index_add(0, bag, rows * weights[:, None])
        largest = torch.zeros(B, rows.shape[1], dtype=rows.dtype, device=rows.device)
        largest = largest.scatter_reduce(0, bag[:, None].expand_as(rows), rows, reduce="amax", include_self=False)
        return sums, largest


table_rows = 50000
dim = 128
bags = 8192
entries = 100000


def get_inputs():
    cuts = torch.randint(0, entries + 1, (bags - 1,)).sort().values
    offsets = torch.cat([cuts.new_zeros(1), cuts, cuts.new_full((1,), entries)])
    return [torch.randint(0, table_rows, (entries,)), torch.randn(entries), offsets]


def get_init_inputs():
    return [table_rows, dim]
