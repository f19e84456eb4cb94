import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Bilateral filter of colour images: the range weight comes from the distance of colours, borders are reflected."""

    def __init__(self, kernel_size, sigma_space, sigma_color):
        super().__init__()
        self.kernel_size = kernel_size
        self.pad = kernel_size // 2
        self.sigma_color = sigma_color
        r = torch.arange(kernel_size, dtype=torch.get_default_dtype()) - self.pad
        space = torch.exp(-(r[:, None] ** 2 + r[None, :] ** 2) / (2 * sigma_space ** 2))
        self.register_buffer("space", space.flatten())

    def forward(self, img):
        B, C, H, W = img.shape
        padded = F.pad(img, [self.pad] * 4, mode="reflect")
        patches = F.unfold(padded, self.kernel_size).view(B, C, self.kernel_size ** 2, H, W)
        color = (patches - img.unsqueeze(2)).pow(2).sum(dim=1, keepdim=True)
        weight = torch.exp(-color / (2 * self.sigma_color ** 2)) * self.space.view(1, 1, -1, 1, 1)
        return (weight * patches).sum(dim=2) / weight.sum(dim=2)


batch_size = 2
channels = 3
height = 24
width = 30


def get_inputs():
    return [torch.rand(batch_size, channels, height, width)]


def get_init_inputs():
    return [5, 1.5, 0.4]
