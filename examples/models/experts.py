"""A decoder with experts: each token goes to the two of them that its router chooses. Attention is decoder.py's."""
import torch
from decoder import Attention, Norm
from torch import nn
from torch.nn import functional as F

SIZES = {"small": dict(vocab=256, width=64, inner=96, layers=2, heads=4, kv_heads=2, experts=4),
         "large": dict(vocab=32000, width=2048, inner=1408, layers=8, heads=16, kv_heads=4, experts=32)}
CHOSEN = 2


class Routed(nn.Module):
    """The experts' SwiGLU for x [T, D] at ids [T, J], summed with gates [T, J]."""

    def __init__(self, width, inner, experts):
        super().__init__()
        self.gate = nn.Parameter(torch.randn(experts, inner, width) * width ** -0.5)
        self.up = nn.Parameter(torch.randn(experts, inner, width) * width ** -0.5)
        self.down = nn.Parameter(torch.randn(experts, width, inner) * inner ** -0.5)

    def forward(self, x, ids, gates):
        y = torch.zeros(x.shape, dtype=gates.dtype, device=x.device)
        for expert in range(self.gate.shape[0]):
            rows, places = torch.where(ids == expert)
            h = F.silu(F.linear(x[rows], self.gate[expert])) * F.linear(x[rows], self.up[expert])
            y.index_add_(0, rows, F.linear(h, self.down[expert]) * gates[rows, places, None])
        return y.to(x.dtype)


class Experts(nn.Module):
    def __init__(self, width, inner, experts):
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.routed = Routed(width, inner, experts)

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        gates, ids = self.router(flat).float().softmax(-1).topk(CHOSEN)
        return self.routed(flat, ids, gates / gates.sum(-1, keepdim=True)).view(x.shape)


class Layer(nn.Module):
    def __init__(self, width, inner, heads, kv_heads, experts):
        super().__init__()
        self.norm1, self.attention = Norm(width), Attention(width, heads, kv_heads)
        self.norm2, self.mlp = Norm(width), Experts(width, inner, experts)

    def forward(self, x, cos, sin, past):
        found, past = self.attention(self.norm1(x), cos, sin, past)
        x = x + found
        return x + self.mlp(self.norm2(x)), past


class Model(nn.Module):
    def __init__(self, vocab, width, inner, layers, heads, kv_heads, experts):
        super().__init__()
        self.embedding = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(Layer(width, inner, heads, kv_heads, experts) for _ in range(layers))
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
