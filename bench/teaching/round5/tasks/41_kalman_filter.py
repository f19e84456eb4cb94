import torch
import torch.nn as nn


class Model(nn.Module):
    """
    Kalman filters of many scalar tracks with a constant-velocity model, position measured; samples may be missing.
    State (position, velocity); noise levels are learned as logarithms. Gives filtered states and the last covariances.
    """

    def __init__(self, dt):
        super().__init__()
        self.log_q = nn.Parameter(torch.tensor(-1.0))
        self.log_r = nn.Parameter(torch.tensor(-0.5))
        self.register_buffer("trans", torch.tensor([[1.0, dt], [0.0, 1.0]]))
        self.register_buffer("noise", torch.tensor([[dt ** 3 / 3, dt ** 2 / 2], [dt ** 2 / 2, dt]]))
        self.register_buffer("obs", torch.tensor([[1.0, 0.0]]))

    def forward(self, z, observed):
        # z: (B, T), observed: (B, T) bool
        B, T = z.shape
        Q = self.noise * self.log_q.exp()
        R = self.log_r.exp()
        x = z.new_zeros(B, 2, 1)
        P = 4.0 * torch.eye(2, dtype=z.dtype, device=z.device).expand(B, 2, 2)
        eye = torch.eye(2, dtype=z.dtype, device=z.device)

        states = []
        for t in range(T):
            x = self.trans @ x
            P = self.trans @ P @ self.trans.t() + Q

            S = self.obs @ P @ self.obs.t() + R  # (B, 1, 1)
            K = (P @ self.obs.t()) / S  # (B, 2, 1)
            seen = observed[:, t].view(B, 1, 1)
            innovation = z[:, t].view(B, 1, 1) - self.obs @ x
            x = torch.where(seen, x + K * innovation, x)
            P = torch.where(seen, (eye - K @ self.obs) @ P, P)
            states.append(x.squeeze(-1))
        return torch.stack(states, dim=1), P


batch_size = 10
seq_len = 24


def get_inputs():
    z = torch.cumsum(torch.randn(batch_size, seq_len), dim=1)
    return [z, torch.rand(batch_size, seq_len) < 0.8]


def get_init_inputs():
    return [0.5]
