import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def relative_position_bucket(relative_position, num_buckets, max_distance):
    """Half of the buckets for each direction; in each, half are exact, the others grow logarithmically."""
    num_buckets //= 2
    bucket = (relative_position > 0).long() * num_buckets
    distance = relative_position.abs()
    max_exact = num_buckets // 2
    large = max_exact + (
        torch.log(distance.clamp(min=max_exact).float() / max_exact)
        / math.log(max_distance / max_exact)
        * (num_buckets - max_exact)
    ).long()
    large = large.clamp(max=num_buckets - 1)
    return bucket + torch.where(distance < max_exact, distance, large)


class Model(nn.Module):
    """T5 encoder self-attention: no scaling, a learned bias for each bucket of relative positions and head."""

    def __init__(self, d_model, d_kv, num_heads, num_buckets, max_distance):
        super().__init__()
        self.d_kv, self.num_heads = d_kv, num_heads
        self.num_buckets, self.max_distance = num_buckets, max_distance
        inner = d_kv * num_heads
        self.q = nn.Linear(d_model, inner, bias=False)
        self.k = nn.Linear(d_model, inner, bias=False)
        self.v = nn.Linear(d_model, inner, bias=False)
        self.o = nn.Linear(inner, d_model, bias=False)
        self.relative_attention_bias = nn.Embedding(num_buckets, num_heads)

    def forward(self, hidden):
        B, T, _ = hidden.shape
        q, k, v = (f(hidden).view(B, T, self.num_heads, self.d_kv).transpose(1, 2) for f in (self.q, self.k, self.v))
        pos = torch.arange(T, device=hidden.device)
        buckets = relative_position_bucket(pos[None, :] - pos[:, None], self.num_buckets, self.max_distance)
        bias = self.relative_attention_bias(buckets).permute(2, 0, 1).unsqueeze(0)
        attn = F.softmax(q @ k.transpose(3, 2) + bias, dim=-1)
        return self.o((attn @ v).transpose(1, 2).reshape(B, T, -1))


batch_size = 2
seq_len = 48
d_model = 40
d_kv = 10
num_heads = 4
num_buckets = 16


def get_inputs():
    return [torch.randn(batch_size, seq_len, d_model)]


def get_init_inputs():
    return [d_model, d_kv, num_heads, num_buckets, 101]
