import torch
import torch.nn as nn


class Model(nn.Module):
    """Two GCN layers with self-loops: D^-1/2 (A + I) D^-1/2 X W + b, D being the in-degrees of A + I."""

    def __init__(self, in_dim, hidden_dim, out_dim):
        super().__init__()
        self.w1 = nn.Parameter(torch.empty(in_dim, hidden_dim))
        self.b1 = nn.Parameter(torch.empty(hidden_dim).uniform_(-0.1, 0.1))
        self.w2 = nn.Parameter(torch.empty(hidden_dim, out_dim))
        self.b2 = nn.Parameter(torch.empty(out_dim).uniform_(-0.1, 0.1))
        nn.init.xavier_uniform_(self.w1)
        nn.init.xavier_uniform_(self.w2)

    @staticmethod
    def gcn_norm(edge_index, num_nodes, dtype):
        loops = torch.arange(num_nodes, device=edge_index.device)
        row = torch.cat([edge_index[0], loops])
        col = torch.cat([edge_index[1], loops])
        ones = torch.ones(row.numel(), dtype=dtype, device=row.device)
        deg = torch.zeros(num_nodes, dtype=dtype, device=row.device).index_add(0, col, ones)
        deg_inv_sqrt = deg.pow(-0.5)
        return row, col, deg_inv_sqrt[row] * deg_inv_sqrt[col]

    @staticmethod
    def propagate(x, row, col, norm):
        return torch.zeros_like(x).index_add(0, col, norm.view(-1, 1) * x.index_select(0, row))

    def forward(self, x, edge_index):
        row, col, norm = self.gcn_norm(edge_index, x.shape[0], x.dtype)
        h = torch.relu(self.propagate(x @ self.w1, row, col, norm) + self.b1)
        return self.propagate(h @ self.w2, row, col, norm) + self.b2


num_nodes = 80
num_edges = 240
in_dim = 36
hidden_dim = 24
out_dim = 7


def get_inputs():
    return [torch.randn(num_nodes, in_dim), torch.randint(0, num_nodes, (2, num_edges))]


def get_init_inputs():
    return [in_dim, hidden_dim, out_dim]
