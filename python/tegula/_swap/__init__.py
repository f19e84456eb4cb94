"""Modules of a PyTorch model that run as Tegula programs. `tegula.swap` is the entry; docs/models.md explains all.

  calls    a call's inputs as a flat list, its results as a form to fill
  snapshot what attributes of a module held, to compare with
  moved    a module's state as training or loading could make it
  guards   the calls that a check covers, and what tells others apart
  program  a program as an operator of PyTorch
  module   the class of a swapped module: guards, then the program or the module's own forward
  examine  one call of a module and its program side by side
  model    finds modules, captures their calls, swaps, reports, restores
"""
from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Sequence, Union


@dataclass(frozen=True)
class Replacement:
    """A program for modules of a model.

    `source`: a file, or a `tegula.Kernel`. `kernel`: its name in the file; None: the last that is no backward
    kernel. `backward`: as for `tegula.library`. `constants`: values of the program's constants and scalars that are
    no attribute of the module. `precision`, `tuned`: as for `tegula.compile`."""

    source: Any
    kernel: Optional[str] = None
    backward: Union[str, Sequence[str]] = ()
    constants: Mapping[str, Any] = field(default_factory=dict)
    precision: Optional[str] = None
    tuned: bool = False


def swap(model: Any, replacements: Mapping[str, Union[str, os.PathLike, Replacement, Any]], example_inputs: Any, *,
         gradients: Optional[bool] = None, tolerance: float = 2.0, strict: bool = True) -> Any:
    """Replaces modules of a PyTorch model by Tegula programs, in place, and returns a `Swap`.

    `replacements`: for a pattern of module names ("layers.*.mlp"; `*` stands for one name, `**` for any number) a
    file, a Kernel or a Replacement. A program's parameters stand for the module's as in tegula-eval: forward's
    inputs in order, parameters and buffers by path with dots as underscores, constants by the names of attributes.

    `example_inputs`: the positional arguments of one call of the model as a tuple, the keyword arguments as a dict,
    a list of such calls, or a function that is called with the model. Each module is checked on what it is given
    there: its program must be as near to the module in float64 as the module itself is, by the rule of
    docs/bench.md, or within `tolerance` times the module's own error. Sizes between the smallest and the largest of
    those calls are served by the program; any other call runs the module's own forward and is counted.

    `gradients`: whether calls record gradients. None: where grad mode is on and something requires a gradient. False:
    examples run under torch.no_grad(), and calls that need gradients run the module's own forward. Where they are needed
    the program must have backward kernels, which are checked too.

    `strict`: one refusal leaves the model as it was, and raises SwapError with all reasons. Otherwise the rest is
    swapped, and `report()` tells the refusals.

    Raises SwapError, ProgramError for a wrong program, ValueError for a wrong argument, and what the model raises."""
    from .model import swap as swap_model

    return swap_model(model, replacements, example_inputs, gradients, tolerance, strict)


def swapped(model: Any) -> Any:
    """The `Swap` of a model that holds swapped modules already: a deep copy, or one that was unpickled."""
    from .model import swapped as swapped_model

    return swapped_model(model)
