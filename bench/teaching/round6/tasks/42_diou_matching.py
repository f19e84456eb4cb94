import torch
import torch.nn as nn


class Model(nn.Module):
    """Distance-IoU of every prediction with every target (centre and size), and for each target the best value and the
    sum of the values above a threshold, softly counted."""

    def __init__(self, threshold, sharpness):
        super().__init__()
        self.threshold = threshold
        self.sharpness = sharpness

    def forward(self, predictions, targets):
        # (B, N, 4), (B, M, 4): cx, cy, and the logarithms of width and height
        p_size, t_size = torch.exp(predictions[..., 2:].clamp(-4, 2)), torch.exp(targets[..., 2:].clamp(-4, 2))
        p_low, p_high = predictions[..., :2] - p_size / 2, predictions[..., :2] + p_size / 2
        t_low, t_high = targets[..., :2] - t_size / 2, targets[..., :2] + t_size / 2
        p_low, p_high, t_low, t_high = p_low[:, :, None], p_high[:, :, None], t_low[:, None], t_high[:, None]
        inter = (torch.minimum(p_high, t_high) - torch.maximum(p_low, t_low)).clamp(min=0).prod(dim=-1)
        union = p_size.prod(dim=-1)[:, :, None] + t_size.prod(dim=-1)[:, None] - inter
        around = torch.maximum(p_high, t_high) - torch.minimum(p_low, t_low)
        centres = (predictions[:, :, None, :2] - targets[:, None, :, :2]).pow(2).sum(dim=-1)
        diou = inter / union - centres / around.pow(2).sum(dim=-1)
        soft = torch.sigmoid(self.sharpness * (diou - self.threshold))
        return diou, diou.amax(dim=1), soft.sum(dim=1)


batch_size = 8
num_predictions = 4096
num_targets = 256


def get_inputs():
    return [torch.randn(batch_size, num_predictions, 4), torch.randn(batch_size, num_targets, 4)]


def get_init_inputs():
    return [0.3, 10.0]
