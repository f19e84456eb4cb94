"""What a case of bench/real is: tensors at named sizes, a reference, and what the device has to do at least."""
import dataclasses
import importlib
import pathlib
from typing import Callable

import torch

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
# A class of kernels is a file of this folder.
CLASSES = ["decode", "prefill", "backward", "losses", "quantised", "products", "moe", "norms", "recurrences", "selection",
           "scatter", "science", "optimisers", "vision", "pointwise"]

bf16, f32, f8 = torch.bfloat16, torch.float32, torch.float8_e4m3fn


@dataclasses.dataclass
class Case:
    """One kernel at one set of sizes.

    `eager` takes the tensors by name and returns the outputs in order, then the inouts. It computes in the types that it is
    given, so that the same code in float64 is the truth of a check.
    """
    tensors: dict[str, torch.Tensor]
    eager: Callable
    bytes: int = 0  # that are read and written at least
    operations: dict[str, float] = dataclasses.field(default_factory=dict)  # by unit: bf16, f8, i8, f32
    peers: dict[str,
                Callable] = dataclasses.field(default_factory=dict)  # a function that imports the peer and returns its call
    timed: Callable | None = None  # returns the call that stands for eager mode in times, where that is not `eager`
    constants: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Kernel:
    """A case of any sizes, as its file declares it."""
    name: str
    group: str  # its class
    make: Callable
    full: dict[str, int]
    small: dict[str, int]
    tolerance: float
    compiled: bool  # whether torch.compile is timed
    mismatches: float  # share of integer results that may differ, where rounding decides between near ties

    @property
    def file(self) -> pathlib.Path:
        return PROGRAMS / f"{self.name}.tgl"

    def case(self, data: "Data", small: bool) -> Case:
        return self.make(data, **(self.small if small else self.full))


KERNELS: dict[str, Kernel] = {}


def kernel(full, small, tolerance=1e-2, compiled=True, mismatches=0.0):
    """Declares the decorated function, of data and sizes, as the case of its name."""
    def add(make):
        KERNELS[make.__name__] = Kernel(make.__name__, make.__module__.rpartition(".")[2], make, full, small, tolerance,
                                        compiled,
                                        mismatches)
        return make
    return add


def load() -> dict[str, Kernel]:
    """All kernels, by name, class after class."""
    for name in CLASSES:
        importlib.import_module(f"real.{name}")
    return KERNELS


class Data:
    """Makes tensors on a device from a seed."""

    def __init__(self, device: str, seed: int = 0):
        self.device = device
        self.generator = torch.Generator(device=device).manual_seed(seed)

    def normal(self, *shape, dtype=bf16, scale=1.0):
        return (torch.randn(*shape, device=self.device, generator=self.generator)*scale).to(dtype)

    def floats(self, *shape, scale=1.0):
        """Normal in float32."""
        return self.normal(*shape, dtype=f32, scale=scale)

    def uniform(self, *shape, low=0.0, high=1.0, dtype=f32):
        return (torch.rand(*shape, device=self.device, generator=self.generator)*(high - low) + low).to(dtype)

    def integers(self, low, high, *shape, dtype=torch.int32):
        """From low to high - 1."""
        return torch.randint(low, high, shape, device=self.device, generator=self.generator).to(dtype)

    def permutation(self, count, dtype=torch.int32):
        return torch.randperm(count, device=self.device, generator=self.generator).to(dtype)

    def distinct(self, high, *shape, dtype=torch.int32):
        """Rows of distinct integers below high."""
        *rows, count = shape
        keys = torch.rand(*rows, high, device=self.device, generator=self.generator)
        return keys.topk(count, -1).indices.to(dtype)

    def range(self, *bounds, dtype=torch.int64):
        return torch.arange(*bounds, device=self.device, dtype=dtype)


def wide(tensor):
    """In float32, or what is wider."""
    return tensor.to(torch.promote_types(f32, tensor.dtype))


def low(tensor):
    """In bfloat16, or float64 as it is."""
    return tensor if tensor.dtype == torch.float64 else tensor.to(bf16)


def gradients(function, inputs, weights):
    """Of the sum of the function's results times the weights, with regard to the inputs."""
    inputs = [one.detach().requires_grad_() for one in inputs]
    with torch.enable_grad():
        results = function(*inputs)
        return torch.autograd.grad(results, inputs, weights)


def backward(function, inputs, weights):
    """Returns what makes the call of the backward pass alone; the forward pass has run before it."""
    def make():
        given = [one.detach().clone().requires_grad_() for one in inputs]
        with torch.enable_grad():
            results = function(*given)
        return lambda: torch.autograd.grad(results, given, weights, retain_graph=True)
    return make
