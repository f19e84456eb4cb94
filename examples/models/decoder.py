"""A decoder with grouped-query attention: RMSNorm, rotary positions, SwiGLU."""
import torch
from torch import nn
from torch.nn import functional as F

SIZES = {"small": dict(vocab=256, width=64, inner=160, layers=2, heads=4, kv_heads=2),
         "large": dict(vocab=32000, width=2048, inner=5632, layers=12, heads=32, kv_heads=8)}


class Norm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)).to(x.dtype) * self.weight


class Mlp(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Rotate(nn.Module):
    """Positions `start`, `start + 1`, ... as rotations of the halves of each head."""

    def forward(self, x, cos, sin):
        a, b = x.float().chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


class Core(nn.Module):
    """Attention of the last tokens to all: q [B, H, S, D], k and v [B, G, T, D]."""

    def forward(self, q, k, v):
        rows, columns = q.shape[2], k.shape[2]
        seen = torch.ones(rows, columns, dtype=torch.bool, device=q.device).tril(columns - rows)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)


class Attention(nn.Module):
    def __init__(self, width, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.depth = heads, kv_heads, width // heads
        self.q = nn.Linear(width, heads * self.depth, bias=False)
        self.kv = nn.Linear(width, 2 * kv_heads * self.depth, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.rotate, self.core = Rotate(), Core()

    def forward(self, x, cos, sin, past):
        batch, length, width = x.shape
        q = self.q(x).view(batch, length, self.heads, self.depth).transpose(1, 2)
        k, v = self.kv(x).view(batch, length, 2, self.kv_heads, self.depth).permute(2, 0, 3, 1, 4)
        q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
        if past is not None:
            k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
        found = self.core(q, k, v)
        return self.out(found.transpose(1, 2).reshape(batch, length, width)), (k, v)


class Layer(nn.Module):
    def __init__(self, width, inner, heads, kv_heads):
        super().__init__()
        self.norm1, self.attention = Norm(width), Attention(width, heads, kv_heads)
        self.norm2, self.mlp = Norm(width), Mlp(width, inner)

    def forward(self, x, cos, sin, past):
        found, past = self.attention(self.norm1(x), cos, sin, past)
        x = x + found
        return x + self.mlp(self.norm2(x)), past


class Model(nn.Module):
    def __init__(self, vocab, width, inner, layers, heads, kv_heads):
        super().__init__()
        self.embedding = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(Layer(width, inner, heads, kv_heads) for _ in range(layers))
        self.norm = Norm(width)
        self.head = nn.Linear(width, vocab, bias=False)
        depth = width // heads
        self.register_buffer("rates", 10000.0 ** (-torch.arange(0, depth, 2).float() / depth), persistent=False)

    def forward(self, tokens, past=None):
        """Logits, and keys and values of each layer for the next call."""
        start = 0 if past is None else past[0][0].shape[2]
        angles = (start + torch.arange(tokens.shape[1], device=tokens.device)).float()[:, None] * self.rates.float()
        cos, sin, x, kept = angles.cos(), angles.sin(), self.embedding(tokens), []
        for place, layer in enumerate(self.layers):
            x, now = layer(x, cos, sin, None if past is None else past[place])
            kept.append(now)
        return self.head(self.norm(x)), kept


size = SIZES["small"]


def get_inputs():
    return [torch.randint(0, size["vocab"], (2, 16))]


def get_init_inputs():
    return dict(size)
