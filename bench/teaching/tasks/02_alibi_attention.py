import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def get_alibi_slopes(n_heads):
    def pow2_slopes(n):
        start = 2.0 ** (-(2.0 ** -(math.log2(n) - 3)))
        return [start * start ** i for i in range(n)]

    if math.log2(n_heads).is_integer():
        return pow2_slopes(n_heads)
    closest = 2 ** math.floor(math.log2(n_heads))
    extra = pow2_slopes(2 * closest)[0::2][: n_heads - closest]
    return pow2_slopes(closest) + extra


class Model(nn.Module):
    """Causal multi-head attention with linear biases (ALiBi) in place of positions."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        assert d_model % n_heads == 0
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.scale = self.d_head ** -0.5
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        slopes = torch.tensor(get_alibi_slopes(n_heads), dtype=torch.float32)
        self.register_buffer("slopes", slopes.view(1, n_heads, 1, 1))

    def build_bias(self, T, device):
        pos = torch.arange(T, device=device)
        distance = (pos[None, :] - pos[:, None]).float()  # j - i, <= 0 in the past
        bias = self.slopes * distance[None, None]
        causal = pos[None, :] > pos[:, None]
        return bias.masked_fill(causal, float("-inf"))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.qkv(x).split(C, dim=2)
        q = q.view(B, T, self.n_heads, self.d_head).transpose(1, 2)
        k = k.view(B, T, self.n_heads, self.d_head).transpose(1, 2)
        v = v.view(B, T, self.n_heads, self.d_head).transpose(1, 2)

        att = (q @ k.transpose(-1, -2)) * self.scale
        att = att + self.build_bias(T, x.device)
        att = F.softmax(att, dim=-1)
        y = (att @ v).transpose(1, 2).reshape(B, T, C)
        return self.out(y)


batch_size = 4
seq_len = 160
d_model = 192
n_heads = 12


def get_inputs():
    return [torch.randn(batch_size, seq_len, d_model)]


def get_init_inputs():
    return [d_model, n_heads]
