import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """
    Top-2 mixture of SwiGLU experts. Every expert runs on every token and the
    outputs are combined with the renormalised gates, zero outside the top 2.
    """

    def __init__(self, d_model, d_ff, num_experts, top_k):
        super().__init__()
        self.num_experts = num_experts
        self.top_k = top_k
        self.router = nn.Linear(d_model, num_experts, bias=False)
        self.w_gate = nn.Parameter(torch.randn(num_experts, d_model, d_ff) * d_model ** -0.5)
        self.w_up = nn.Parameter(torch.randn(num_experts, d_model, d_ff) * d_model ** -0.5)
        self.w_down = nn.Parameter(torch.randn(num_experts, d_ff, d_model) * d_ff ** -0.5)

    def forward(self, x):
        B, T, D = x.shape
        tokens = x.reshape(B * T, D)

        probs = F.softmax(self.router(tokens), dim=-1)
        top_vals, top_idx = torch.topk(probs, self.top_k, dim=-1)
        top_vals = top_vals / top_vals.sum(dim=-1, keepdim=True)
        gates = torch.zeros_like(probs).scatter(-1, top_idx, top_vals)  # (N, E)

        h = torch.einsum("nd,edf->enf", tokens, self.w_gate)
        u = torch.einsum("nd,edf->enf", tokens, self.w_up)
        y = torch.einsum("enf,efd->end", F.silu(h) * u, self.w_down)
        out = torch.einsum("ne,end->nd", gates, y)
        return out.view(B, T, D)


batch_size = 4
seq_len = 64
d_model = 128
d_ff = 256
num_experts = 8
top_k = 2


def get_inputs():
    return [torch.randn(batch_size, seq_len, d_model)]


def get_init_inputs():
    return [d_model, d_ff, num_experts, top_k]
