import torch
import torch.nn as nn


class Model(nn.Module):
    """
    Scatters points into a dense voxel grid around the origin: the mean of the features and of the offsets from the
    voxel's centre in each voxel, and how many points there are. Points outside of the grid are left out.
    """

    def __init__(self, grid_size, voxel_size):
        super().__init__()
        self.grid_size = grid_size
        self.voxel_size = voxel_size
        self.low = -0.5 * grid_size * voxel_size

    def forward(self, points, features):
        G = self.grid_size
        position = (points - self.low) / self.voxel_size
        inside = ((position >= 0) & (position < G)).all(dim=1)
        ijk = position.long().clamp(0, G - 1)
        offset = points - (self.low + (ijk.to(points.dtype) + 0.5) * self.voxel_size)
        flat = (ijk[:, 0] * G + ijk[:, 1]) * G + ijk[:, 2]
        keep = inside.to(features.dtype).unsqueeze(1)
        values = torch.where(inside.unsqueeze(1), torch.cat([features, offset], dim=1), 0.0)

        total = values.new_zeros(G ** 3, values.shape[1])
        total.scatter_add_(0, flat.unsqueeze(1).expand_as(values), values)
        count = values.new_zeros(G ** 3, 1).scatter_add_(0, flat.unsqueeze(1), keep)
        mean = total / count.clamp(min=1.0)
        return mean.view(G, G, G, -1), count.view(G, G, G).long()


num_points = 500
num_features = 5
grid_size = 6


def get_inputs():
    return [torch.rand(num_points, 3) * 4.0 - 2.0, torch.randn(num_points, num_features)]


def get_init_inputs():
    return [grid_size, 0.5]
