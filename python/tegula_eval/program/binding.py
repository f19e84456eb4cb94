"""Which parameter of a program stands for what of a module.

The rule (dsl/prompt/page.md): forward's inputs in order; parameters and buffers by their state-dict name with
dots as underscores; constants by the names of the constructor's arguments. None means that an optional tensor or
a constant keeps the program's default.
"""
from __future__ import annotations

import difflib
from dataclasses import dataclass, field

import torch

from ..rule.reference import Case
from .runner import DTYPE_NAMES, Parameter


class BindingError(Exception):
    """A parameter of the program stands for nothing of the module, or the other way round."""

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.reason = reason  # `no-tensor`, `no-constant`, `no-scalar`, `left-over`, `rank`, `outputs`, `value`


@dataclass
class Binding:
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    scalars: dict[str, float | int] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)  # constants and generic types, as text
    optionals: list[str] = field(default_factory=list)
    ellipsis_rank: int = 0
    outputs: list[str] = field(default_factory=list)
    # Where each parameter's value comes from: ("input", name), ("state", its name in the module) or
    # ("constant", name of the constructor's argument). What keeps its default is not there.
    sources: dict[str, tuple[str, str]] = field(default_factory=dict)


def as_text(value) -> str:
    """A constant as the language writes it. Raises ValueError where it has no such form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(as_text(one) for one in value) + ")"
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        return as_text(value.item())
    raise ValueError(f"{value!r} is no number, boolean or tuple of them")


def bind(parameters: list[Parameter], case: Case) -> Binding:
    """Raises BindingError."""
    binding = Binding()
    state = {name.replace(".", "_"): value for name, value in case.state.items()}
    dotted = {name.replace(".", "_"): name for name in case.state}
    queue = list(zip(case.input_names(), case.inputs))
    constants = case.constants()
    for parameter in parameters:
        first, left = queue[0][0] if queue else "", len(queue)
        if parameter.role in ("in", "inout"):
            is_given = _bind_tensor(binding, parameter, queue, state)
        elif parameter.role == "scalar":
            is_given = _bind_scalar(binding, parameter, queue, constants, state)
        elif parameter.role == "constant":
            is_given = _bind_constant(binding, parameter, queue, constants)
        else:
            binding.outputs.append(parameter.name)
            continue
        name = parameter.name
        if len(queue) < left:
            binding.sources[name] = ("input", first)
        elif is_given:
            binding.sources[name] = ("state", dotted[name]) if parameter.role != "constant" and name in state \
                else ("constant", name)
    if queue:
        rest = ", ".join(name for name, _ in queue)
        raise BindingError("left-over", f"forward takes {len(case.inputs)} inputs; the program has no parameter "
                           f"for {rest}")
    outputs = len(binding.outputs) or sum(one.role == "inout" for one in parameters)
    if case.expected and outputs != len(case.expected):
        raise BindingError("outputs", f"forward returns {len(case.expected)} tensors, the program {outputs}")
    return binding


def _bind_tensor(binding, parameter, queue, state) -> bool:
    """Whether it is given; it may be left out."""
    name = parameter.name
    if queue and queue[0][0] == name and isinstance(queue[0][1], torch.Tensor):
        tensor = queue.pop(0)[1]
    elif name in state:
        tensor = state[name]
    elif queue and isinstance(queue[0][1], torch.Tensor):
        tensor = queue.pop(0)[1]
    elif parameter.default is not None:
        return False
    elif queue and queue[0][1] is None:
        raise BindingError("no-tensor", f"'{name}': forward's input {queue[0][0]} is None")
    else:
        raise BindingError("no-tensor", f"'{name}' is no parameter or buffer of the module, and forward has no "
                           f"further input{_nearest(name, state)}")
    if parameter.default is not None:
        binding.optionals.append(name)
    dims = parameter.dims
    if "..." in dims:
        rank = tensor.dim() - (len(dims) - 1)
        if rank < 0:
            raise BindingError("rank", f"'{name}' has {len(dims) - 1} dims beside '...', the module's has shape "
                               f"{list(tensor.shape)}")
        binding.ellipsis_rank = max(binding.ellipsis_rank, rank)
    elif len(dims) != tensor.dim():
        raise BindingError("rank", f"'{name}' has {len(dims)} dims, the module's has shape "
                           f"{list(tensor.shape)}")
    if parameter.type not in DTYPE_NAMES.values():  # a generic type
        if tensor.dtype not in DTYPE_NAMES:
            raise BindingError("value", f"'{name}': the language has no {tensor.dtype}")
        binding.settings.setdefault(parameter.type, DTYPE_NAMES[tensor.dtype])
    binding.tensors[name] = tensor.contiguous()
    return True


def _bind_scalar(binding, parameter, queue, constants, state) -> bool:
    name = parameter.name
    if queue and not isinstance(queue[0][1], torch.Tensor) and queue[0][1] is not None:
        value = queue.pop(0)[1]
    elif name in state and state[name].numel() == 1:  # what forward reads, even where it began as an argument
        value = state[name].item()
    elif constants.get(name) is not None:
        value = constants[name]
    elif queue and isinstance(queue[0][1], torch.Tensor) and queue[0][1].numel() == 1:
        value = queue.pop(0)[1].item()
    elif parameter.default is not None:
        return False
    else:
        raise BindingError("no-scalar", f"'{name}' is no argument of the constructor and forward has no further "
                           f"number{_nearest(name, constants)}")
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    if not isinstance(value, (bool, int, float)):
        raise BindingError("value", f"'{name}': {value!r} is no number")
    binding.scalars[name] = value
    if parameter.default is not None:
        binding.optionals.append(name)
    return True


def _bind_constant(binding, parameter, queue, constants) -> bool:
    name = parameter.name
    if queue and not isinstance(queue[0][1], torch.Tensor) and (queue[0][0] == name or name not in constants):
        value = queue.pop(0)[1]
    else:
        value = constants.get(name)
    if value is None:
        if parameter.default is None:
            given = f"'{name}' is None" if name in constants else f"'{name}' is no argument of the constructor"
            raise BindingError("no-constant", given + _nearest(name, constants))
        return False
    try:
        binding.settings[name] = as_text(value)
    except ValueError as error:
        raise BindingError("value", f"'{name}': {error}") from error
    return True


def _nearest(name: str, names) -> str:
    near = difflib.get_close_matches(name, list(names), n=3, cutoff=0.5)
    if near:
        return f"; did you mean {', '.join(near)}?"
    some = list(names)[:8]
    return f"; there is {', '.join(some)}" if some else "; there is none"
