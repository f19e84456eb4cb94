import torch
import torch.nn as nn


def sinusoid_table(max_positions, rotary_dim, base=10000.0):
    inv_freq = base ** (-torch.arange(0, rotary_dim, 2, dtype=torch.float64) / rotary_dim)
    angles = torch.outer(torch.arange(max_positions, dtype=torch.float64), inv_freq)
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def rotate_every_two(x):
    x1, x2 = x[..., 0::2], x[..., 1::2]
    return torch.stack((-x2, x1), dim=-1).flatten(-2)


class Model(nn.Module):
    """GPT-J's rotary embedding: interleaved pairs of the first rotary_dim features, at positions given by ids."""

    def __init__(self, max_positions, rotary_dim):
        super().__init__()
        self.rotary_dim = rotary_dim
        self.register_buffer("embed_positions", sinusoid_table(max_positions, rotary_dim).to(torch.get_default_dtype()))

    def apply_rotary(self, x, sin, cos):
        rot, rest = x[..., : self.rotary_dim], x[..., self.rotary_dim:]
        return torch.cat([rot * cos + rotate_every_two(rot) * sin, rest], dim=-1)

    def forward(self, query, key, position_ids):
        # (B, T, H, D), (B, T, H, D), (B, T)
        sin, cos = self.embed_positions[position_ids].chunk(2, dim=-1)
        sin = sin.repeat_interleave(2, dim=-1).unsqueeze(2)
        cos = cos.repeat_interleave(2, dim=-1).unsqueeze(2)
        return self.apply_rotary(query, sin, cos), self.apply_rotary(key, sin, cos)


batch_size = 3
seq_len = 20
num_heads = 5
rotary_pairs = 8
pass_dim = 12
max_positions = 256


def get_inputs():
    head_dim = 2 * rotary_pairs + pass_dim
    return [
        torch.randn(batch_size, seq_len, num_heads, head_dim),
        torch.randn(batch_size, seq_len, num_heads, head_dim),
        torch.randint(0, max_positions, (batch_size, seq_len)),
    ]


def get_init_inputs():
    return [max_positions, 2 * rotary_pairs]
