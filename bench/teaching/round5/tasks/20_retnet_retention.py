import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """
    RetNet's multi-scale retention in its parallel form: gamma_h^(i - j) in place of a softmax, rows normalised by the
    sum of their absolute values where that is above one, group norm over each head, swish gate.
    """

    def __init__(self, embed_dim, num_heads, key_dim, head_dim):
        super().__init__()
        self.num_heads, self.key_dim, self.head_dim = num_heads, key_dim, head_dim
        self.wq = nn.Linear(embed_dim, num_heads * key_dim, bias=False)
        self.wk = nn.Linear(embed_dim, num_heads * key_dim, bias=False)
        self.wv = nn.Linear(embed_dim, num_heads * head_dim, bias=False)
        self.wg = nn.Linear(embed_dim, num_heads * head_dim, bias=False)
        self.wo = nn.Linear(num_heads * head_dim, embed_dim, bias=False)
        self.norm = nn.GroupNorm(num_heads, num_heads * head_dim, eps=1e-5)
        self.register_buffer("log_gamma", torch.log(1 - 2.0 ** (-3 - torch.arange(num_heads, dtype=torch.float32))))

    def decay_mask(self, T):
        pos = torch.arange(T, device=self.log_gamma.device)
        distance = pos[:, None] - pos[None, :]
        decay = torch.exp(distance.clamp(min=0) * self.log_gamma[:, None, None])
        decay = torch.where(distance >= 0, decay, 0.0)
        return decay / decay.sum(dim=-1, keepdim=True).sqrt()

    def forward(self, x):
        B, T, _ = x.shape
        q = self.wq(x).view(B, T, self.num_heads, self.key_dim).transpose(1, 2)
        k = self.wk(x).view(B, T, self.num_heads, self.key_dim).transpose(1, 2) * self.key_dim ** -0.5
        v = self.wv(x).view(B, T, self.num_heads, self.head_dim).transpose(1, 2)

        qk = q @ k.transpose(-1, -2) * self.decay_mask(T)
        qk = qk / qk.abs().sum(dim=-1, keepdim=True).clamp(min=1.0)
        y = (qk @ v).transpose(1, 2).reshape(B * T, -1)
        y = self.norm(y).view(B, T, -1)
        return self.wo(F.silu(self.wg(x)) * y)


batch_size = 2
seq_len = 32
embed_dim = 40
num_heads = 4
key_dim = 8
head_dim = 12


def get_inputs():
    return [torch.randn(batch_size, seq_len, embed_dim)]


def get_init_inputs():
    return [embed_dim, num_heads, key_dim, head_dim]
