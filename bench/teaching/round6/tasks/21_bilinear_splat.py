import torch
import torch.nn as nn


class Model(nn.Module):
    """Forward warp: every pixel adds its colours, weighted, to the four pixels around the place that the flow moves it to;
    corners outside are dropped. Colours are then divided by the weights that arrived."""

    def __init__(self, eps):
        super().__init__()
        self.eps = eps

    def forward(self, image, flow, importance):
        # image (B, C, H, W), flow (B, 2, H, W) as (dx, dy), importance (B, H, W)
        B, C, H, W = image.shape
        x = torch.arange(W, device=image.device) + flow[:, 0]
        y = torch.arange(H, device=image.device)[:, None] + flow[:, 1]
        x0, y0 = torch.floor(x), torch.floor(y)
        strength = torch.exp(importance.clamp(-8, 8))
        colours = torch.zeros(B * H * W, C, dtype=image.dtype, device=image.device)
        weights = torch.zeros(B * H * W, dtype=image.dtype, device=image.device)
        source = image.permute(0, 2, 3, 1).reshape(-1, C)
        batch = torch.arange(B, device=image.device)[:, None, None]
        for dy in (0, 1):
            for dx in (0, 1):
                cx, cy = x0 + dx, y0 + dy
                w = (1 - (x - cx).abs()) * (1 - (y - cy).abs()) * strength
                inside = (cx >= 0) & (cx < W) & (cy >= 0) & (cy < H)
                w = torch.where(inside, w, torch.zeros_like(w)).reshape(-1)
                to = (batch * H + cy.clamp(0, H - 1).long()) * W + cx.clamp(0, W - 1).long()
                colours = colours.index_add(0, to.reshape(-1), source * w[:, None])
                weights = weights.index_add(0, to.reshape(-1), w)
        out = colours / (weights[:, None] + self.eps)
        return out.view(B, H, W, C).permute(0, 3, 1, 2).contiguous(), weights.view(B, H, W)


batch_size = 8
channels = 3
height = 256
width = 448


def get_inputs():
    return [
        torch.rand(batch_size, channels, height, width),
        torch.randn(batch_size, 2, height, width) * 4,
        torch.randn(batch_size, height, width),
    ]


def get_init_inputs():
    return [1e-3]
