import torch
import torch.nn as nn


class Model(nn.Module):
    """Renders 2-D Gaussians that come in order of depth onto an image: opacities are clipped, each pixel blends colours
    from front to back."""

    def __init__(self, height, width):
        super().__init__()
        self.height = height
        self.width = width

    def forward(self, centre, log_scale, angle, colour, opacity):
        # centre (G, 2) in pixels, log_scale (G, 2), angle (G,), colour (G, 3), opacity (G,)
        y = torch.arange(self.height, device=centre.device).to(centre.dtype)[:, None]
        x = torch.arange(self.width, device=centre.device).to(centre.dtype)[None, :]
        cos, sin = torch.cos(angle), torch.sin(angle)
        inverse = torch.exp(-log_scale.clamp(-2, 5))
        alpha = torch.sigmoid(opacity)
        image = torch.zeros(3, self.height, self.width, dtype=centre.dtype, device=centre.device)
        left = torch.ones(self.height, self.width, dtype=centre.dtype, device=centre.device)
        for g in range(centre.shape[0]):
            dx, dy = x - centre[g, 0], y - centre[g, 1]
            u = (cos[g] * dx + sin[g] * dy) * inverse[g, 0]
            v = (cos[g] * dy - sin[g] * dx) * inverse[g, 1]
            a = (alpha[g] * torch.exp(-0.5 * (u * u + v * v))).clamp(max=0.99)
            image = image + (left * a) * torch.sigmoid(colour[g])[:, None, None]
            left = left * (1 - a)
        return image, 1 - left


gaussians = 128
height = 512
width = 768


def get_inputs():
    return [
        torch.rand(gaussians, 2) * torch.tensor([float(width), float(height)]),
        torch.rand(gaussians, 2) * 2 + 1.5,
        torch.rand(gaussians) * 3,
        torch.randn(gaussians, 3),
        torch.randn(gaussians),
    ]


def get_init_inputs():
    return [height, width]
