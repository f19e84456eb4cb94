import torch
import torch.nn as nn


class Model(nn.Module):
    """RoI align with one bilinear sample in the middle of each bin (aligned=False, sampling_ratio=1)."""

    def __init__(self, output_size, spatial_scale):
        super().__init__()
        self.output_size = output_size
        self.spatial_scale = spatial_scale

    def axis(self, start, end, size):
        """Sample positions of each RoI on one axis: (low, high, fraction, inside), each (R, P)."""
        P = self.output_size
        length = (end - start).clamp(min=1.0)
        bins = (torch.arange(P, device=start.device, dtype=start.dtype) + 0.5) / P
        pos = start[:, None] + length[:, None] * bins
        inside = (pos >= -1.0) & (pos <= size)
        pos = pos.clamp(0.0, size - 1.0)
        low = pos.long()
        high = (low + 1).clamp(max=size - 1)
        return low, high, pos - low, inside

    def forward(self, feats, rois, roi_batch):
        # feats: (B, C, H, W), rois: (R, 4) as x1 y1 x2 y2, roi_batch: (R,)
        H, W = feats.shape[-2:]
        x1, y1, x2, y2 = (rois * self.spatial_scale).unbind(dim=1)
        y_lo, y_hi, fy, in_y = self.axis(y1, y2, H)
        x_lo, x_hi, fx, in_x = self.axis(x1, x2, W)

        def at(y, x):
            return feats[roi_batch[:, None, None], :, y[:, :, None], x[:, None, :]]  # (R, P, P, C)

        fy, fx = fy[:, :, None, None], fx[:, None, :, None]
        top = at(y_lo, x_lo) * (1 - fx) + at(y_lo, x_hi) * fx
        bottom = at(y_hi, x_lo) * (1 - fx) + at(y_hi, x_hi) * fx
        out = top * (1 - fy) + bottom * fy
        inside = in_y[:, :, None] & in_x[:, None, :]
        return (out * inside.unsqueeze(-1)).permute(0, 3, 1, 2)


batch_size = 3
channels = 12
height = 20
width = 24
num_rois = 18
output_size = 5


def get_inputs():
    image = 2.0 * torch.tensor([width, height])
    corner = (torch.rand(num_rois, 2) * 0.9 - 0.1) * image
    extent = torch.rand(num_rois, 2) * 0.6 * image
    return [
        torch.randn(batch_size, channels, height, width),
        torch.cat([corner, corner + extent], dim=1),
        torch.randint(0, batch_size, (num_rois,)),
    ]


def get_init_inputs():
    return [output_size, 0.5]
