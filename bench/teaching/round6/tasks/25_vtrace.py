import torch
import torch.nn as nn


class Model(nn.Module):
    """V-trace targets and advantages of off-policy actor critic, from the last step to the first; an episode that ends
    passes nothing back."""

    def __init__(self, gamma, rho_max, c_max):
        super().__init__()
        self.gamma = gamma
        self.rho_max = rho_max
        self.c_max = c_max

    def forward(self, log_ratio, rewards, values, last_value, done):
        # log_ratio, rewards, values (T, B), last_value (B,), done (T, B) bool
        ratio = torch.exp(log_ratio.clamp(-10, 10))
        rho, c = ratio.clamp(max=self.rho_max), ratio.clamp(max=self.c_max)
        discount = self.gamma * (~done).to(values.dtype)
        following = torch.cat([values[1:], last_value[None]])
        delta = rho * (rewards + discount * following - values)
        off = torch.zeros_like(last_value)
        offs = []
        for t in range(values.shape[0] - 1, -1, -1):
            off = delta[t] + discount[t] * c[t] * off
            offs.append(off)
        targets = values + torch.stack(offs[::-1])
        ahead = torch.cat([targets[1:], last_value[None]])
        return targets, rho * (rewards + discount * ahead - values)


steps = 256
batch_size = 16384


def get_inputs():
    return [
        torch.randn(steps, batch_size) * 0.3,
        torch.randn(steps, batch_size),
        torch.randn(steps, batch_size),
        torch.randn(batch_size),
        torch.rand(steps, batch_size) < 0.02,
    ]


def get_init_inputs():
    return [0.99, 1.0, 1.0]
