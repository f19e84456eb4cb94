"""The calls that a check covers, and what tells other calls apart.

`Checked` is a class of calls: all of them have the same dtypes, ranks, devices, numbers and module; sizes lie
between those of the calls that were compared. All of this is plain Python on attributes, which torch.compile traces.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

import torch

from .calls import Form
from .snapshot import is_same

INPUT, STATE, FIXED = "input", "state", "fixed"


@dataclass
class TensorGuard:
    dtype: torch.dtype
    device: str
    sizes: list[tuple[int, int]]  # smallest and largest of each dim
    many: tuple[int, ...]         # 0, 1 or 2 (more) for each dim: one element broadcasts


@dataclass
class NumberGuard:
    """A number that the program takes as a scalar: any between the smallest and the largest that were checked, and of
    whole numbers, which forward may count or branch by, those that were."""

    type: type
    checked: list[Any]

    def takes(self, value: Any) -> bool:
        if type(value) is not self.type:
            return False
        if self.type is int:
            return value in self.checked
        return min(self.checked) <= value <= max(self.checked)


def few(size: Any) -> int:
    return 0 if size == 0 else 1 if size == 1 else 2


def differs(value: Any, guard: TensorGuard) -> Optional[str]:
    """What sets a tensor apart from those that were checked."""
    if type(value) is not torch.Tensor and type(value) is not torch.nn.Parameter and not _is_traced(value):
        return "type"
    if value.dtype != guard.dtype:
        return "dtype"
    if value.device.type != guard.device:
        return "device"
    if value.layout != torch.strided or (not torch.compiler.is_compiling() and value.is_neg()):
        return "layout"
    if value.dim() != len(guard.sizes):
        return "rank"
    for size, (least, most), number in zip(value.shape, guard.sizes, guard.many):
        if size < least or size > most or few(size) != number:
            return "shape"
    return None


def _is_traced(value: Any) -> bool:
    """Tensors that torch.export and make_fx put in place of others."""
    return isinstance(value, torch.Tensor) and type(value).__name__ in ("FakeTensor", "FunctionalTensor")


@dataclass
class Part:
    """A module, or a module in it, as it was when it was checked."""

    type: type                # of the module itself: object
    forward: Any              # of its class, which others may replace; None: not known
    training: bool
    names: frozenset[str]     # of what the instance has
    attributes: dict[str, Any]  # as snapshot.hold keeps them, of the instance and of its class
    holds: dict[str, bool]    # for each name of a parameter or buffer whether it is there, rather than None
    state: dict[str, tuple[torch.dtype, torch.Size]]  # parameters and buffers that the program reads
    parameters: tuple[str, ...]
    inner: dict[str, Any]     # a Part, or None, by name

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "forward": None}  # functions of a class may have no name to pickle them by

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.forward = getattr(self.type, "forward", None)


def inner_hooks(module: torch.nn.Module) -> bool:
    """Whether a module has hooks that the forward of the module around it would call."""
    return bool(module._forward_hooks or module._forward_pre_hooks or module._backward_hooks
                or module._backward_pre_hooks or "forward" in module.__dict__)


# What every module has, and what calling it or compiling it in place sets.
OWN = frozenset(vars(torch.nn.Module())) | {"_compiled_call_impl", "_tegula_swap"}


def changed(module: torch.nn.Module, part: Part) -> Optional[str]:
    """How a module differs from what was checked."""
    if module.training != part.training:
        return "training mode"
    for name, value in part.attributes.items():
        now = getattr(module, name, None)
        if now is not value and not is_same(now, value):
            return f"value of {name}"
    for name, (dtype, shape) in part.state.items():
        tensor = own_state(module, name)
        if type(tensor) is not torch.nn.Parameter and type(tensor) is not torch.Tensor and not _is_traced(tensor):
            return f"type of {name}"
        if tensor.dtype != dtype or tensor.layout != torch.strided:
            return f"dtype of {name}"
        if tensor.shape != shape:
            return f"shape of {name}"
    if len(module._modules) != len(part.inner):
        return "structure"
    for name, inner in part.inner.items():
        child = module._modules.get(name)
        if inner is None or child is None:
            if inner is not None or child is not None:
                return "structure"
            continue
        if type(child) is not inner.type:
            return "structure"
        if inner_hooks(child):
            return "hooks"
        if type(child).forward is not inner.forward and inner.forward is not None:
            return "forward"
        reason = changed(child, inner)
        if reason is not None:
            return reason
    parameters, buffers = module._parameters, module._buffers
    if len(parameters) + len(buffers) != len(part.holds):
        return "names of parameters and buffers"
    for name, is_there in part.holds.items():
        if (parameters.get(name) is None and buffers.get(name) is None) is is_there:
            return f"presence of {name}"
    if not torch.compiler.is_compiling() and module.__dict__.keys() != part.names:
        for name in module.__dict__.keys() ^ part.names:
            if name not in OWN:
                return f"presence of {name}"
    return None


def own_state(module: torch.nn.Module, name: str) -> Any:
    tensor = module._parameters.get(name)
    return module._buffers.get(name) if tensor is None else tensor


def get_state(module: torch.nn.Module, path: tuple[str, ...]) -> Any:
    for name in path[:-1]:
        module = module._modules[name]
    return own_state(module, path[-1])


def needs_gradient(module: torch.nn.Module, part: Part, prefix: str, checked: frozenset) -> Optional[str]:
    """A parameter that requires a gradient, which was not compared."""
    for name in part.parameters:
        parameter = module._parameters.get(name)
        if parameter is not None and parameter.requires_grad and prefix + name not in checked:
            return f"gradient of {prefix}{name}"
    for name, inner in part.inner.items():
        if inner is not None:
            reason = needs_gradient(module._modules[name], inner, f"{prefix}{name}.", checked)
            if reason is not None:
                return reason
    return None


def global_state(kind: str) -> Optional[str]:
    """What is on for all of PyTorch and that a program does not follow."""
    if kind in ("cpu", "cuda") and torch.is_autocast_enabled(kind):  # no program runs on another
        return "autocast"
    if torch.compiler.is_compiling():
        return None
    if torch._C._functorch.peek_interpreter_stack() is not None or torch.autograd.forward_ad._current_level >= 0:
        return "torch.func"
    hooks = torch.nn.modules.module
    if hooks._global_forward_hooks or hooks._global_forward_pre_hooks or hooks._global_backward_hooks \
            or hooks._global_backward_pre_hooks:
        return "global hooks"
    return None


@dataclass
class Checked:
    """A class of calls that the program was compared on."""

    positional: int
    keywords: tuple[str, ...]
    layout: tuple[str, ...]                     # of tuples, lists and dicts among the inputs; () where there is none
    names: tuple[str, ...]                      # of the flat inputs
    inputs: list[Any]                           # a TensorGuard, a NumberGuard, or the value itself
    part: Part                                  # the module
    # What the program's parameters are given: (name, INPUT, place), (name, STATE, path), (name, FIXED, value).
    arguments: list[tuple[str, str, Any]] = field(default_factory=list)
    form: Form = field(default_factory=lambda: Form("none"))
    returned: list[int] = field(default_factory=list)  # of an updated input the place, where forward returns it itself
    gradients: frozenset = frozenset()          # places of inputs, paths of parameters, whose gradients were compared
    compared: list[tuple[tuple[int, ...], ...]] = field(default_factory=list)  # shapes, of inputs that are tensors
    # Dims (input, dim) that were equal in all of these calls: they must be, where a program has one size for them.
    ties: list[list[tuple[int, int]]] = field(default_factory=list)
    # Dims that the program's conditions on sizes depend on. A call asks the conditions, and falls back; what torch.compile
    # makes cannot, and so has the program for the compared sizes of these dims alone.
    conditions: list[tuple[int, int]] = field(default_factory=list)
    default_dtype: torch.dtype = torch.float32
    tied: list[list[tuple[str, ...]]] = field(default_factory=list)  # paths of one tensor, of which the program may read one

    def same_class(self, other: Checked) -> bool:
        """Whether the two differ in sizes alone."""
        if any(getattr(self, name) != getattr(other, name) for name in (
                "positional", "keywords", "layout", "names", "part", "arguments", "form", "returned", "gradients",
                "tied", "default_dtype")):
            return False
        for mine, theirs in zip(self.inputs, other.inputs):
            if type(mine) is not type(theirs):
                return False
            if isinstance(mine, NumberGuard):
                if mine.type is not theirs.type:
                    return False
            elif isinstance(mine, TensorGuard):
                if (mine.dtype, mine.device, mine.many) != (theirs.dtype, theirs.device, theirs.many):
                    return False
            elif mine != theirs:
                return False
        return True

    def widen(self, other: Checked) -> None:
        """Takes in the sizes of another call of this class."""
        self.compared += other.compared
        for mine, theirs in zip(self.inputs, other.inputs):
            if isinstance(mine, TensorGuard):
                mine.sizes = [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(mine.sizes, theirs.sizes)]
            elif isinstance(mine, NumberGuard):
                mine.checked = sorted({*mine.checked, *theirs.checked})
        self.ties = self._tied()

    @property
    def tensors(self) -> dict[int, int]:
        """For the place of each input that is a tensor its number among these."""
        return {place: number for number, place in enumerate(
            place for place, one in enumerate(self.inputs) if isinstance(one, TensorGuard))}

    def _tied(self) -> list[list[tuple[int, int]]]:
        groups: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        for place, number in self.tensors.items():
            for dim, (least, most) in enumerate(self.inputs[place].sizes):
                if least < most:
                    groups.setdefault(tuple(shapes[number][dim] for shapes in self.compared), []).append((place, dim))
        return [group for group in groups.values() if len(group) > 1]

    def _differs_in_sizes(self, values: list[Any]) -> bool:
        for (place, dim), *others in self.ties:
            size = values[place].shape[dim]
            for other, other_dim in others:
                if values[other].shape[other_dim] != size:
                    return True
        if not self.conditions or not torch.compiler.is_compiling():
            return False
        for shapes in self.compared:
            is_same = True
            for place, dim in self.conditions:
                if values[place].shape[dim] != shapes[self.tensors[place]][dim]:
                    is_same = False
            if is_same:
                return False
        return True

    def refuses(self, module: torch.nn.Module, values: list[Any]) -> Optional[str]:
        """What sets this call apart from those that were checked; None: nothing."""
        if self.part.forward is not None and type(module)._tegula_base.forward is not self.part.forward:
            return "forward"
        if torch.get_default_dtype() != self.default_dtype:
            return "default dtype"
        reason = changed(module, self.part)
        if reason is not None:
            return reason
        for paths in self.tied:
            tensor = get_state(module, paths[0])
            for path in paths:
                if get_state(module, path) is not tensor:
                    return f"tie of {'.'.join(path)}"
        for name, value, guard in zip(self.names, values, self.inputs):
            if isinstance(guard, TensorGuard):
                reason = differs(value, guard)
                if reason is not None:
                    return f"{reason} of {name}"
            elif isinstance(guard, NumberGuard):
                if not guard.takes(value):
                    return f"value of {name}"
            elif type(value) is not type(guard) or value != guard:
                return f"value of {name}"
        if self._differs_in_sizes(values):
            return "shapes together"
        if not torch.is_grad_enabled():
            return None
        for place, value in enumerate(values):
            if isinstance(value, torch.Tensor) and value.requires_grad and place not in self.gradients:
                return f"gradient of {self.names[place]}"
        return needs_gradient(module, self.part, "", self.gradients)

    def values(self, module: torch.nn.Module, inputs: list[Any]) -> dict[str, Any]:
        """The program's arguments, as they are now."""
        given = {}
        for name, kind, of in self.arguments:
            if kind == INPUT:
                given[name] = inputs[of]
            elif kind == STATE:
                given[name] = get_state(module, of)
            else:
                given[name] = of
        return given
