import torch
import torch.nn as nn
import torch.nn.functional as F


class WeightNormLinear(nn.Module):
    """w = g * v / ||v||, one norm per output row."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.v = nn.Parameter(torch.randn(out_features, in_features) * 0.05)
        self.g = nn.Parameter(1.0 + 0.1 * torch.randn(out_features, 1))
        self.bias = nn.Parameter(0.02 * torch.randn(out_features))

    def forward(self, x):
        w = self.g * self.v / self.v.norm(p=2, dim=1, keepdim=True)
        return F.linear(x, w, self.bias)


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(1.0 + 0.1 * torch.randn(dim))

    def forward(self, x):
        rms = torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return x * rms * self.weight


class Model(nn.Module):
    """Weight-normalised linear -> RMSNorm -> tanh soft cap."""

    def __init__(self, in_features, out_features, cap):
        super().__init__()
        self.linear = WeightNormLinear(in_features, out_features)
        self.norm = RMSNorm(out_features)
        self.cap = cap

    def forward(self, x):
        x = self.norm(self.linear(x))
        return self.cap * torch.tanh(x / self.cap)


batch_size = 256
in_features = 512
out_features = 1024
cap = 2


def get_inputs():
    return [torch.randn(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, cap]
