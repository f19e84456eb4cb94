"""KERNEL_NAME: a CUDA kernel for PyTorch that was compiled by Tegula; kernel.json says for what."""
from typing import Any

from . import _launch
from ._launch import OPERATOR, PARAMETERS, synchronize


def KERNEL_NAME(*values: Any, **named: Any) -> Any:
    """Runs the kernel on CUDA tensors, on the current stream; tensors and numbers in order, or by name."""
    if len(values) > len(PARAMETERS) or set(named) - set(PARAMETERS[len(values):]):
        raise TypeError(f"KERNEL_NAME takes ({', '.join(PARAMETERS)})")
    missing = [name for name in PARAMETERS[len(values):] if name not in named]
    if missing:
        raise TypeError(f"KERNEL_NAME lacks {', '.join(missing)}")
    return OPERATOR(*values, *(named[name] for name in PARAMETERS[len(values):]))


__all__ = ["KERNEL_NAME", "synchronize"]
