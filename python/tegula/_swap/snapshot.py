"""What an attribute of a module held, kept apart from it, to be compared at each call.

Numbers, texts, functions and members of an Enum stand for themselves; containers and objects are taken apart. What has
an inside that nothing can look at is a Refusal: forward could read a change of it that no guard sees.
"""
from __future__ import annotations

import collections
import enum
import functools
import logging
import types
from typing import Any, Optional

import torch

from .calls import PLAIN, Refusal

# Compared by identity, or by value where they are of the same type.
_WHOLE = (*PLAIN, complex, bytes, range, enum.Enum, type, torch.Size, torch.layout, torch.memory_format, torch.finfo,
          torch.iinfo, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType,
          torch._ops.OpOverload, torch._ops.OpOverloadPacket, torch.jit.ScriptFunction, logging.Logger, type(...))
_SEQUENCES = (tuple, list, collections.deque)
_SETS = (set, frozenset)
_PLAIN_SIZE = object.__basicsize__ + 16  # of an object whose attributes are all in a dict
MOST = 2000  # values in an attribute: a guard that compares more takes longer than a small program


class Held:
    """A container or an object as it was."""

    def __init__(self, kind: type, keys: Optional[list], values: list, own: Any):
        self.type, self.keys, self.own = kind, keys, own  # `own`: a Held of the attributes of a container
        self.key_types = None if keys is None else list(map(type, keys))
        self.values = values
        self.types = [one.type if type(one) is Held else type(one) for one in values]
        self.is_flat = not any(type(one) is Held for one in values)

    def __eq__(self, other: Any) -> bool:
        return type(other) is Held and all(getattr(self, one) == getattr(other, one) for one in
                                           ("type", "keys", "types", "values", "own"))

    __hash__ = None


def hold(value: Any, name: str) -> Any:
    """What `is_same` compares `value` with. Raises Refusal with `name`."""
    return _Taker(name).take(value, name)


class _Taker:
    def __init__(self, name: str):
        self.name, self.around, self.count = name, [], 0

    def take(self, value: Any, path: str) -> Any:
        self.count += 1
        if self.count > MOST:
            raise Refusal(f"the attribute '{self.name}' holds more than {MOST} values, which are too many to compare at each "
                          "call: keep it out of the module")
        if isinstance(value, torch.Tensor):
            raise Refusal(f"the attribute '{path}' is a tensor that is neither parameter nor buffer, and may be changed "
                          "unseen: register it as a buffer")
        if isinstance(value, _WHOLE) or type(value) is object:
            return value
        if isinstance(value, torch.nn.Module):
            raise Refusal(f"the attribute '{path}' is a module that is no part of this one, and may be changed unseen: "
                          "register it")
        if any(one is value for one in self.around):
            raise Refusal(f"the attribute '{path}' holds itself, and no guard can compare it")
        self.around.append(value)
        made = self._inside(value, path)
        self.around.pop()
        return made

    def _inside(self, value: Any, path: str) -> Held:
        own = attributes_of(value)
        inner = None if own is None else Held(type(value), list(own), [
            self.take(one, f"{path}.{key}") for key, one in own.items()], None)
        if isinstance(value, _SEQUENCES):
            return Held(type(value), None, [self.take(one, f"{path}[{place}]") for place, one in enumerate(value)], inner)
        if isinstance(value, dict):
            if not all(isinstance(one, (*_WHOLE, tuple)) for one in value):
                raise Refusal(f"the attribute '{path}' has objects as keys, which no guard can compare")
            return Held(type(value), list(value), [self.take(one, f"{path}[{key!r}]") for key, one in value.items()], inner)
        if isinstance(value, _SETS):
            if not all(isinstance(one, _WHOLE) for one in value):
                raise Refusal(f"the attribute '{path}' is a set of objects, which no guard can compare")
            return Held(type(value), None, [frozenset(value)], inner)
        if isinstance(value, functools.partial):
            return Held(type(value), None, [self.take(one, path) for one in (value.func, value.args, value.keywords)], inner)
        if own is None or type(value).__basicsize__ > _PLAIN_SIZE + 8 * len(_all_slots(type(value))):
            raise Refusal(f"the attribute '{path}' is a {type(value).__name__}, which no guard can compare")
        return Held(type(value), None, [], inner)


def attributes_of(value: Any) -> Optional[dict[str, Any]]:
    """The attributes of an object; None: it has none that can be seen."""
    found = getattr(value, "__dict__", None)
    slots = _all_slots(type(value))
    if not slots:
        return found
    return {**(found or {}), **{name: getattr(value, name) for name in slots if hasattr(value, name)}}


@functools.cache
def _all_slots(kind: type) -> tuple[str, ...]:
    return tuple(name for one in kind.__mro__ if "__slots__" in vars(one) for name, slot in vars(one).items()
                 if isinstance(slot, types.MemberDescriptorType))


def is_same(now: Any, was: Any) -> bool:
    """Whether an attribute is as it was held."""
    if now is was:
        return True
    if type(was) is not Held:
        return type(now) is type(was) and now == was
    if type(now) is not was.type:
        return False
    if was.own is not None:
        if torch.compiler.is_compiling():  # which cannot list attributes
            for name, one in zip(was.own.keys, was.own.values):
                if not hasattr(now, name) or not is_same(getattr(now, name), one):
                    return False
        else:
            own = attributes_of(now)
            if own is None or not _is_inside(list(own), list(own.values()), was.own):
                return False
    if isinstance(now, _SEQUENCES):
        return _is_inside(None, list(now), was)
    if isinstance(now, dict):
        return _is_inside(list(now), list(now.values()), was)
    if isinstance(now, _SETS):
        return frozenset(now) == was.values[0]
    if isinstance(now, functools.partial):
        return _is_inside(None, [now.func, now.args, now.keywords], was)
    return True


def _is_inside(keys: Optional[list], values: list, was: Held) -> bool:
    # Types before ==, which a tensor answers with a tensor.
    if list(map(type, values)) != was.types:
        return False
    if keys is not None and (list(map(type, keys)) != was.key_types or keys != was.keys):
        return False
    if was.is_flat:
        return values == was.values
    for now, one in zip(values, was.values):
        if now is not one and not is_same(now, one):
            return False
    return True
