import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Causal self-attention with several heads, from one projection to queries, keys and values."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).split(d, dim=2)
        q, k, v = (one.view(b, t, self.heads, d // self.heads).transpose(1, 2) for one in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) * (d // self.heads) ** -0.5
        causal = torch.tril(torch.ones(t, t, dtype=torch.bool, device=x.device))
        y = F.softmax(scores.masked_fill(~causal, float("-inf")), dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(b, t, d))


batch = 8
tokens = 512
dim = 384
heads = 6


def get_inputs():
    return [torch.randn(batch, tokens, dim)]


def get_init_inputs():
    return [dim, heads]
