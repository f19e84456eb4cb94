import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """
    sLSTM of xLSTM: exponential input gate, sigmoid forget gate, normaliser and stabiliser states, recurrent weights for
    each head alone. Gates in the order i, f, z, o.
    """

    def __init__(self, input_size, num_heads, head_dim):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, head_dim
        hidden = num_heads * head_dim
        self.weight = nn.Linear(input_size, 4 * hidden)
        self.recurrent = nn.Parameter(torch.randn(num_heads, head_dim, 4, head_dim) * head_dim ** -0.5)

    def forward(self, x):
        B, T, _ = x.shape
        H, D = self.num_heads, self.head_dim
        wx = self.weight(x).view(B, T, 4, H, D)

        h = x.new_zeros(B, H, D)
        c = x.new_zeros(B, H, D)
        n = x.new_zeros(B, H, D)
        m = x.new_full((B, H, D), float("-inf"))
        outputs = []
        for t in range(T):
            gates = wx[:, t] + torch.einsum("bhd,hdge->bghe", h, self.recurrent)
            i, f, z, o = gates.unbind(dim=1)
            log_f = F.logsigmoid(f)
            m_new = torch.maximum(log_f + m, i)
            i_gate = torch.exp(i - m_new)
            f_gate = torch.exp(log_f + m - m_new)
            c = f_gate * c + i_gate * torch.tanh(z)
            n = f_gate * n + i_gate
            m = m_new
            h = torch.sigmoid(o) * c / n
            outputs.append(h.reshape(B, H * D))
        return torch.stack(outputs, dim=1), c.flatten(1), n.flatten(1), m.flatten(1)


batch_size = 3
seq_len = 16
input_size = 24
num_heads = 4
head_dim = 10


def get_inputs():
    return [torch.randn(batch_size, seq_len, input_size)]


def get_init_inputs():
    return [input_size, num_heads, head_dim]
