import torch
import torch.nn as nn
import torch.nn.functional as F


def edge_softmax(scores, dst, num_nodes):
    """Softmax over the edges (E, H) that share a destination."""
    index = dst[:, None].expand_as(scores)
    top = scores.new_full((num_nodes, scores.size(1)), float("-inf"))
    top = top.scatter_reduce(0, index, scores, reduce="amax")
    weight = torch.exp(scores - top[dst])
    total = torch.zeros_like(top).scatter_add(0, index, weight)
    return weight / (total[dst] + 1e-16)


class Model(nn.Module):
    """Graph attention layer (GAT), heads concatenated, bias added. Nodes that no edge reaches get the bias."""

    def __init__(self, in_dim, head_dim, num_heads, negative_slope):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = head_dim
        self.negative_slope = negative_slope
        self.fc = nn.Linear(in_dim, num_heads * head_dim, bias=False)
        self.att_src = nn.Parameter(torch.randn(1, num_heads, head_dim) * 0.3)
        self.att_dst = nn.Parameter(torch.randn(1, num_heads, head_dim) * 0.3)
        self.bias = nn.Parameter(torch.randn(num_heads * head_dim) * 0.1)

    def forward(self, x, src, dst):
        N = x.size(0)
        h = self.fc(x).view(N, self.num_heads, self.head_dim)
        alpha_src = (h * self.att_src).sum(dim=-1)
        alpha_dst = (h * self.att_dst).sum(dim=-1)
        scores = F.leaky_relu(alpha_src[src] + alpha_dst[dst], self.negative_slope)
        alpha = edge_softmax(scores, dst, N)
        out = torch.zeros_like(h).index_add_(0, dst, h[src] * alpha.unsqueeze(-1))
        return out.flatten(1) + self.bias, alpha


num_nodes = 64
num_edges = 256
in_dim = 32
head_dim = 12
num_heads = 4


def get_inputs():
    return [
        torch.randn(num_nodes, in_dim),
        torch.randint(0, num_nodes, (num_edges,)),
        torch.randint(0, num_nodes, (num_edges,)),
    ]


def get_init_inputs():
    return [in_dim, head_dim, num_heads, 0.2]
