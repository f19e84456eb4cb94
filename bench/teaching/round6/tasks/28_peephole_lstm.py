import torch
import torch.nn as nn


class Model(nn.Module):
    """LSTM whose gates also see the cell through weights of one number per unit; gives all hidden states and the last
    cell."""

    def __init__(self, in_dim, hidden):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4 * hidden, in_dim) * in_dim ** -0.5)
        self.u = nn.Parameter(torch.randn(4 * hidden, hidden) * hidden ** -0.5)
        self.bias = nn.Parameter(torch.randn(4 * hidden) * 0.1)
        self.peep = nn.Parameter(torch.randn(3, hidden) * 0.1)

    def forward(self, x, h, c):
        # x (T, B, in_dim), h, c (B, hidden)
        inputs = x @ self.w.t() + self.bias
        out = []
        for t in range(x.shape[0]):
            i, f, g, o = (inputs[t] + h @ self.u.t()).chunk(4, dim=-1)
            i, f = torch.sigmoid(i + self.peep[0] * c), torch.sigmoid(f + self.peep[1] * c)
            c = f * c + i * torch.tanh(g)
            h = torch.sigmoid(o + self.peep[2] * c) * torch.tanh(c)
            out.append(h)
        return torch.stack(out), c


steps = 64
batch_size = 128
in_dim = 256
hidden = 256


def get_inputs():
    return [torch.randn(steps, batch_size, in_dim), torch.randn(batch_size, hidden), torch.randn(batch_size, hidden)]


def get_init_inputs():
    return [in_dim, hidden]
