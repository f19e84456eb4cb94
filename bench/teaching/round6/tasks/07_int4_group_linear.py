import torch
import torch.nn as nn


class Model(nn.Module):
    """Linear layer on 4-bit weights. Word [k, n] of qweight holds input features 8*k .. 8*k + 7 of output n, the lowest
    nibble first; scale and zero point are those of a group of input features."""

    def __init__(self, in_features, out_features, group_size):
        super().__init__()
        self.group_size = group_size
        groups = in_features // group_size
        words = dict(low=-2 ** 31, high=2 ** 31 - 1, dtype=torch.int32)
        self.register_buffer("qweight", torch.randint(size=(in_features // 8, out_features), **words))
        self.register_buffer("zeros", torch.randint(0, 16, (groups, out_features), dtype=torch.uint8))
        self.register_buffer("scales", (0.005 + 0.02 * torch.rand(groups, out_features)).half())

    def forward(self, x):
        # x (M, in_features) half
        shifts = torch.arange(0, 32, 4, dtype=torch.int32, device=x.device)
        nibbles = (self.qweight[:, None, :] >> shifts[None, :, None]) & 0xF
        w = nibbles.reshape(-1, self.qweight.shape[1])
        zeros = self.zeros.repeat_interleave(self.group_size, dim=0).int()
        scales = self.scales.repeat_interleave(self.group_size, dim=0)
        return x @ ((w - zeros).to(x.dtype) * scales)


rows = 16
groups = 32
words_per_group = 16
out_features = 8192


def get_inputs():
    return [torch.randn(rows, groups * words_per_group * 8).half()]


def get_init_inputs():
    return [groups * words_per_group * 8, out_features, words_per_group * 8]
