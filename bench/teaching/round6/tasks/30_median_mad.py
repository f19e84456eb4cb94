import torch
import torch.nn as nn


class Model(nn.Module):
    """Rows standardised robustly: by their median (the lower one of an even number) and the median of absolute
    deviations from it, then clipped."""

    def __init__(self, limit):
        super().__init__()
        self.limit = limit

    def forward(self, x):
        middle = x.median(dim=-1, keepdim=True).values
        off = x - middle
        mad = off.abs().median(dim=-1, keepdim=True).values
        return (off / (1.4826 * mad + 1e-3)).clamp(-self.limit, self.limit), middle.squeeze(-1), mad.squeeze(-1)


rows = 8192
columns = 1000


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return [3.0]
