import torch
import torch.nn as nn


class Model(nn.Module):
    """
    One training step's update of a small network's three tensors: gradients clipped by their global norm, Nesterov
    momentum, weight decay decoupled from it and not for the bias. Gives new tensors, new momenta and the norm.
    """

    def __init__(self, vocab, dim, hidden, lr, momentum, weight_decay, max_norm):
        super().__init__()
        self.lr = lr
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.max_norm = max_norm
        self.embedding = nn.Parameter(torch.randn(vocab, dim))
        self.weight = nn.Parameter(torch.randn(hidden, dim) * dim ** -0.5)
        self.bias = nn.Parameter(torch.randn(hidden) * 0.1)
        for name in ("embedding", "weight", "bias"):
            self.register_buffer(f"{name}_momentum", torch.randn_like(getattr(self, name)) * 0.01)

    def update(self, param, buf, grad, decay):
        buf = self.momentum * buf + grad
        direction = grad + self.momentum * buf
        return param * (1.0 - self.lr * decay) - self.lr * direction, buf

    def forward(self, grad_embedding, grad_weight, grad_bias):
        grads = [grad_embedding, grad_weight, grad_bias]
        total_norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in grads]))
        clip = torch.clamp(self.max_norm / (total_norm + 1e-6), max=1.0)
        grads = [g * clip for g in grads]

        embedding, m_e = self.update(self.embedding, self.embedding_momentum, grads[0], self.weight_decay)
        weight, m_w = self.update(self.weight, self.weight_momentum, grads[1], self.weight_decay)
        bias, m_b = self.update(self.bias, self.bias_momentum, grads[2], 0.0)
        return embedding, weight, bias, m_e, m_w, m_b, total_norm


vocab = 70
dim = 24
hidden = 36


def get_inputs():
    return [torch.randn(vocab, dim), torch.randn(hidden, dim), torch.randn(hidden)]


def get_init_inputs():
    return [vocab, dim, hidden, 0.1, 0.9, 0.01, 5.0]
