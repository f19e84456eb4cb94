import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Deformable attention on one image: every query and head reads a few places between pixels (bilinear, zero outside) and
    weights them by a softmax."""

    def forward(self, value, places, logits):
        # value (B, H, W, heads, D), places (B, Q, heads, P, 2) as (x, y) in 0 .. 1, logits (B, Q, heads, P)
        B, H, W, heads, D = value.shape
        Q, P = places.shape[1], places.shape[3]
        maps = value.permute(0, 3, 4, 1, 2).reshape(B * heads, D, H, W)
        grid = (2 * places - 1).transpose(1, 2).reshape(B * heads, Q, P, 2)
        read = F.grid_sample(maps, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
        weights = logits.softmax(dim=-1).transpose(1, 2).reshape(B * heads, 1, Q, P)
        out = (read * weights).sum(dim=-1)  # (B * heads, D, Q)
        return out.view(B, heads * D, Q).transpose(1, 2).contiguous()


batch_size = 4
height = 64
width = 80
num_heads = 8
head_dim = 32
queries = 4096
points = 4


def get_inputs():
    return [
        torch.randn(batch_size, height, width, num_heads, head_dim),
        torch.rand(batch_size, queries, num_heads, points, 2) * 1.2 - 0.1,
        torch.randn(batch_size, queries, num_heads, points),
    ]


def get_init_inputs():
    return []
