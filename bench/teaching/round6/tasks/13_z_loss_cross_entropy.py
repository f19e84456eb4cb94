import torch
import torch.nn as nn


class Model(nn.Module):
    """Cross entropy with label smoothing and a penalty on logsumexp^2; tokens whose label is negative do not count.
    Gives the mean loss, the mean penalty and the gradient of the sum of both with respect to the logits."""

    def __init__(self, smoothing, z_weight):
        super().__init__()
        self.smoothing = smoothing
        self.z_weight = z_weight

    def forward(self, logits, labels):
        # logits (M, V), labels (M,)
        V = logits.shape[1]
        counts = (labels >= 0)
        number = counts.sum().clamp(min=1)
        lse = torch.logsumexp(logits, dim=-1)
        picked = logits.gather(1, labels.clamp(min=0)[:, None]).squeeze(1)
        loss = lse - (1 - self.smoothing) * picked - self.smoothing * logits.mean(dim=-1)
        penalty = self.z_weight * lse ** 2
        p = torch.exp(logits - lse[:, None])
        grad = p * (1 + 2 * self.z_weight * lse)[:, None] - self.smoothing / V
        grad = grad.scatter_add(1, labels.clamp(min=0)[:, None], torch.full_like(lse, self.smoothing - 1)[:, None])
        grad = torch.where(counts[:, None], grad / number, torch.zeros_like(grad))
        zero = torch.zeros_like(lse)
        return torch.where(counts, loss, zero).sum() / number, torch.where(counts, penalty, zero).sum() / number, grad


tokens = 1024
vocabulary = 16000


def get_inputs():
    labels = torch.randint(0, vocabulary, (tokens,))
    return [torch.randn(tokens, vocabulary) * 2, torch.where(torch.rand(tokens) < 0.2, -100, labels)]


def get_init_inputs():
    return [0.1, 1e-3]
