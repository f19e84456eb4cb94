import torch
import torch.nn as nn


class Model(nn.Module):
    """Decoding with a latent cache (multi-head latent attention, absorbed): keys are latent and rotary parts, values the
    latent part alone; the result is brought back by one matrix for each head."""

    def __init__(self, num_heads, latent_dim, value_dim, scale):
        super().__init__()
        self.scale = scale
        self.up = nn.Parameter(torch.randn(num_heads, latent_dim, value_dim) * latent_dim ** -0.5)

    def forward(self, q_latent, q_rotary, latent_cache, rotary_cache):
        # q_latent (B, H, R), q_rotary (B, H, P), latent_cache (B, T, R), rotary_cache (B, T, P)
        scores = torch.einsum("bhr,btr->bht", q_latent, latent_cache)
        scores = (scores + torch.einsum("bhp,btp->bht", q_rotary, rotary_cache)) * self.scale
        context = torch.einsum("bht,btr->bhr", scores.softmax(dim=-1), latent_cache)
        return torch.einsum("bhr,hrv->bhv", context, self.up)


batch_size = 16
num_heads = 16
cache_len = 1024
latent_dim = 512
rotary_dim = 64
value_dim = 128


def get_inputs():
    return [
        torch.randn(batch_size, num_heads, latent_dim),
        torch.randn(batch_size, num_heads, rotary_dim),
        torch.randn(batch_size, cache_len, latent_dim),
        torch.randn(batch_size, cache_len, rotary_dim),
    ]


def get_init_inputs():
    return [num_heads, latent_dim, value_dim, 0.04]
