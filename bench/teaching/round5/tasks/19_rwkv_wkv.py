import torch
import torch.nn as nn


class Model(nn.Module):
    """
    RWKV-4 time mixing behind its projections: the wkv recurrence in its stable form, the exponents' maximum kept beside
    numerator and denominator, gated by the receptance.
    """

    def __init__(self, channels):
        super().__init__()
        self.time_decay = nn.Parameter(torch.linspace(-5.0, 1.0, channels))
        self.time_first = nn.Parameter(torch.randn(channels) * 0.3)

    def forward(self, r, k, v):
        # (B, T, C) each
        B, T, C = k.shape
        w = -torch.exp(self.time_decay)
        u = self.time_first

        num = torch.zeros(B, C, dtype=k.dtype, device=k.device)
        den = torch.zeros_like(num)
        top = torch.full_like(num, -1e38)
        out = []
        for t in range(T):
            kt, vt = k[:, t], v[:, t]
            q = torch.maximum(top, u + kt)
            e1, e2 = torch.exp(top - q), torch.exp(u + kt - q)
            out.append((e1 * num + e2 * vt) / (e1 * den + e2))

            q = torch.maximum(top + w, kt)
            e1, e2 = torch.exp(top + w - q), torch.exp(kt - q)
            num = e1 * num + e2 * vt
            den = e1 * den + e2
            top = q
        return torch.sigmoid(r) * torch.stack(out, dim=1), num, den, top


batch_size = 3
seq_len = 36
channels = 64


def get_inputs():
    return [torch.randn(batch_size, seq_len, channels) for _ in range(3)]


def get_init_inputs():
    return [channels]
