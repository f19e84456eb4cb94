import torch
import torch.nn as nn


class Model(nn.Module):
    """One step of decoding from a paged cache: block_table[b, n] names the page that holds positions n*S .. n*S + S - 1."""

    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, query, key_pages, value_pages, block_table, lengths):
        # query (B, heads, D), pages (P, S, heads, D), block_table (B, N), lengths (B,)
        B, heads, D = query.shape
        S, N = key_pages.shape[1], block_table.shape[1]
        keys = key_pages[block_table.long()].reshape(B, N * S, heads, D)
        values = value_pages[block_table.long()].reshape(B, N * S, heads, D)
        scores = torch.einsum("bhd,bthd->bht", query, keys).float() * self.scale
        hidden = torch.arange(N * S, device=query.device)[None, :] >= lengths[:, None]
        scores = scores.masked_fill(hidden[:, None, :], float("-inf"))
        return torch.einsum("bht,bthd->bhd", scores.softmax(dim=-1).to(values.dtype), values)


batch_size = 24
num_pages = 1800
page_size = 16
pages_per_sequence = 64
num_heads = 8
head_dim = 64


def get_inputs():
    return [
        torch.randn(batch_size, num_heads, head_dim).half(),
        torch.randn(num_pages, page_size, num_heads, head_dim).half(),
        torch.randn(num_pages, page_size, num_heads, head_dim).half(),
        torch.randint(0, num_pages, (batch_size, pages_per_sequence), dtype=torch.int32),
        torch.randint(1, pages_per_sequence * page_size + 1, (batch_size,), dtype=torch.int32),
    ]


def get_init_inputs():
    return [0.125]
