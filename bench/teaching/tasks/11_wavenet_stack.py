import torch
import torch.nn as nn
import torch.nn.functional as F


class GatedResidualLayer(nn.Module):
    def __init__(self, residual_channels, skip_channels, kernel_size, dilation):
        super().__init__()
        self.left_pad = (kernel_size - 1) * dilation
        self.conv = nn.Conv1d(
            residual_channels, 2 * residual_channels, kernel_size, dilation=dilation
        )
        self.res = nn.Conv1d(residual_channels, residual_channels, 1)
        self.skip = nn.Conv1d(residual_channels, skip_channels, 1)

    def forward(self, x):
        y = self.conv(F.pad(x, (self.left_pad, 0)))
        filt, gate = y.chunk(2, dim=1)
        z = torch.tanh(filt) * torch.sigmoid(gate)
        return x + self.res(z), self.skip(z)


class Model(nn.Module):
    """WaveNet-like stack: dilated causal gated convolutions with summed skips."""

    def __init__(self, in_channels, residual_channels, skip_channels, kernel_size, num_layers):
        super().__init__()
        self.input = nn.Conv1d(in_channels, residual_channels, 1)
        self.layers = nn.ModuleList(
            [
                GatedResidualLayer(residual_channels, skip_channels, kernel_size, 2 ** i)
                for i in range(num_layers)
            ]
        )
        self.post = nn.Conv1d(skip_channels, in_channels, 1)

    def forward(self, x):
        x = self.input(x)
        skip_sum = 0
        for layer in self.layers:
            x, skip = layer(x)
            skip_sum = skip_sum + skip
        return self.post(F.relu(skip_sum))


batch_size = 4
in_channels = 16
residual_channels = 32
skip_channels = 64
kernel_size = 2
num_layers = 3
length = 2048


def get_inputs():
    return [torch.randn(batch_size, in_channels, length)]


def get_init_inputs():
    return [in_channels, residual_channels, skip_channels, kernel_size, num_layers]
