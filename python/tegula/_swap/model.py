"""Finds the modules of a model, captures what they are called with, swaps them, reports and restores."""
from __future__ import annotations

import contextlib
import difflib
import fnmatch
import os
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Mapping, Optional

import torch

from .._errors import SwapError
from .._kernel import Kernel
from . import Replacement
from .examine import Target, observe
from .module import ATTRIBUTE_NAME, State, class_of, is_swapped
from .program import Program


@dataclass(frozen=True)
class Row:
    """What became of a module. `errors` are norms against float64, of the program and of the module; `fallbacks` count
    calls that ran the module's own forward, by reason. `refusal`: why it was not swapped."""

    name: str
    program: str
    calls: int
    fallbacks: Mapping[str, int]
    errors: Mapping[str, float]
    checked: tuple[str, ...]
    refusal: Optional[str] = None


class Report(list):
    """Rows; as text a table."""

    def __str__(self) -> str:
        lines = [("module", "program", "calls", "fallbacks", "error", "module's own")]
        for one in self:
            errors = ("-", "-") if one.refusal else tuple(f"{one.errors[name]:.1e}" for name in ("program", "module"))
            lines.append((one.name or "(model)", os.path.basename(one.program), str(one.calls),
                          str(sum(one.fallbacks.values())), *errors))
        widths = [max(map(len, column)) for column in zip(*lines)]
        text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
        for one in self:
            text += [f"{one.name or '(model)'}: fell back {count} times: {reason}" for reason, count in one.fallbacks.items()]
            if one.refusal:
                text.append(f"{one.name or '(model)'}: not swapped: {one.refusal}")
        return "\n".join(text)


class Swap:
    """The swapped modules of a model."""

    def __init__(self, model: torch.nn.Module, refusals: Optional[dict[str, tuple[str, str]]] = None):
        self.model = model
        self._refusals = refusals or {}

    @property
    def modules(self) -> dict[str, torch.nn.Module]:
        return {name: one for name, one in self.model.named_modules() if is_swapped(one)}

    def report(self) -> Report:
        """A row for each module: calls, fallbacks by reason, errors. Calls inside a graph of torch.compile, and replays of
        a CUDA graph, are not counted."""
        rows = [Row(name, one._tegula_swap.program.file_name, one._tegula_swap.calls, dict(one._tegula_swap.fallbacks),
                    dict(one._tegula_swap.errors), tuple(map(str, one._tegula_swap.checked)))
                for name, one in self.modules.items()]
        return Report(rows + [Row(name, program, 0, {}, {}, (), reason)
                              for name, (program, reason) in self._refusals.items()])

    def check(self, example_inputs: Any, *, gradients: Optional[bool] = None) -> None:
        """Compares the programs on further calls, which they serve from then on. Raises SwapError; what was served before
        still is."""
        targets = {}
        for name, one in self.modules.items():
            state = one._tegula_swap
            targets[one] = Target(name, type(one)._tegula_base, state.program, dict(state.constants), state.tolerance,
                                  checked=state.checked, errors=state.errors)
        _capture(self.model, targets, _runs(example_inputs), gradients)
        wrong = {target.name: target.refusal for target in targets.values() if target.refusal is not None}
        if wrong:
            raise SwapError(_told(wrong), wrong)

    def synchronize(self) -> None:
        """Waits for the device. Raises LaunchError where a subscript that comes from data left its tensor since the last
        call: until then such a read gave 0 on a CUDA device."""
        for one in {module._tegula_swap.program for module in self.modules.values()}:
            one.synchronize()

    def restore(self) -> None:
        """Gives each module its own class, and thereby its own forward, back."""
        for one in self.modules.values():
            base = type(one)._tegula_base
            del vars(one)[ATTRIBUTE_NAME]
            one.__class__ = base


def _told(refusals: Mapping[str, str]) -> str:
    return "".join(f"{name or '(model)'}: {reason}\n" for name, reason in refusals.items()).rstrip()


def fits(pattern: str, name: str) -> bool:
    """Whether a module's name fits: `*` stands for what is between two dots, `**` for any number of names."""

    def match(parts: list[str], names: list[str]) -> bool:
        if not parts:
            return not names
        if parts[0] == "**":
            return any(match(parts[1:], names[skipped:]) for skipped in range(len(names) + 1))
        return bool(names) and fnmatch.fnmatchcase(names[0], parts[0]) and match(parts[1:], names[1:])

    return match(pattern.split(".") if pattern else [], name.split(".") if name else [])


def _program(replacement: Any) -> tuple[Program, dict[str, Any]]:
    """The program, and constants that the module does not have."""
    if not isinstance(replacement, Replacement):
        replacement = Replacement(replacement)
    source = replacement.source
    backward = (replacement.backward,) if isinstance(replacement.backward, str) else tuple(replacement.backward)
    if isinstance(source, Kernel):
        if backward or replacement.kernel:
            raise ValueError("a Kernel has a name and no backward kernel: give the file, with kernel= and backward=")
        return Program(source._text, source._file_name, source.name, (), source._settings,
                       replacement.precision or source._precision, replacement.tuned or source._tuned,
                       source._checked), dict(replacement.constants)
    if not isinstance(source, (str, os.PathLike)):
        raise ValueError(f"expected a file, a Kernel or a Replacement, got {type(source).__name__}")
    with open(source, encoding="utf-8") as file:
        text = file.read()
    return Program(text, os.fspath(source), replacement.kernel, backward, {}, replacement.precision,
                   replacement.tuned), dict(replacement.constants)


def _targets(model: torch.nn.Module, replacements: Mapping[str, Any], tolerance: float) -> dict[torch.nn.Module, Target]:
    """Raises ValueError for a pattern that fits nothing or what another has taken."""
    modules = dict(model.named_modules(remove_duplicate=False))  # a module may have several names
    for name, one in modules.items():
        if hasattr(one, "_orig_mod"):
            raise ValueError(f"'{name or type(one).__name__}' is compiled by torch.compile already: swap first, then compile")
    targets: dict[torch.nn.Module, Target] = {}
    for pattern, replacement in replacements.items():
        found = {name: one for name, one in modules.items() if fits(pattern, name)}
        if not found:
            near = difflib.get_close_matches(pattern, modules, n=1, cutoff=0.3)
            raise ValueError(f"no module is named '{pattern}'" + (f"; nearest is '{near[0]}'" if near else ""))
        program, constants = _program(replacement)
        for name, one in found.items():
            if is_swapped(one):
                raise ValueError(f"'{name}' is swapped already: restore() it first")
            if one in targets and targets[one].program is program:
                continue
            if one in targets:
                raise ValueError(f"'{name}' is named by two patterns")
            targets[one] = Target(name, type(one), program, constants, tolerance)
    for module, outer in targets.items():
        for part in module.modules():  # under whichever name
            if part is not module and part in targets:
                raise ValueError(f"'{targets[part].name}' lies in '{outer.name}', which is swapped as a whole")
    return targets


def _refuse_by_type(module: torch.nn.Module, target: Target) -> None:
    if isinstance(module, (torch.jit.ScriptModule, torch.fx.GraphModule)):
        target.refusal = f"it is a {type(module).__mro__[1].__name__}, whose forward cannot be replaced"
    elif "forward" in vars(module):
        target.refusal = "its forward is replaced on the instance already, and the program would not be called"


@contextlib.contextmanager
def _captured(targets: Mapping[torch.nn.Module, Target]) -> Iterator[None]:
    """Within it each call of a target is compared."""
    classes = {module: type(module) for module in targets}

    def capture(target: Target) -> Callable:
        return lambda self, *args, **kwargs: observe(target, self, args, kwargs)

    try:
        for module, target in targets.items():
            _refuse_by_type(module, target)
            if target.refusal is None:
                module.__class__ = type(target.base.__name__, (target.base,), {"forward": capture(target)})
        yield
    finally:
        for module, own in classes.items():
            module.__class__ = own


def _runs(example_inputs: Any) -> list[Callable[[torch.nn.Module], Any]]:
    if isinstance(example_inputs, list):
        return [run for one in example_inputs for run in _runs(one)]
    if isinstance(example_inputs, tuple):
        return [lambda model: model(*example_inputs)]
    if isinstance(example_inputs, dict):
        return [lambda model: model(**example_inputs)]
    if isinstance(example_inputs, torch.Tensor):
        return [lambda model: model(example_inputs)]
    if callable(example_inputs):
        return [example_inputs]
    raise ValueError("expected example inputs as a tuple, a dict, a list of these, or a function of the model, got "
                     f"{type(example_inputs).__name__}")


def _capture(model: torch.nn.Module, targets: Mapping[torch.nn.Module, Target], runs: list[Callable],
             gradients: Optional[bool]) -> None:
    mode = contextlib.nullcontext() if gradients is None else torch.set_grad_enabled(gradients)
    with mode, _captured(targets):
        for run in runs:
            run(model)
    for target in targets.values():
        if target.refusal is None and not target.calls:
            target.refusal = "it was not called on the example inputs"


def swap(model: torch.nn.Module, replacements: Mapping[str, Any], example_inputs: Any, gradients: Optional[bool],
         tolerance: float, strict: bool) -> Swap:
    if not isinstance(model, torch.nn.Module):
        raise ValueError(f"expected a torch.nn.Module, got {type(model).__name__}")
    if tolerance < 2:
        raise ValueError(f"expected a tolerance of 2 or more, got {tolerance}: twice the module's own error is what chance makes")
    targets = _targets(model, replacements, tolerance)
    _capture(model, targets, _runs(example_inputs), gradients)
    wrong = {target.name: target.refusal for target in targets.values() if target.refusal is not None}
    if wrong and strict:
        raise SwapError(_told(wrong), wrong)
    for module, target in targets.items():
        if target.refusal is None:
            made = class_of(target.base)
            setattr(module, ATTRIBUTE_NAME, State(target.name, target.program, target.constants, target.checked,
                                                  target.errors, tolerance))
            module.__class__ = made
    return Swap(model, {target.name: (target.program.file_name, target.refusal)
                                   for target in targets.values() if target.refusal is not None})


def swapped(model: torch.nn.Module) -> Swap:
    return Swap(model)
