import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """
    Diagonal state-space layer with input-dependent softplus step size (S6-like):
        h_t = exp(dt_t * A) * h_{t-1} + dt_t * B_t * u_t
        y_t = <C_t, h_t> + D * u_t
    unrolled over time.
    """

    def __init__(self, d_inner, d_state, dt_rank):
        super().__init__()
        self.d_state = d_state
        self.dt_rank = dt_rank
        self.x_proj = nn.Linear(d_inner, dt_rank + 2 * d_state, bias=False)
        self.dt_proj = nn.Linear(dt_rank, d_inner, bias=True)
        # softplus(bias) spread between 1e-3 and 1e-1
        dt = torch.exp(torch.linspace(math.log(1e-3), math.log(1e-1), d_inner))
        with torch.no_grad():
            self.dt_proj.bias.copy_(dt + torch.log(-torch.expm1(-dt)))
        A = torch.arange(1, d_state + 1, dtype=torch.float32).repeat(d_inner, 1)
        self.A_log = nn.Parameter(torch.log(A))
        self.D = nn.Parameter(torch.ones(d_inner))

    def forward(self, u):
        # u: (B, L, d_inner)
        batch, L, d_inner = u.shape
        A = -torch.exp(self.A_log)
        dt, B, C = torch.split(
            self.x_proj(u), [self.dt_rank, self.d_state, self.d_state], dim=-1
        )
        dt = F.softplus(self.dt_proj(dt))  # (B, L, d_inner)
        decay = torch.exp(dt.unsqueeze(-1) * A)  # (B, L, d_inner, N)
        drive = (dt * u).unsqueeze(-1) * B.unsqueeze(2)

        h = torch.zeros(batch, d_inner, self.d_state, device=u.device, dtype=u.dtype)
        ys = []
        for t in range(L):
            h = decay[:, t] * h + drive[:, t]
            ys.append((h * C[:, t].unsqueeze(1)).sum(dim=-1))
        y = torch.stack(ys, dim=1)
        return y + self.D * u


batch_size = 4
seq_len = 32
d_inner = 128
d_state = 16
dt_rank = 8


def get_inputs():
    return [torch.randn(batch_size, seq_len, d_inner)]


def get_init_inputs():
    return [d_inner, d_state, dt_rank]
