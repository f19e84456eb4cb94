"""Swaps programs in where code calls a FlashInfer-Bench operator, as its `apply` does.

    with enable("flashinfer-trace", "made"):          # definitions, and what --solutions wrote
        output = apply("rmsnorm_h4096", args=(x, weight), fallback=norm)

`apply` runs the solution of a definition, and only on arguments that are what the definition says: their number, ranks, constant
sizes, types and one device, none of which wants a gradient, and outside of autocast. Otherwise it says so once (a warning) and calls `fallback`; without one it raises Unfit. It never
runs another solution, and what a solution raises is raised.
"""
from __future__ import annotations

import functools
import inspect
import threading
import warnings
from pathlib import Path

from ..rule.tasks import TaskError
from .definitions import Definition, arithmetic, definition_of, load_json, value_of
from .solutions import AUTHOR
from .suite import read


class Unfit(TaskError):
    """Nothing is there for these arguments."""


class Swapped(UserWarning):
    """A call went to its fallback."""


class Solution:
    def __init__(self, definition: Definition, text: str):
        self.definition, self.text = definition, text
        self._lock = threading.Lock()

    @functools.cached_property
    def run(self):
        """The solution's function, whose program is parsed with the first call."""
        with self._lock:
            space = {"__name__": f"tegula_solution_{self.definition.name}"}
            exec(compile(self.text, f"{self.definition.name}/main.py", "exec"), space)
            return space["run"]

    def __call__(self, arguments: list):
        """Arguments without outputs: gives them; with outputs at their end: writes into those. Raises Unfit."""
        import torch
        definition = self.definition
        inputs, outputs = list(definition.inputs), list(definition.outputs)
        if len(arguments) not in (len(inputs), len(inputs) + len(outputs)):
            raise Unfit(f"it takes {len(inputs)} arguments, or {len(inputs) + len(outputs)} with its outputs; {len(arguments)} are given")
        sizes: dict[str, int] = {name: axis["value"] for name, axis in definition.axes.items() if axis["type"] == "const"}
        devices: set = set()
        for name, given in zip(inputs, arguments):
            self._check(name, definition.inputs[name], given, sizes, devices)
        for name, axis in definition.axes.items():
            if axis["type"] == "expr":
                value = value_of(arithmetic(axis["expression"], sizes), sizes)
                if value != int(value):
                    raise Unfit(f"the axis '{name}' is {value}")
                value = int(value)
                if sizes.setdefault(name, value) != value:
                    raise Unfit(f"the axis '{name}' is {sizes[name]}, but {axis['expression']} is {value}")
        for name, given in zip(outputs, arguments[len(inputs):]):
            self._check(name, definition.outputs[name], given, sizes, devices)
        if len(devices) > 1:
            raise Unfit(f"tensors are on {' and '.join(sorted(map(str, devices)))}")
        if len(arguments) > len(inputs):
            self.run(*arguments)
            return None
        made = []
        for name in outputs:
            shape = definition.outputs[name]["shape"]
            if shape is None or not set(shape) <= set(sizes):
                raise Unfit(f"the output '{name}' has no shape that follows from the inputs")
            made.append(torch.empty([sizes[axis] for axis in shape], dtype=getattr(torch, definition.outputs[name]["dtype"]),
                                    device=next(iter(devices), None)))
        self.run(*arguments, *made)
        return made[0] if len(made) == 1 else tuple(made)

    @staticmethod
    def _check(name: str, one: dict, given, sizes: dict[str, int], devices: set) -> None:
        import torch
        if one["shape"] is None:
            if isinstance(given, torch.Tensor) or not isinstance(given, (int, float)):
                raise Unfit(f"'{name}' is a number, not {type(given).__name__}")
            return
        if not isinstance(given, torch.Tensor):
            raise Unfit(f"'{name}' is a tensor, not {type(given).__name__}")
        if str(given.dtype) != f"torch.{one['dtype']}":
            raise Unfit(f"'{name}' is {one['dtype']}, not {str(given.dtype).removeprefix('torch.')}")
        if given.dim() != len(one["shape"]):
            raise Unfit(f"'{name}' has {len(one['shape'])} dims, not {given.dim()}")
        for axis, size in zip(one["shape"], given.shape):
            if sizes.setdefault(axis, size) != size:
                raise Unfit(f"'{name}' has {size} for the axis '{axis}', which is {sizes[axis]}")
        if given.requires_grad and torch.is_grad_enabled():
            raise Unfit(f"'{name}' wants a gradient, which a program does not give: call it under torch.no_grad()")
        if torch.is_autocast_enabled(given.device.type):
            raise Unfit(f"autocast is on for {given.device.type}: a solution computes in the definition's types")
        devices.add(given.device)


class Solutions:
    """What `tegula-eval run --solutions` wrote, with its definitions; the one that `apply` uses while it is enabled."""
    _enabled: list["Solutions"] = []

    def __init__(self, definitions: Path, solutions: Path):
        """Raises TaskError where a file is damaged, or there is no solution at all."""
        self.by_name: dict[str, Solution] = {}
        known = {}
        for path in sorted((definitions / "definitions").rglob("*.json")):
            one = definition_of(load_json(read(path, definitions), path), path)
            known[one.name] = one
        for path in sorted((solutions / "solutions" / AUTHOR).rglob("*.json")):
            record = load_json(read(path, solutions), path)
            try:
                name, text = record["definition"], record["sources"][0]["content"]
            except (KeyError, TypeError, IndexError) as error:
                raise TaskError(f"{path} is no solution: {error!r}") from error
            if name in known:
                self.by_name[name] = Solution(known[name], text)
        if not self.by_name:
            raise TaskError(f"{solutions}/solutions/{AUTHOR} holds no solution for a definition of {definitions}")
        self._said: set[str] = set()

    def __enter__(self) -> "Solutions":
        Solutions._enabled.append(self)
        return self

    def __exit__(self, *_) -> None:
        Solutions._enabled.remove(self)

    def say(self, name: str, why: str) -> None:
        """Once for each reason."""
        if (text := f"apply: {name}: {why}; the fallback is called") not in self._said:
            self._said.add(text)
            warnings.warn(text, Swapped, stacklevel=4)


def enable(definitions: str | Path, solutions: str | Path) -> Solutions:
    """For a `with` block."""
    return Solutions(Path(definitions), Path(solutions))


def apply(name_or_resolver, args: tuple | None = None, kwargs: dict | None = None, fallback=None):
    """With `args` or `kwargs` a call; without them a decorator, whose function is the fallback."""
    if args is None and kwargs is None:
        def decorate(function):
            @functools.wraps(function)
            def wrapped(*given, **named):
                return _dispatch(name_or_resolver, given, named, function)
            return wrapped
        return decorate
    return _dispatch(name_or_resolver, tuple(args or ()), dict(kwargs or {}), fallback)


def _dispatch(name_or_resolver, args: tuple, kwargs: dict, fallback):
    name = name_or_resolver if isinstance(name_or_resolver, str) else name_or_resolver(*args, **kwargs)
    enabled = Solutions._enabled[-1] if Solutions._enabled else None
    try:
        if enabled is None:
            raise Unfit("no solutions are enabled")
        if name not in enabled.by_name:
            raise Unfit("there is no solution for it")
        solution = enabled.by_name[name]
        arguments = _in_order(solution.definition, args, kwargs)
        return solution(arguments)
    except Unfit as error:
        if fallback is None:
            raise Unfit(f"{name}: {error}, and no fallback is given") from None
        if enabled is not None:
            enabled.say(name, str(error))
    return fallback(*args, **kwargs)


def _in_order(definition: Definition, args: tuple, kwargs: dict) -> list:
    names = [*definition.inputs, *definition.outputs]
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    try:
        bound = inspect.Signature(parameters).bind_partial(*args, **kwargs)
    except TypeError as error:
        raise Unfit(str(error)) from error
    given = list(bound.arguments)
    if given != names[:len(given)]:
        raise Unfit(f"it lacks {next(one for one in names if one not in given)}")
    return list(bound.arguments.values())
