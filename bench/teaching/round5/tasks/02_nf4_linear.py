import torch
import torch.nn as nn
import torch.nn.functional as F

NF4_LEVELS = [
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
    -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
    0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
]


class Model(nn.Module):
    """
    QLoRA-style 4-bit NormalFloat weights: two codes in a byte (the first in the high nibble),
    one absmax for each block of the flattened weight; the last block may be short.
    """

    def __init__(self, in_features, out_features, block_size):
        super().__init__()
        self.shape = (out_features, in_features)
        self.numel = out_features * in_features
        self.block_size = block_size
        num_blocks = (self.numel + block_size - 1) // block_size
        self.register_buffer("packed", torch.randint(0, 256, ((self.numel + 1) // 2,), dtype=torch.uint8))
        self.register_buffer("absmax", 0.02 + 0.1 * torch.rand(num_blocks))
        self.register_buffer("code", torch.tensor(NF4_LEVELS))
        self.bias = nn.Parameter(torch.zeros(out_features).uniform_(-0.1, 0.1))

    def dequantize(self):
        idx = torch.stack((self.packed >> 4, self.packed & 0x0F), dim=-1).flatten()[: self.numel]
        values = self.code[idx.long()]
        block = torch.arange(self.numel, device=idx.device) // self.block_size
        return (values * self.absmax[block]).view(self.shape)

    def forward(self, x):
        return F.linear(x, self.dequantize(), self.bias)


batch_size = 24
in_features = 120
out_features = 84
block_size = 64


def get_inputs():
    return [torch.randn(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, block_size]
