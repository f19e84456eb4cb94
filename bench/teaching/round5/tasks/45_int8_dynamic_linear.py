import torch
import torch.nn as nn


def quantize_symmetric(x, dim, eps=1e-8):
    """int8 values in -127..127 and their scales along `dim`."""
    scale = x.abs().amax(dim=dim, keepdim=True).clamp(min=eps) / 127.0
    q = torch.clamp(torch.round(x / scale), -127, 127).to(torch.int8)
    return q, scale


class Model(nn.Module):
    """
    Dynamic W8A8 linear layer: weights quantised for each output channel, activations for each token, products summed up
    in int32, scales applied to the sums. Gives these sums too.
    """

    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        shape = x.shape
        x_q, x_scale = quantize_symmetric(x.reshape(-1, shape[-1]), dim=1)  # (M, K), (M, 1)
        w_q, w_scale = quantize_symmetric(self.linear.weight, dim=1)  # (N, K), (N, 1)
        acc = torch.matmul(x_q.to(torch.int32), w_q.to(torch.int32).t())
        out = acc.to(x.dtype) * x_scale * w_scale.t() + self.linear.bias
        return out.view(*shape[:-1], -1), acc


batch_size = 2
seq_len = 10
in_features = 56
out_features = 40


def get_inputs():
    return [torch.randn(batch_size, seq_len, in_features)]


def get_init_inputs():
    return [in_features, out_features]
