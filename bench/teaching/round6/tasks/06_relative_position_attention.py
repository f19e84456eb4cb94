import torch
import torch.nn as nn


class Model(nn.Module):
    """Attention with learned embeddings of clipped relative positions for keys and for values (Shaw et al.)."""

    def __init__(self, head_dim, max_distance):
        super().__init__()
        self.max_distance = max_distance
        self.key_positions = nn.Parameter(torch.randn(2 * max_distance + 1, head_dim) * 0.2)
        self.value_positions = nn.Parameter(torch.randn(2 * max_distance + 1, head_dim) * 0.2)

    def forward(self, q, k, v):
        # (B, H, S, D)
        S, D = q.shape[-2:]
        place = torch.arange(S, device=q.device)
        offset = (place[None, :] - place[:, None]).clamp(-self.max_distance, self.max_distance) + self.max_distance
        scores = q @ k.transpose(-1, -2)
        scores = scores + torch.einsum("bhid,ijd->bhij", q, self.key_positions[offset])
        probabilities = (scores * D ** -0.5).softmax(dim=-1)
        return probabilities @ v + torch.einsum("bhij,ijd->bhid", probabilities, self.value_positions[offset])


batch_size = 4
num_heads = 8
seq_len = 512
head_dim = 64
max_distance = 32


def get_inputs():
    return [torch.randn(batch_size, num_heads, seq_len, head_dim) for _ in range(3)]


def get_init_inputs():
    return [head_dim, max_distance]
