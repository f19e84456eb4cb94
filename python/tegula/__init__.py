"""Tegula in Python: compiles kernels and calls them on tensors.

    import tegula, torch

    scale = tegula.compile("kernel scale(x: f32[M, N], s: f32) -> (y: f32[M, N]) { y[i, j] = s * x[i, j] }")
    y = scale(torch.ones(2, 3), 0.5)

`tegula.compile` and `tegula.load` give a `Kernel`; `tegula.library` makes an operator of PyTorch of it,
`tegula.swap` puts it in place of a model's module.
docs/python.md explains all.
"""

try:
    from ._tegula import llvm_version, version
except ModuleNotFoundError:
    raise ImportError(f"the module tegula._tegula is not in {__path__[0]}: put a build's folder `python` on PYTHONPATH "
                      "(PYTHONPATH=build/dev/python), or use the .venv/bin/python that ./dev makes") from None

from ._errors import (
    Diagnostic,
    Edit,
    Error,
    Fix,
    InternalError,
    LaunchError,
    MissingError,
    Note,
    ProgramError,
    Span,
    SwapError,
    TegulaWarning,
)
from ._kernel import Compiled, Guard, Kernel, Parameter, compile, load
from ._jupyter import load_ipython_extension as load_ipython_extension
from ._library import library
from ._observe import AssertionFailed, Observation
from ._swap import Replacement, swap, swapped

__version__ = version()

__all__ = [
    "AssertionFailed", "Compiled", "Diagnostic", "Edit", "Error", "Fix", "Guard", "InternalError", "Kernel", "LaunchError",
    "MissingError", "Note", "Observation", "Parameter", "ProgramError", "Replacement", "Span", "SwapError", "TegulaWarning", "compile",
    "library", "llvm_version", "load", "swap", "swapped", "version",
]
