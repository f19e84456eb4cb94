import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """
    FiLM: a conditioning vector predicts per-channel scale and shift, applied to
    instance-normalised convolution features, with a residual connection.
    """

    def __init__(self, channels, cond_dim, hidden_dim):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.InstanceNorm2d(channels, affine=False, track_running_stats=False)
        self.film = nn.Sequential(
            nn.Linear(cond_dim, hidden_dim),
            nn.SiLU(),
            nn.Linear(hidden_dim, 2 * channels),
        )

    def forward(self, x, cond):
        gamma, beta = self.film(cond).chunk(2, dim=-1)
        h = self.norm(self.conv(x))
        h = (1.0 + gamma[:, :, None, None]) * h + beta[:, :, None, None]
        return x + F.relu(h)


batch_size = 8
channels = 32
height = 48
width = 48
cond_dim = 64
hidden_dim = 128


def get_inputs():
    return [
        torch.randn(batch_size, channels, height, width),
        torch.randn(batch_size, cond_dim),
    ]


def get_init_inputs():
    return [channels, cond_dim, hidden_dim]
