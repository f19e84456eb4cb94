import torch
import torch.nn as nn


class Model(nn.Module):
    """Symmetric squared Chamfer distance between two batches of point clouds."""

    def __init__(self):
        super().__init__()

    def forward(self, pred, target):
        # pred: (B, N, 3), target: (B, M, 3)
        diff = pred.unsqueeze(2) - target.unsqueeze(1)
        dist = (diff ** 2).sum(dim=-1)  # (B, N, M)
        pred_to_target = dist.min(dim=2)[0]
        target_to_pred = dist.min(dim=1)[0]
        return pred_to_target.mean(dim=1) + target_to_pred.mean(dim=1)


batch_size = 4
num_pred = 512
num_target = 640
point_dim = 3


def get_inputs():
    return [
        torch.randn(batch_size, num_pred, point_dim),
        torch.randn(batch_size, num_target, point_dim),
    ]


def get_init_inputs():
    return []
