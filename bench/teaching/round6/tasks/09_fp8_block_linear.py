import torch
import torch.nn as nn


class Model(nn.Module):
    """Linear layer with SiLU gate on float8 weights that have a scale for each block of `block` x `block` elements."""

    def __init__(self, in_blocks, out_blocks, block):
        super().__init__()
        self.block = block
        weight = torch.randn(2 * out_blocks * block, in_blocks * block)
        self.register_buffer("weight", weight.to(torch.float8_e4m3fn))
        self.register_buffer("scale", 0.01 + 0.02 * torch.rand(2 * out_blocks, in_blocks))

    def forward(self, x):
        # x (M, in_blocks * block) bfloat16; the first half of the outputs is the gate
        scale = self.scale.repeat_interleave(self.block, dim=0).repeat_interleave(self.block, dim=1)
        w = (self.weight.to(scale.dtype) * scale).to(x.dtype)
        gate, up = (x @ w.t()).float().chunk(2, dim=-1)
        return (gate * torch.sigmoid(gate) * up).to(x.dtype)


rows = 32
in_blocks = 32
out_blocks = 32
block = 128


def get_inputs():
    return [torch.randn(rows, in_blocks * block).bfloat16()]


def get_init_inputs():
    return [in_blocks, out_blocks, block]
