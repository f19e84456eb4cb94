import torch
import torch.nn as nn


class Model(nn.Module):
    """
    Embedding of large ids by multiply-shift hashing: several hash functions into one small table, their rows summed,
    each with a sign that another bit of the product gives. Products wrap around in 64 bits.
    """

    def __init__(self, log2_buckets, embedding_dim, num_hashes):
        super().__init__()
        self.num_buckets = 1 << log2_buckets
        self.shift = 62 - log2_buckets
        self.register_buffer("multipliers", 2 * torch.randint(2 ** 60, 2 ** 62, (num_hashes,)) + 1)
        self.register_buffer("offsets", torch.randint(0, 2 ** 40, (num_hashes,)))
        self.table = nn.Embedding(self.num_buckets, embedding_dim)

    def forward(self, ids):
        hashed = ids.unsqueeze(-1) * self.multipliers + self.offsets
        bucket = (hashed >> self.shift) & (self.num_buckets - 1)
        sign = 1 - 2 * ((hashed >> 20) & 1)
        rows = self.table(bucket)  # (..., num_hashes, dim)
        return (rows * sign.unsqueeze(-1).to(rows.dtype)).sum(dim=-2)


batch_size = 16
num_fields = 10
embedding_dim = 32
num_hashes = 3
log2_buckets = 9


def get_inputs():
    return [torch.randint(0, 2 ** 50, (batch_size, num_fields))]


def get_init_inputs():
    return [log2_buckets, embedding_dim, num_hashes]
