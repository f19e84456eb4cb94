"""A vision transformer: patches, then blocks of LayerNorm, attention and an MLP with GELU."""
import torch
from torch import nn
from torch.nn import functional as F

SIZES = {"small": dict(image=32, patch=8, width=64, inner=128, layers=2, heads=4, classes=10),
         "large": dict(image=224, patch=16, width=768, inner=3072, layers=12, heads=12, classes=1000)}


class Mlp(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Core(nn.Module):
    """Attention of all to all: qkv [B, S, 3*H*D] to [B, S, H*D]."""

    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, qkv):
        batch, length, width = qkv.shape
        q, k, v = qkv.view(batch, length, 3, self.heads, width // 3 // self.heads).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width // 3)


class Block(nn.Module):
    def __init__(self, width, inner, heads):
        super().__init__()
        self.norm1, self.qkv, self.core = nn.LayerNorm(width), nn.Linear(width, 3 * width), Core(heads)
        self.out, self.norm2, self.mlp = nn.Linear(width, width), nn.LayerNorm(width), Mlp(width, inner)

    def forward(self, x):
        x = x + self.out(self.core(self.qkv(self.norm1(x))))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self, image, patch, width, inner, layers, heads, classes):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.places = nn.Parameter(torch.randn((image // patch) ** 2, width) * 0.1)
        self.layers = nn.ModuleList(Block(width, inner, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        x = self.patches(images).flatten(2).mT + self.places
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))


size = SIZES["small"]


def get_inputs():
    return [torch.randn(2, 3, size["image"], size["image"])]


def get_init_inputs():
    return dict(size)
