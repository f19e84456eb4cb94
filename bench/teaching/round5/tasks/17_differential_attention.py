import math

import torch
import torch.nn as nn


class Model(nn.Module):
    """Differential attention: the difference of two causal softmax maps, a norm for each head, then the output layer."""

    def __init__(self, embed_dim, num_heads, depth):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads // 2
        self.lambda_init = 0.8 - 0.6 * math.exp(-0.3 * depth)
        self.q_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.k_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.v_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.lambda_q1 = nn.Parameter(torch.randn(self.head_dim) * 0.1)
        self.lambda_k1 = nn.Parameter(torch.randn(self.head_dim) * 0.1)
        self.lambda_q2 = nn.Parameter(torch.randn(self.head_dim) * 0.1)
        self.lambda_k2 = nn.Parameter(torch.randn(self.head_dim) * 0.1)
        self.subln_weight = nn.Parameter(torch.ones(2 * self.head_dim))

    def forward(self, x):
        B, T, C = x.shape
        H, d = self.num_heads, self.head_dim
        q = self.q_proj(x).view(B, T, 2 * H, d).transpose(1, 2) * d ** -0.5
        k = self.k_proj(x).view(B, T, 2 * H, d).transpose(1, 2)
        v = self.v_proj(x).view(B, T, H, 2 * d).transpose(1, 2)

        mask = torch.triu(torch.full((T, T), float("-inf"), dtype=x.dtype, device=x.device), diagonal=1)
        weights = torch.softmax(q @ k.transpose(-1, -2) + mask, dim=-1).view(B, H, 2, T, T)
        lambda_1 = torch.exp(torch.sum(self.lambda_q1 * self.lambda_k1))
        lambda_2 = torch.exp(torch.sum(self.lambda_q2 * self.lambda_k2))
        weights = weights[:, :, 0] - (lambda_1 - lambda_2 + self.lambda_init) * weights[:, :, 1]

        y = weights @ v
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5) * self.subln_weight
        y = y * (1 - self.lambda_init)
        return self.out_proj(y.transpose(1, 2).reshape(B, T, C))


batch_size = 2
seq_len = 28
num_heads = 3
half_dim = 8
depth = 2


def get_inputs():
    return [torch.randn(batch_size, seq_len, num_heads * 2 * half_dim)]


def get_init_inputs():
    return [num_heads * 2 * half_dim, num_heads, depth]
