import torch
import torch.nn as nn


class Model(nn.Module):
    """One Muon step: momentum (Nesterov), Newton-Schulz iterations that make its singular values alike, a step with
    weight decay."""

    def __init__(self, rows, columns, momentum, lr, decay, iterations):
        super().__init__()
        self.momentum, self.lr, self.decay, self.iterations = momentum, lr, decay, iterations
        self.weight = nn.Parameter(torch.randn(rows, columns) * 0.02)
        self.register_buffer("velocity", torch.randn(rows, columns) * 0.1)

    def forward(self, grad):
        velocity = self.momentum * self.velocity + grad
        x = grad + self.momentum * velocity
        x = x / (x.norm() + 1e-7)
        for _ in range(self.iterations):
            gram = x @ x.t()
            x = 2.0 * x - 1.5 * (gram @ x) + 0.5 * (gram @ (gram @ x))
        step = self.lr * max(1.0, self.weight.shape[0] / self.weight.shape[1]) ** 0.5
        return self.weight * (1 - self.lr * self.decay) - step * x, velocity


rows = 1024
columns = 1536
iterations = 3


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return [rows, columns, 0.95, 0.02, 0.1, iterations]
