import torch
import torch.nn as nn


def window_partition(x, ws):
    """(B, H, W, C) -> (B * nH * nW, ws * ws, C)"""
    B, H, W, C = x.shape
    x = x.view(B, H // ws, ws, W // ws, ws, C)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, ws * ws, C)


def window_reverse(windows, ws, H, W):
    """(B * nH * nW, ws * ws, C) -> (B, H, W, C)"""
    B = windows.shape[0] // ((H // ws) * (W // ws))
    x = windows.view(B, H // ws, W // ws, ws, ws, -1)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(B, H, W, -1)


class WindowAttention(nn.Module):
    def __init__(self, dim, window_size, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.scale = (dim // num_heads) ** -0.5
        self.relative_position_bias_table = nn.Parameter(
            torch.zeros((2 * window_size - 1) ** 2, num_heads)
        )
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.2)

        coords = torch.stack(
            torch.meshgrid(torch.arange(window_size), torch.arange(window_size), indexing="ij")
        ).flatten(1)
        rel = (coords[:, :, None] - coords[:, None, :]).permute(1, 2, 0).contiguous()
        rel += window_size - 1
        index = rel[..., 0] * (2 * window_size - 1) + rel[..., 1]
        self.register_buffer("relative_position_index", index)

        self.qkv = nn.Linear(dim, dim * 3, bias=True)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        Bw, N, C = x.shape
        qkv = self.qkv(x).reshape(Bw, N, 3, self.num_heads, C // self.num_heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        attn = (q * self.scale) @ k.transpose(-2, -1)
        bias = self.relative_position_bias_table[self.relative_position_index.view(-1)]
        bias = bias.view(N, N, -1).permute(2, 0, 1).contiguous()
        attn = (attn + bias.unsqueeze(0)).softmax(dim=-1)
        x = (attn @ v).transpose(1, 2).reshape(Bw, N, C)
        return self.proj(x)


class Model(nn.Module):
    """Pre-norm windowed attention of a Swin block (no cyclic shift), with residual."""

    def __init__(self, dim, window_size, num_heads):
        super().__init__()
        self.window_size = window_size
        self.norm = nn.LayerNorm(dim)
        self.attn = WindowAttention(dim, window_size, num_heads)

    def forward(self, x):
        B, H, W, C = x.shape
        windows = window_partition(self.norm(x), self.window_size)
        windows = self.attn(windows)
        return x + window_reverse(windows, self.window_size, H, W)


batch_size = 4
height = 28
width = 28
dim = 96
window_size = 7
num_heads = 3


def get_inputs():
    return [torch.randn(batch_size, height, width, dim)]


def get_init_inputs():
    return [dim, window_size, num_heads]
