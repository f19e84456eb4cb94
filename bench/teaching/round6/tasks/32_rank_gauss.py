import torch
import torch.nn as nn


class Model(nn.Module):
    """Replaces each number of a row by the normal quantile of its rank in the row; equal numbers share the mean of
    their ranks."""

    def forward(self, x):
        N = x.shape[1]
        ordered = x.sort(dim=1).values.contiguous()
        below = torch.searchsorted(ordered, x, right=False)
        up_to = torch.searchsorted(ordered, x, right=True)
        rank = (below + up_to).to(x.dtype) * 0.5
        return torch.erfinv(2 * rank / N - 1) * 2 ** 0.5


rows = 4096
columns = 1024


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
