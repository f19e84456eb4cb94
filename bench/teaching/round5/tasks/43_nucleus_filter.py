import torch
import torch.nn as nn


class Model(nn.Module):
    """Top-p filter of a sampler: keeps the fewest logits whose probabilities exceed top_p, writes -inf over the others."""

    def __init__(self, top_p, temperature, min_tokens_to_keep):
        super().__init__()
        self.top_p = top_p
        self.temperature = temperature
        self.min_tokens_to_keep = min_tokens_to_keep

    def forward(self, logits):
        scores = logits / self.temperature
        sorted_scores, sorted_indices = torch.sort(scores, dim=-1, descending=True)
        cumulative = sorted_scores.softmax(dim=-1).cumsum(dim=-1)

        sorted_remove = cumulative > self.top_p
        # the token that crosses the threshold stays
        sorted_remove = torch.cat([torch.zeros_like(sorted_remove[:, :1]), sorted_remove[:, :-1]], dim=-1)
        sorted_remove[:, : self.min_tokens_to_keep] = False

        remove = torch.zeros_like(sorted_remove).scatter(-1, sorted_indices, sorted_remove)
        return scores.masked_fill(remove, float("-inf")), (~remove).sum(dim=-1)


batch_size = 8
vocab_size = 320


def get_inputs():
    return [torch.randn(batch_size, vocab_size) * 2.0]


def get_init_inputs():
    return [0.8, 0.7, 2]
