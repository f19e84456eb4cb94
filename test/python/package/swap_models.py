"""Modules and programs that the tests of tegula.swap share."""
import torch
from torch import nn

MLP = """
kernel mlp_backward(x: T[..., D], gate_weight: T[H, D], up_weight: T[H, D], down_weight: T[D, H], grad_y: T[..., D])
  -> (grad_x: T[..., D], grad_gate_weight: T[H, D], grad_up_weight: T[H, D], grad_down_weight: T[D, H])
{
  a[..., h] = sum(x[..., d] * gate_weight[h, d] for d)
  b[..., h] = sum(x[..., d] * up_weight[h, d] for d)
  g[..., h] = sum(grad_y[..., d] * down_weight[d, h] for d)
  s[..., h] = sigmoid(a[..., h])
  ga[..., h] = g[..., h] * b[..., h] * s[..., h] * (1 + a[..., h]*(1 - s[..., h]))
  gb[..., h] = g[..., h] * a[..., h] * s[..., h]
  grad_x[..., d] = sum(ga[..., h] * gate_weight[h, d] + gb[..., h] * up_weight[h, d] for h)
  grad_gate_weight[h, d] = sum(ga[..., h] * x[..., d] for ...)
  grad_up_weight[h, d] = sum(gb[..., h] * x[..., d] for ...)
  grad_down_weight[d, h] = sum(grad_y[..., d] * a[..., h] * s[..., h] * b[..., h] for ...)
}

kernel mlp(x: T[..., D], gate_weight: T[H, D], up_weight: T[H, D], down_weight: T[D, H]) -> (y: T[..., D]) {
  h: T[..., j] = silu(sum(x[..., d] * gate_weight[j, d] for d)) * sum(x[..., d] * up_weight[j, d] for d)
  y[..., d] = sum(h[..., j] * down_weight[d, j] for j)
}
"""


class Mlp(nn.Module):
    def __init__(self, width=8, inner=12):
        super().__init__()
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = Mlp()

    def forward(self, x):
        return x + self.mlp(x)


class Net(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.layers = nn.ModuleList(Block() for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Around(nn.Module):
    """A model that calls one part with whatever it is given."""

    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, *args, **kwargs):
        return self.part(*args, **kwargs)


def make(forward, **state):
    """A module with this forward, parameters for tensors and attributes for the rest."""

    class Part(nn.Module):
        pass

    Part.forward = forward
    part = Part()
    for name, value in state.items():
        setattr(part, name, nn.Parameter(value) if isinstance(value, torch.Tensor) and value.is_floating_point() else value)
    return part
