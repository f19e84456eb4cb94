import torch
import torch.nn as nn


class Model(nn.Module):
    """Gate of a mixture of experts: the `top_k` experts of the largest logits with a bias, which takes part in the choice
    alone; sigmoids of their logits, normalised to add up to `factor`; a dense matrix of these weights, and how many tokens
    each expert gets."""

    def __init__(self, num_experts, top_k, factor):
        super().__init__()
        self.top_k = top_k
        self.factor = factor
        self.bias = nn.Parameter(torch.randn(num_experts) * 0.3)

    def forward(self, logits):
        # (T, E)
        chosen = (logits + self.bias).topk(self.top_k, dim=-1).indices
        scores = torch.sigmoid(logits)
        weights = scores.gather(1, chosen)
        weights = self.factor * weights / (weights.sum(dim=-1, keepdim=True) + 1e-20)
        dense = torch.zeros_like(scores).scatter(1, chosen, weights)
        load = torch.zeros_like(scores).scatter(1, chosen, 1.0).sum(dim=0)
        return dense, load


tokens = 49152
num_experts = 64
top_k = 6


def get_inputs():
    return [torch.randn(tokens, num_experts)]


def get_init_inputs():
    return [num_experts, top_k, 2.5]
