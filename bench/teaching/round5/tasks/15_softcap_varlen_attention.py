import torch
import torch.nn as nn


class Model(nn.Module):
    """Multi-query cross-attention: keys beyond a sample's length are hidden, scores capped by a tanh (Gemma 2)."""

    def __init__(self, dim, memory_dim, num_heads, head_dim, softcap):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = head_dim
        self.softcap = softcap
        self.to_q = nn.Linear(dim, num_heads * head_dim, bias=False)
        self.to_kv = nn.Linear(memory_dim, 2 * head_dim, bias=False)
        self.to_out = nn.Linear(num_heads * head_dim, dim)

    def forward(self, x, memory, lengths):
        B, T, _ = x.shape
        S = memory.shape[1]
        q = self.to_q(x).view(B, T, self.num_heads, self.head_dim)
        k, v = self.to_kv(memory).chunk(2, dim=-1)

        scores = torch.einsum("bthd,bsd->bhts", q, k) * self.head_dim ** -0.5
        scores = self.softcap * torch.tanh(scores / self.softcap)
        hidden = torch.arange(S, device=x.device)[None, :] >= lengths[:, None]
        scores = scores.masked_fill(hidden[:, None, None, :], float("-inf"))
        out = torch.einsum("bhts,bsd->bthd", scores.softmax(dim=-1), v)
        return self.to_out(out.flatten(2))


batch_size = 4
num_queries = 20
num_keys = 36
dim = 40
memory_dim = 28
num_heads = 5
head_dim = 16


def get_inputs():
    return [
        torch.randn(batch_size, num_queries, dim),
        torch.randn(batch_size, num_keys, memory_dim),
        torch.randint(1, num_keys + 1, (batch_size,)),
    ]


def get_init_inputs():
    return [dim, memory_dim, num_heads, head_dim, 20.0]
