import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """GraphSAGE layer with the max-pooling aggregator; a node without incoming edges gets zeros."""

    def __init__(self, in_dim, pool_dim, out_dim):
        super().__init__()
        self.pool = nn.Linear(in_dim, pool_dim)
        self.lin_self = nn.Linear(in_dim, out_dim, bias=False)
        self.lin_neigh = nn.Linear(pool_dim, out_dim)

    def aggregate(self, messages, index, num_nodes):
        out = messages.new_zeros(num_nodes, messages.size(1))
        index = index.unsqueeze(1).expand_as(messages)
        return out.scatter_reduce(0, index, messages, reduce="amax", include_self=False)

    def forward(self, x, edge_index):
        src, dst = edge_index[0], edge_index[1]
        messages = torch.tanh(self.pool(x))[src]
        pooled = self.aggregate(messages, dst, x.size(0))
        out = self.lin_self(x) + self.lin_neigh(pooled)
        return F.normalize(out, p=2.0, dim=-1, eps=1e-6)


num_nodes = 90
num_edges = 300
in_dim = 40
pool_dim = 32
out_dim = 24


def get_inputs():
    return [torch.randn(num_nodes, in_dim), torch.randint(0, num_nodes, (2, num_edges))]


def get_init_inputs():
    return [in_dim, pool_dim, out_dim]
