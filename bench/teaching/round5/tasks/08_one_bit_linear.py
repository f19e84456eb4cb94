import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """
    BitNet-like linear layer: weights of +-1 stored as bits (least significant bit first), a scale
    for each output, on an input that is normalised by its root mean square.
    """

    def __init__(self, in_features, out_features, eps):
        super().__init__()
        self.in_features = in_features
        self.eps = eps
        self.register_buffer("weight_bits", torch.randint(0, 256, (out_features, in_features // 8), dtype=torch.uint8))
        self.scale = nn.Parameter(torch.rand(out_features) + 0.5)

    def unpack(self, dtype):
        shifts = torch.arange(8, dtype=torch.uint8, device=self.weight_bits.device)
        bits = torch.bitwise_right_shift(self.weight_bits.unsqueeze(-1), shifts).bitwise_and(1)
        return bits.flatten(1).to(dtype).mul(2).sub(1)  # (out, in)

    def forward(self, x):
        x = x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return F.linear(x, self.unpack(x.dtype)) * (self.scale * self.in_features ** -0.5)


batch_size = 20
in_bytes = 24
out_features = 100


def get_inputs():
    return [torch.randn(batch_size, in_bytes * 8)]


def get_init_inputs():
    return [in_bytes * 8, out_features, 1e-5]
