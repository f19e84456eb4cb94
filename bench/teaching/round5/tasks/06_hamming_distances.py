import torch
import torch.nn as nn


def popcount32(v):
    """Bits that are set in each int32. Shifts are arithmetic: the masks take the copies of the sign away."""
    v = v - ((v >> 1) & 0x55555555)
    v = (v & 0x33333333) + ((v >> 2) & 0x33333333)
    v = (v + (v >> 4)) & 0x0F0F0F0F
    v = v + (v >> 8)
    v = v + (v >> 16)
    return v & 0x3F


class Model(nn.Module):
    """Hamming distances between packed binary codes of queries and of a database, and the cosine they stand for."""

    def __init__(self):
        super().__init__()

    def forward(self, queries, database):
        # (Q, words) and (N, words), int32
        differing = torch.bitwise_xor(queries[:, None, :], database[None, :, :])
        distance = popcount32(differing).sum(dim=-1)
        num_bits = 32 * queries.shape[-1]
        return distance, torch.cos(distance * (torch.pi / num_bits))


num_queries = 24
num_database = 150
num_words = 8


def get_inputs():
    return [
        torch.randint(-2 ** 31, 2 ** 31 - 1, (num_queries, num_words), dtype=torch.int32),
        torch.randint(-2 ** 31, 2 ** 31 - 1, (num_database, num_words), dtype=torch.int32),
    ]


def get_init_inputs():
    return []
