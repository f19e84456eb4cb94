import torch
import torch.nn as nn


class Model(nn.Module):
    """Rows times signs, then the orthonormal Walsh-Hadamard transform by butterflies, then a soft threshold."""

    def __init__(self, levels, threshold):
        super().__init__()
        self.levels = levels
        self.threshold = threshold
        self.register_buffer("signs", torch.randint(0, 2, (2 ** levels,)).float() * 2 - 1)

    def forward(self, x):
        # (B, 2 ** levels)
        y = x * self.signs
        for level in range(self.levels):
            half = 2 ** level
            pairs = y.view(x.shape[0], -1, 2, half)
            y = torch.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], dim=2).flatten(1)
        y = y * 2 ** (-0.5 * self.levels)
        return torch.sign(y) * (y.abs() - self.threshold).clamp(min=0)


rows = 8192
levels = 10


def get_inputs():
    return [torch.randn(rows, 2 ** levels)]


def get_init_inputs():
    return [levels, 0.1]
