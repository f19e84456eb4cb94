import torch
import torch.nn as nn


class Model(nn.Module):
    """One AdamW step on two matrices with clipping by the norm of all gradients together. Gives the new weights and
    moments, and the norm; nothing is changed in place."""

    def __init__(self, lr, beta1, beta2, eps, decay, max_norm, step):
        super().__init__()
        self.lr, self.beta1, self.beta2, self.eps, self.decay, self.max_norm = lr, beta1, beta2, eps, decay, max_norm
        self.correct1, self.correct2 = 1 - beta1 ** step, 1 - beta2 ** step

    def update(self, w, g, m, v, scale):
        g = g * scale
        m = self.beta1 * m + (1 - self.beta1) * g
        v = self.beta2 * v + (1 - self.beta2) * g * g
        w = w * (1 - self.lr * self.decay)
        return w - self.lr * (m / self.correct1) / ((v / self.correct2).sqrt() + self.eps), m, v

    def forward(self, w1, g1, m1, v1, w2, g2, m2, v2):
        norm = (g1.pow(2).sum() + g2.pow(2).sum()).sqrt()
        scale = (self.max_norm / (norm + 1e-6)).clamp(max=1.0)
        return *self.update(w1, g1, m1, v1.abs(), scale), *self.update(w2, g2, m2, v2.abs(), scale), norm


rows = 2048
columns = 1536
others = 1024


def get_inputs():
    shapes = [(rows, columns)] * 4 + [(columns, others)] * 4
    return [torch.randn(*shape) * scale for shape, scale in zip(shapes, (1.0, 1.0, 0.1, 0.01) * 2)]


def get_init_inputs():
    return [1e-2, 0.9, 0.99, 1e-6, 0.1, 1.0, 20]
