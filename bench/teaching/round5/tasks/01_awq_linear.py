import torch
import torch.nn as nn


def unpack_awq(packed, bits=4):
    """int32 (rows, cols / 8) -> int32 (rows, cols). AWQ puts the columns 0 2 4 6 1 3 5 7 of a pack into its nibbles 0..7."""
    shifts = torch.arange(0, 32, bits, dtype=torch.int32, device=packed.device)
    nibbles = (packed[:, :, None] >> shifts) & 0xF
    undo = torch.tensor([0, 4, 1, 5, 2, 6, 3, 7], device=packed.device)
    return nibbles[:, :, undo].reshape(packed.shape[0], -1)


class Model(nn.Module):
    """Linear layer with AWQ-packed 4-bit weights: zeros (packed too) and scales per group of input features."""

    def __init__(self, in_features, out_features, group_size):
        super().__init__()
        self.group_size = group_size
        groups, packs = in_features // group_size, out_features // 8
        int32 = dict(low=-2 ** 31, high=2 ** 31 - 1, dtype=torch.int32)
        self.register_buffer("qweight", torch.randint(size=(in_features, packs), **int32))
        self.register_buffer("qzeros", torch.randint(size=(groups, packs), **int32))
        self.register_buffer("scales", 0.005 + 0.02 * torch.rand(groups, out_features))
        self.bias = nn.Parameter(0.1 * torch.randn(out_features))

    def dequantize(self, dtype):
        w = unpack_awq(self.qweight)
        z = unpack_awq(self.qzeros).repeat_interleave(self.group_size, dim=0)
        s = self.scales.repeat_interleave(self.group_size, dim=0)
        return (w - z).to(dtype) * s

    def forward(self, x):
        out = torch.matmul(x.reshape(-1, x.shape[-1]), self.dequantize(x.dtype))
        return (out + self.bias).reshape(x.shape[:-1] + (out.shape[-1],))


batch_size = 2
seq_len = 12
num_groups = 4
group_size = 32
num_packs = 20


def get_inputs():
    return [torch.randn(batch_size, seq_len, num_groups * group_size)]


def get_init_inputs():
    return [num_groups * group_size, num_packs * 8, group_size]
