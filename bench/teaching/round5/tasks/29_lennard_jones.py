import torch
import torch.nn as nn


class Model(nn.Module):
    """
    Lennard-Jones energy (shifted to zero at the cutoff) and forces in a periodic cube by the minimum image.
    Pairs nearer than r_min act as if they were at that distance.
    """

    def __init__(self, box, cutoff, sigma, epsilon, r_min):
        super().__init__()
        self.box, self.cutoff, self.r_min = box, cutoff, r_min
        self.sigma, self.epsilon = sigma, epsilon
        s6 = (sigma / cutoff) ** 6
        self.shift = 4.0 * epsilon * (s6 * s6 - s6)

    def forward(self, pos):
        # (N, 3)
        diff = pos[:, None, :] - pos[None, :, :]
        diff = diff - self.box * torch.round(diff / self.box)
        r2 = diff.pow(2).sum(dim=-1)
        pair = (r2 < self.cutoff ** 2) & ~torch.eye(pos.shape[0], dtype=torch.bool, device=pos.device)

        r2 = r2.clamp(min=self.r_min ** 2)
        s6 = (self.sigma ** 2 / r2) ** 3
        energy = torch.where(pair, 4.0 * self.epsilon * (s6 * s6 - s6) - self.shift, 0.0)
        strength = torch.where(pair, 24.0 * self.epsilon * (2.0 * s6 * s6 - s6) / r2, 0.0)
        forces = (strength.unsqueeze(-1) * diff).sum(dim=1)
        return 0.5 * energy.sum(), forces


num_atoms = 96
box = 7.0


def get_inputs():
    return [torch.rand(num_atoms, 3) * box]


def get_init_inputs():
    return [box, 2.5, 1.0, 0.8, 0.85]
