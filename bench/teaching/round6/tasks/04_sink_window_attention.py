import torch
import torch.nn as nn


class Model(nn.Module):
    """Causal attention over a sliding window, with a learned sink logit per head that takes part in the softmax and has
    no value."""

    def __init__(self, num_heads, window):
        super().__init__()
        self.window = window
        self.sinks = nn.Parameter(torch.randn(num_heads))

    def forward(self, q, k, v):
        # (B, H, S, D)
        B, H, S, D = q.shape
        scores = (q @ k.transpose(-1, -2)).float() * D ** -0.5
        distance = torch.arange(S, device=q.device)[:, None] - torch.arange(S, device=q.device)[None, :]
        scores = scores.masked_fill((distance < 0) | (distance >= self.window), float("-inf"))
        sink = self.sinks.float().view(1, H, 1, 1).expand(B, H, S, 1)
        probabilities = torch.cat([scores, sink], dim=-1).softmax(dim=-1)[..., :-1]
        return probabilities.to(v.dtype) @ v


batch_size = 2
num_heads = 8
seq_len = 2048
head_dim = 64
window = 256


def get_inputs():
    return [torch.randn(batch_size, num_heads, seq_len, head_dim).bfloat16() for _ in range(3)]


def get_init_inputs():
    return [num_heads, window]
