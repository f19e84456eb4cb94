"""The class of a swapped module: what its forward does with a call.

The module stays the object that it was, of a class made for it that inherits from its own: names, state, hooks and
`isinstance` are as before. Parameters are read from it at each call.
"""
from __future__ import annotations

import collections
import functools
from typing import Any, Callable, Optional

import torch

from .._errors import LaunchError
from .calls import flatten, has_containers
from .guards import Checked, global_state
from .program import Program

ATTRIBUTE_NAME = "_tegula_swap"


class State:
    """What a swapped module carries: its program, the classes of calls that were checked, counts."""

    def __init__(self, name: str, program: Program, constants: dict[str, Any], checked: list[Checked],
                 errors: dict[str, float], tolerance: float):
        self.name, self.program, self.constants, self.checked, self.errors = name, program, constants, checked, errors
        self.tolerance = tolerance
        self.operator = program.operator
        self.calls = 0
        self.fallbacks: collections.Counter = collections.Counter()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "operator"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.operator = self.program.operator


def find(state: State, module: torch.nn.Module, args: tuple, kwargs: dict[str, Any]) -> tuple[Optional[Checked], Any]:
    """The class that a call belongs to and its flat inputs, or None and the reason why there is none."""
    keywords = tuple(kwargs)
    inputs = [*args, *kwargs.values()]
    layout: Any = ()
    if has_containers(inputs):
        layout, inputs = flatten([str(place) for place in range(len(args))] + list(keywords), inputs, repr)
    reason = "arguments"
    for one in state.checked:
        if one.positional != len(args) or one.keywords != keywords or len(one.inputs) != len(inputs):
            continue
        if layout != one.layout:
            continue
        reason = one.refuses(module, inputs)
        if reason is None:
            return one, inputs
    return None, reason


def unfit(program: Program, given: dict[str, Any]) -> Optional[str]:
    """Why tensors that a program updates in place cannot be given to it."""
    for name in program.updated:
        tensor = given[name]
        if not tensor.is_contiguous():
            return f"layout of {name}"
        storage = tensor.untyped_storage().data_ptr()
        for other, value in given.items():
            if other != name and isinstance(value, torch.Tensor) and value.untyped_storage().data_ptr() == storage:
                return f"{name} and {other} share memory"
    return None


def kinds_of(values: Any, module: Optional[torch.nn.Module]) -> list[str]:
    """The kinds of device of the tensors in an input, or, where it has none, of a module's state."""
    kinds: list[str] = []
    for value in values:
        found = [value.device.type] if isinstance(value, torch.Tensor) else \
            kinds_of(value.values() if type(value) is dict else value, None) if type(value) in (tuple, list, dict) else []
        for kind in found:
            if kind not in kinds:
                kinds.append(kind)
    if not kinds and module is not None:
        for tensor in [*module.parameters(), *module.buffers()]:
            return [tensor.device.type]
        return ["cpu"]
    return kinds


def serve(state: State, module: torch.nn.Module, args: tuple, kwargs: dict[str, Any]) -> tuple[bool, Any]:
    """Runs the program where it may: (True, its results), or (False, the reason why not)."""
    for kind in kinds_of((*args, *kwargs.values()), module):
        reason = global_state(kind)
        if reason is not None:
            return False, reason
    is_traced = torch.compiler.is_compiling()
    if is_traced and state.program.updated:
        return False, "torch.compile"  # which hides whether tensors share memory
    found, inputs = find(state, module, args, kwargs)
    if found is None:
        return False, inputs
    given = found.values(module, inputs)
    if state.program.updated:
        reason = unfit(state.program, given)
        if reason is not None:
            return False, reason
    if is_traced:
        results = state.operator(**given)
    else:
        try:
            results = state.operator(**given)
        except LaunchError as error:
            # Before anything ran: a size that a guard refuses, tensors on several devices.
            if not error.diagnostics or error.diagnostics[0].code != "C0002":
                raise
            return False, error.diagnostics[0].message
    for name in state.program.updated:
        if not given[name].is_inference():
            torch.autograd.graph.increment_version(given[name])
    tensors = [results] if isinstance(results, torch.Tensor) else [] if results is None else list(results)
    return True, found.form.fill(tensors + [inputs[place] for place in found.returned])


def forward_of(base: type) -> Callable:
    """The forward of a class whose modules are swapped."""

    @functools.wraps(base.forward)
    def forward(self, *args, **kwargs):
        state = self._tegula_swap
        is_served, results = serve(state, self, args, kwargs)
        if not torch.compiler.is_compiling():  # a count would make torch.compile compile again for each call
            if is_served:
                state.calls += 1
            else:
                state.fallbacks[results] += 1
        return results if is_served else base.forward(self, *args, **kwargs)

    return forward


@functools.cache
def class_of(base: type) -> type:
    """The class of swapped modules of class `base`; it has its name, since libraries choose by names."""

    def reduce(self: Any, protocol: int) -> tuple:
        make, arguments, *rest = object.__reduce_ex__(self, max(protocol, 2))
        return (_made, (base, *arguments[1:]), *rest)

    return type(base.__name__, (base,), {
        "forward": forward_of(base), "__reduce_ex__": reduce, "__module__": base.__module__,
        "__qualname__": base.__qualname__, "__doc__": base.__doc__, "_tegula_base": base})


def _made(base: type, *arguments: Any) -> Any:
    made = class_of(base)
    return made.__new__(made, *arguments)


def is_swapped(module: torch.nn.Module) -> bool:
    return ATTRIBUTE_NAME in vars(module)
