import torch
import torch.nn as nn


class Model(nn.Module):
    """One step of decoding with grouped queries: each sequence attends to the first `length` entries of its cache."""

    def forward(self, query, key_cache, value_cache, lengths):
        # query (B, heads, D), caches (B, T, groups, D), lengths (B,); heads is a multiple of groups
        B, heads, D = query.shape
        T, groups = key_cache.shape[1], key_cache.shape[2]
        q = query.view(B, groups, heads // groups, D)
        scores = torch.einsum("bghd,btgd->bght", q, key_cache) * D ** -0.5
        hidden = torch.arange(T, device=query.device)[None, :] >= lengths[:, None]
        scores = scores.masked_fill(hidden[:, None, None, :], float("-inf"))
        probabilities = scores.float().softmax(dim=-1).to(query.dtype)
        return torch.einsum("bght,btgd->bghd", probabilities, value_cache).reshape(B, heads, D)


batch_size = 32
cache_len = 1024
groups = 4
heads_per_group = 8
head_dim = 128


def get_inputs():
    return [
        torch.randn(batch_size, groups * heads_per_group, head_dim).bfloat16(),
        torch.randn(batch_size, cache_len, groups, head_dim).bfloat16(),
        torch.randn(batch_size, cache_len, groups, head_dim).bfloat16(),
        torch.randint(1, cache_len + 1, (batch_size,)),
    ]


def get_init_inputs():
    return []
