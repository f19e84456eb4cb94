import torch
import torch.nn as nn


class Model(nn.Module):
    """
    Writes the keys and values of new tokens to their slots of a paged KV cache.
      key_cache   (num_blocks, heads, head_dim / x, block_size, x)
      value_cache (num_blocks, heads, head_dim, block_size)
    slot = block * block_size + offset; slots are distinct.
    """

    def __init__(self):
        super().__init__()

    def forward(self, key, value, key_cache, value_cache, slot_mapping):
        num_tokens, num_heads, head_dim = key.shape
        block_size, x = key_cache.shape[3], key_cache.shape[4]
        block = torch.div(slot_mapping, block_size, rounding_mode="floor")
        offset = slot_mapping % block_size

        new_key = key_cache.clone()
        new_value = value_cache.clone()
        new_key[block, :, :, offset, :] = key.view(num_tokens, num_heads, head_dim // x, x)
        new_value[block, :, :, offset] = value
        return new_key, new_value


num_tokens = 40
num_heads = 4
chunks = 6
vector = 8
num_blocks = 18
block_size = 16


def get_inputs():
    head_dim = chunks * vector
    slots = torch.randperm(num_blocks * block_size)[:num_tokens]
    return [
        torch.randn(slots.numel(), num_heads, head_dim),
        torch.randn(slots.numel(), num_heads, head_dim),
        torch.randn(num_blocks, num_heads, chunks, block_size, vector),
        torch.randn(num_blocks, num_heads, head_dim, block_size),
        slots,
    ]


def get_init_inputs():
    return []
