"""A state-space model: blocks of Mamba-2's kind with one scalar of decay for each head."""
import torch
from decoder import Norm
from torch import nn
from torch.nn import functional as F

SIZES = {"small": dict(vocab=256, width=64, layers=2, heads=4, state=16),
         "large": dict(vocab=32000, width=2048, layers=12, heads=32, state=64)}


class Scan(nn.Module):
    """S[t] = exp(dt[t] a) S[t-1] + dt[t] x[t] b[t], y[t] = S[t] c[t] + skip x[t], in the form of a masked product:
    x [B, T, H, P], dt [B, T, H], b and c [B, T, N]."""

    def __init__(self, heads):
        super().__init__()
        self.a = nn.Parameter(-torch.linspace(0.5, 2.0, heads))
        self.skip = nn.Parameter(torch.ones(heads))

    def forward(self, x, dt, b, c):
        steps = dt.float() * self.a.float()
        sums = steps.cumsum(1)
        length = x.shape[1]
        seen = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        decay = (sums[:, :, None] - sums[:, None]).masked_fill(~seen[None, :, :, None], -torch.inf).exp()
        weights = torch.einsum("btn,bsn->bts", c.float(), b.float())[..., None] * decay * dt.float()[:, None]
        y = torch.einsum("btsh,bshp->bthp", weights, x.float())
        return (y + self.skip.float()[:, None] * x.float()).to(x.dtype)


class Block(nn.Module):
    def __init__(self, width, heads, state):
        super().__init__()
        self.heads, self.state = heads, state
        self.norm = Norm(width)
        self.enter = nn.Linear(width, 2 * width + 2 * state + heads, bias=False)
        self.scan = Scan(heads)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        inner, gate, b, c, dt = self.enter(self.norm(x)).split([width, width, self.state, self.state, self.heads], -1)
        inner = F.silu(inner).view(batch, length, self.heads, -1)
        y = self.scan(inner, F.softplus(dt.float()), b, c).reshape(batch, length, width)
        return x + self.out(y * F.silu(gate))


class Model(nn.Module):
    def __init__(self, vocab, width, layers, heads, state):
        super().__init__()
        self.embedding = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(Block(width, heads, state) for _ in range(layers))
        self.norm = Norm(width)
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


size = SIZES["small"]


def get_inputs():
    return [torch.randint(0, size["vocab"], (2, 16))]


def get_init_inputs():
    return dict(size)
