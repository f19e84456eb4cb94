import torch
import torch.nn as nn


def decode(raw, min_size):
    center, size = raw.sigmoid().split(2, dim=-1)
    size = min_size + (1.0 - min_size) * size
    return torch.cat([center - 0.5 * size, center + 0.5 * size], dim=-1)


def area(boxes):
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


class Model(nn.Module):
    """
    DETR-like box losses: predictions and targets go through a sigmoid to (cx, cy, w, h), no box smaller than min_size;
    the GIoU loss of pairs, and the IoU of every prediction with every target.
    """

    def __init__(self, min_size, eps):
        super().__init__()
        self.min_size = min_size
        self.eps = eps

    def giou(self, p, t):
        inter_wh = (torch.min(p[:, 2:], t[:, 2:]) - torch.max(p[:, :2], t[:, :2])).clamp(min=0)
        inter = inter_wh.prod(dim=1)
        union = area(p) + area(t) - inter
        hull_wh = torch.max(p[:, 2:], t[:, 2:]) - torch.min(p[:, :2], t[:, :2])
        hull = hull_wh[:, 0] * hull_wh[:, 1]
        return inter / (union + self.eps) - (hull - union) / (hull + self.eps)

    def pairwise_iou(self, p, t):
        lt = torch.maximum(p[:, None, :2], t[None, :, :2])
        rb = torch.minimum(p[:, None, 2:], t[None, :, 2:])
        wh = (rb - lt).clamp(min=0)
        inter = wh[..., 0] * wh[..., 1]
        return inter / (area(p)[:, None] + area(t)[None, :] - inter + self.eps)

    def forward(self, pred, target):
        p = decode(pred, self.min_size)
        t = decode(target, self.min_size)
        return (1.0 - self.giou(p, t)).mean(), self.pairwise_iou(p, t)


num_boxes = 120


def get_inputs():
    return [torch.randn(num_boxes, 4), torch.randn(num_boxes, 4)]


def get_init_inputs():
    return [0.02, 1e-7]
