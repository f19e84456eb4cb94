import torch
import torch.nn as nn


class Model(nn.Module):
    """A loss: the mean of a clamped squared distance, where a mask says so, and its largest element."""

    def __init__(self, limit):
        super().__init__()
        self.limit = limit

    def forward(self, prediction, target, mask):
        error = torch.clamp((prediction - target) ** 2, max=self.limit)
        kept = torch.where(mask, error, torch.zeros_like(error))
        return kept.sum() / mask.sum(), kept.max(dim=1).values


rows = 2048
columns = 4096


def get_inputs():
    return [torch.randn(rows, columns), torch.randn(rows, columns), torch.rand(rows, columns) < 0.7]


def get_init_inputs():
    return [4.0]
