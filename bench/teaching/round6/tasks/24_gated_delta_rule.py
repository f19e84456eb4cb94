import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Gated delta rule: the state decays, what it holds for the key is read and replaced in part by the value, and the
    query reads it. Keys are normalised."""

    def forward(self, q, k, v, log_decay, beta):
        # q, k (B, T, H, K), v (B, T, H, V), log_decay, beta (B, T, H)
        B, T, H, K = q.shape
        k = F.normalize(k, dim=-1, eps=1e-6)
        q = q * K ** -0.5
        decay = torch.exp(-F.softplus(log_decay))
        beta = torch.sigmoid(beta)
        state = torch.zeros(B, H, K, v.shape[-1], dtype=v.dtype, device=v.device)
        outs = []
        for t in range(T):
            state = state * decay[:, t, :, None, None]
            held = torch.einsum("bhk,bhkv->bhv", k[:, t], state)
            change = (v[:, t] - held) * beta[:, t, :, None]
            state = state + k[:, t, :, :, None] * change[:, :, None, :]
            outs.append(torch.einsum("bhk,bhkv->bhv", q[:, t], state))
        return torch.stack(outs, dim=1), state


batch_size = 4
seq_len = 256
num_heads = 16
key_dim = 64
value_dim = 64


def get_inputs():
    return [
        torch.randn(batch_size, seq_len, num_heads, key_dim),
        torch.randn(batch_size, seq_len, num_heads, key_dim),
        torch.randn(batch_size, seq_len, num_heads, value_dim),
        torch.randn(batch_size, seq_len, num_heads) - 2,
        torch.randn(batch_size, seq_len, num_heads),
    ]


def get_init_inputs():
    return []
