import torch
import torch.nn as nn


class Model(nn.Module):
    """Greedy non-maximum suppression of boxes that come best first: a box stays unless one that stays overlaps it by more
    than half (intersection over union) and has its class. Gives what stays, and how many."""

    def forward(self, boxes, classes):
        # boxes (B, N, 4) int32: x, y, width, height; classes (B, N)
        low, high = boxes[..., :2], boxes[..., :2] + boxes[..., 2:]
        size = torch.minimum(high[:, :, None], high[:, None]) - torch.maximum(low[:, :, None], low[:, None])
        inter = size.clamp(min=0).prod(dim=-1)
        area = boxes[..., 2] * boxes[..., 3]
        union = area[:, :, None] + area[:, None] - inter
        over = (2 * inter > union) & (classes[:, :, None] == classes[:, None])
        keep = torch.ones(boxes.shape[:2], dtype=torch.bool, device=boxes.device)
        place = torch.arange(boxes.shape[1], device=boxes.device)
        for i in range(boxes.shape[1]):
            keep = keep & ~(over[:, i] & keep[:, i:i + 1] & (place > i))
        return keep, keep.sum(dim=1)


batch_size = 32
num_boxes = 512
num_classes = 4


def get_inputs():
    corner = torch.randint(0, 200, (batch_size, num_boxes, 2), dtype=torch.int32)
    size = torch.randint(20, 60, (batch_size, num_boxes, 2), dtype=torch.int32)
    return [torch.cat([corner, size], dim=-1), torch.randint(0, num_classes, (batch_size, num_boxes))]


def get_init_inputs():
    return []
