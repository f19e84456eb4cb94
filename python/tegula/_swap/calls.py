"""A call's inputs as a flat list with names, and its results as a form that tensors are put into."""
from __future__ import annotations

import inspect
from typing import Any, Callable

import torch

PLAIN = (bool, int, float, str, type(None), torch.dtype, torch.device)


class Refusal(Exception):
    """Why a program does not stand for a module."""


def names_of(forward: Callable, count: int, keywords: tuple[str, ...]) -> tuple[list[str], dict[str, Any]]:
    """The names of `count` positional arguments and of the keyword arguments, in that order, and the defaults of what
    the call leaves out. `forward` has no `self`. Raises Refusal."""
    parameters = list(inspect.signature(forward).parameters.values())
    positional = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    rest = next((one.name for one in parameters if one.kind is one.VAR_POSITIONAL), None)
    if count > len(positional) and rest is None:
        raise Refusal(f"forward takes {len(positional)} positional arguments, the call gives {count}")
    names = positional[:count] + [f"{rest}_{place}" for place in range(count - len(positional))]
    given = {*names, *keywords}
    defaults = {one.name: one.default for one in parameters
                if one.name not in given and one.default is not one.empty}
    return [*names, *keywords], defaults


def in_order(forward: Callable, names: list[str]) -> list[int]:
    """The places of `names` in the order of forward's declaration: keyword arguments come in any order."""
    declared = {name: place for place, name in enumerate(inspect.signature(forward).parameters)}
    return sorted(range(len(names)), key=lambda place: declared.get(names[place].split(".")[0], len(declared)))


def flatten(names: Any, values: Any, spell: Callable = str) -> tuple[tuple[str, ...], list[Any]]:
    """The leaves of tuples, lists and dicts, each with a name that tells its place; before those of a tuple its type.
    `spell`: a key of a dict as text."""
    told: list[str] = []
    leaves: list[Any] = []
    for name, value in zip(names, values):
        told.append(name)
        leaves.append(value if type(value) not in (tuple, list, dict) else type(value))
        if type(value) in (tuple, list, dict):
            keys = value if type(value) is dict else range(len(value))
            inner, found = flatten([f"{name}.{spell(key)}" for key in keys], value.values() if type(value) is dict else value,
                                   spell)
            told.extend(inner)
            leaves.extend(found)
    return tuple(told), leaves


def has_containers(values: Any) -> bool:
    for value in values:
        if type(value) in (tuple, list, dict):
            return True
    return False


def containers(value: Any) -> list[Any]:
    """The tuples, lists and dicts in a value."""
    if type(value) not in (tuple, list, dict):
        return []
    inner = value.values() if type(value) is dict else value
    return [value] + [found for one in inner for found in containers(one)]


def rebuild(values: Any, leaves: Any) -> Any:
    """`values` with other leaves, an iterator over what `flatten` gave."""
    made = []
    for value in values:
        leaf = next(leaves)
        if type(value) in (tuple, list):
            leaf = type(value)(rebuild(value, leaves))
        elif type(value) is dict:
            leaf = dict(zip(value, rebuild(value.values(), leaves)))
        made.append(leaf)
    return made


class Form:
    """What forward returned, with numbers in place of tensors: `fill` puts tensors in.

    `kind`: "leaf" (`of`: the tensor's number), "none", "tuple", "list" (`of`: forms) or "dict" (`of`: pairs)."""

    def __init__(self, kind: str, of: Any = None):
        self.kind, self.of = kind, of

    def fill(self, tensors: Any) -> Any:
        if self.kind == "leaf":
            return tensors[self.of]
        if self.kind == "none":
            return None
        if self.kind == "dict":
            return {key: form.fill(tensors) for key, form in self.of}
        made = [form.fill(tensors) for form in self.of]
        return tuple(made) if self.kind == "tuple" else made

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Form) and (self.kind, self.of) == (other.kind, other.of)

    __hash__ = None


def form_of(value: Any, tensors: list[torch.Tensor]) -> Form:
    """Appends the tensors of a result to `tensors`. Raises Refusal."""
    if value is None:
        return Form("none")
    if type(value) in (torch.Tensor, torch.nn.Parameter):
        tensors.append(value)
        return Form("leaf", len(tensors) - 1)
    if type(value) in (tuple, list):
        return Form(type(value).__name__, [form_of(one, tensors) for one in value])
    if type(value) is dict:
        return Form("dict", [(key, form_of(one, tensors)) for key, one in value.items()])
    raise Refusal(f"forward returns {type(value).__name__}: only tensors, None, and tuples, lists and dicts of them can be "
                  "made again")
