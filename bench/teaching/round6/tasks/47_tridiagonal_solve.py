import torch
import torch.nn as nn


class Model(nn.Module):
    """Solves many tridiagonal systems by elimination along the rows and substitution back (Thomas); diagonals dominate."""

    def forward(self, lower, diagonal, upper, right):
        # (n, B); lower[0] and upper[n - 1] are not used
        d = diagonal.abs() + lower.abs() + upper.abs() + 1
        n = d.shape[0]
        c, r = [upper[0] / d[0]], [right[0] / d[0]]
        for i in range(1, n):
            pivot = d[i] - lower[i] * c[-1]
            c.append(upper[i] / pivot)
            r.append((right[i] - lower[i] * r[-1]) / pivot)
        x = [r[-1]]
        for i in range(n - 2, -1, -1):
            x.append(r[i] - c[i] * x[-1])
        return torch.stack(x[::-1])


unknowns = 128
batch_size = 32768


def get_inputs():
    return [torch.randn(unknowns, batch_size) for _ in range(4)]


def get_init_inputs():
    return []
