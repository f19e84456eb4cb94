"""A module as a task in KernelBench's form, with the sizes and types that it was called with."""
from __future__ import annotations

import dataclasses
import inspect
import math

import torch

from ..rule.tasks import TaskError
from ..rule.variants import build
from .models import Loaded
from .ranking import Group

TASK = """{origin}

# {pattern} of {name}: {share:.1%} of its time.
import functools
import torch

class Model({kind}):
    @functools.wraps({kind}.__init__)
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self{moved}
{forward}
def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return {init}
"""


OF_FILE = ("builtins", "task")  # how classes of a file that was executed name their module


class NoTask(Exception):
    """Why a module cannot be written out."""


def write(group: Group, loaded: Loaded) -> str:
    """The text, which was run. Raises NoTask."""
    kind = type(group.module)
    if kind.__module__ in OF_FILE:
        if loaded.source is None or "<locals>" in kind.__qualname__:
            raise NoTask(f"{kind.__qualname__} cannot be imported")
        origin = loaded.source.rstrip()
    else:
        origin = f"from {kind.__module__} import {kind.__name__}"
    if group.module not in loaded.made:
        raise NoTask("how it was made is not known")
    arguments, named = loaded.made[group.module]
    try:
        bound = inspect.signature(kind.__init__).bind(None, *arguments, **named)
    except TypeError as error:
        raise NoTask(str(error)) from error
    values = dict(list(bound.arguments.items())[1:])
    imports: set[str] = set()
    if any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) and values.get(one.name)
           for one in inspect.signature(kind.__init__).parameters.values()):
        raise NoTask("its constructor takes any number of arguments")
    values = {name: one for name, one in values.items() if one not in ((), {}) or isinstance(one, (str, int))}
    init = "{" + ", ".join(f"{name!r}: {_literal(one, imports)}" for name, one in values.items()) + "}"
    forward, inputs = _inputs(group)
    moved = f".train({group.module.training})"
    dtypes = {one.dtype for one in group.module.parameters() if one.is_floating_point()}
    if len(dtypes) == 1 and dtypes != {torch.float32}:
        moved = f".to({dtypes.pop()})" + moved
    text = TASK.format(origin="\n".join([origin, *sorted(imports)]), pattern=group.pattern, name=loaded.name,
                       share=group.share, kind=kind.__name__, moved=moved, forward=forward, inputs=", ".join(inputs),
                       init=init)
    _run(text)
    return text


def _run(text: str) -> None:
    try:
        built = build(text)
        with torch.no_grad():
            built.model(*built.inputs)
    except TaskError as error:
        raise NoTask(f"as a task: {error}") from error
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise NoTask(f"as a task its forward does not run: {error}") from error


def _literal(value, imports: set[str]) -> str:
    """Python's text for a constructor's argument. Raises NoTask."""
    if isinstance(value, (bool, int, float, str, type(None), torch.dtype)):
        if isinstance(value, float) and not math.isfinite(value):
            return f"float('{value}')"
        return repr(value)
    if isinstance(value, (tuple, list)):
        inner = ", ".join(_literal(one, imports) for one in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(key, imports)}: {_literal(one, imports)}" for key, one in value.items()) + "}"
    if callable(getattr(value, "to_diff_dict", None)) and type(value).__module__.startswith("transformers."):
        imports.add(f"from {type(value).__module__} import {type(value).__name__}")
        return f"{type(value).__name__}(**{_literal(value.to_diff_dict(), imports)})"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if type(value).__module__ not in OF_FILE:
            imports.add(f"from {type(value).__module__} import {type(value).__qualname__}")
        fields = ", ".join(f"{one.name}={_literal(getattr(value, one.name), imports)}"
                           for one in dataclasses.fields(value) if one.init)
        return f"{type(value).__qualname__}({fields})"
    raise NoTask(f"its constructor takes a {type(value).__name__}")


def _inputs(group: Group) -> tuple[str, list[str]]:
    """A forward that takes the inputs in order, where the call has others than that; and the inputs as text."""
    signature = inspect.signature(type(group.module).forward)
    bound = signature.bind(None, *group.call.args, **group.call.kwargs)
    kinds = {name: one.kind for name, one in signature.parameters.items()}
    given: list[tuple[str, object]] = []  # how the module's forward is given it, and the value
    for name, value in list(bound.arguments.items())[1:]:
        if kinds[name] is inspect.Parameter.VAR_KEYWORD:
            given += [(f"{key}=", one) for key, one in value.items()]
        elif kinds[name] is inspect.Parameter.VAR_POSITIONAL:
            given += [("", one) for one in value]
        else:
            given.append(("" if kinds[name] is inspect.Parameter.POSITIONAL_ONLY else f"{name}=", value))
    names, texts, passed, is_plain = [], [], [], True
    for prefix, value in given:
        name = prefix[:-1] or f"input_{len(names)}"
        if isinstance(value, torch.Tensor):
            names.append(name)
            texts.append(_tensor(value))
            passed.append(f"{prefix}{name}")
        elif isinstance(value, (tuple, list)) and all(isinstance(one, torch.Tensor) for one in value):
            inner = [f"{name}_{place}" for place in range(len(value))]
            names += inner
            texts += map(_tensor, value)
            passed.append(f"{prefix}({', '.join(inner)},)" if isinstance(value, tuple) else f"{prefix}[{', '.join(inner)}]")
            is_plain = False
        elif isinstance(value, (bool, int, float, str, type(None))):
            passed.append(f"{prefix}{value!r}")
            is_plain = False
        else:
            raise NoTask(f"forward takes a {type(value).__name__}")
    if is_plain and names == list(signature.parameters)[1:1 + len(names)]:
        return "", texts
    return (f"\n    def forward(self, {', '.join(names)}):\n        return super().forward({', '.join(passed)})\n"), texts


def _tensor(value: torch.Tensor) -> str:
    shape = ", ".join(map(str, value.shape))
    shape = f"({shape},)" if value.dim() == 1 else f"({shape})"
    if value.dtype == torch.bool:
        return f"torch.rand{shape if value.dim() else '(())'} < {float(value.float().mean()):.3g}"
    if value.is_floating_point():
        drawn = f"torch.randn({shape})"
        return drawn if value.dtype == torch.float32 else f"{drawn}.to({value.dtype})"
    least, most = (int(value.min()), int(value.max())) if value.numel() else (0, 0)
    return f"torch.randint({least}, {most + 1}, {shape}, dtype={value.dtype})"
