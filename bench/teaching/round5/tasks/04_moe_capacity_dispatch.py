import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """
    Mixture of experts with a capacity: each expert takes at most C (token, choice) pairs, first choices of all tokens
    before second ones, in the order of the tokens. What is beyond that is dropped and adds nothing.
    """

    def __init__(self, d_model, d_hidden, num_experts, top_k, capacity_factor):
        super().__init__()
        self.num_experts = num_experts
        self.top_k = top_k
        self.capacity_factor = capacity_factor
        self.gate = nn.Linear(d_model, num_experts, bias=False)
        self.w1 = nn.Parameter(torch.randn(num_experts, d_model, d_hidden) * d_model ** -0.5)
        self.w2 = nn.Parameter(torch.randn(num_experts, d_hidden, d_model) * d_hidden ** -0.5)

    def forward(self, x):
        N, D = x.shape
        E, K = self.num_experts, self.top_k
        C = max(1, int(self.capacity_factor * N * K / E))

        top_logits, top_idx = self.gate(x).topk(K, dim=-1)
        weights = F.softmax(top_logits, dim=-1).t()  # (K, N)
        expert = top_idx.t()

        one_hot = F.one_hot(expert.reshape(K * N), E)
        position = ((one_hot.cumsum(dim=0) - 1) * one_hot).sum(dim=-1).view(K, N)
        keep = position < C
        slot = torch.where(keep, expert * C + position, E * C)  # dropped: a row of its own

        tokens = x.unsqueeze(0).expand(K, N, D).reshape(K * N, D)
        dispatched = x.new_zeros(E * C + 1, D).index_add(0, slot.reshape(-1), tokens)
        h = torch.bmm(dispatched[:-1].view(E, C, D), self.w1)
        out = torch.bmm(F.gelu(h), self.w2).view(E * C, D)

        out = torch.cat([out, out.new_zeros(1, D)], dim=0)
        return (out[slot] * weights.unsqueeze(-1)).sum(dim=0)


num_tokens = 96
d_model = 48
d_hidden = 80
num_experts = 6
top_k = 2
capacity_factor = 0.85


def get_inputs():
    return [torch.randn(num_tokens, d_model)]


def get_init_inputs():
    return [d_model, d_hidden, num_experts, top_k, capacity_factor]
