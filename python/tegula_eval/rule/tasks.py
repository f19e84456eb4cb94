"""Tasks: Python files that define a module and its inputs.

A task is a file with `class Model(torch.nn.Module)`, `get_inputs()` and `get_init_inputs()` (a list, or a
dict of keyword arguments). KernelBench's repository holds them in `KernelBench/level<N>/`; a folder of one's
own may hold them directly (level 0) or in such `level<N>` folders.
"""
from __future__ import annotations

import difflib
import fnmatch
import re
import types
from dataclasses import dataclass
from pathlib import Path


class TaskError(Exception):
    """The task itself is broken: its file, its module or its inputs."""


# A task in another type is the same task with this behind it: what reads, runs, asks about or records a task needs to
# know nothing of types.
LOWER = """

# In {name}, as KernelBench does it: parameters, buffers and inputs that are floating point.
import functools
import torch

def _in_lower_precision(init):
    @functools.wraps(init)
    def made(self, *arguments, **named):
        init(self, *arguments, **named)
        self.to(torch.{name})
    return made

def _inputs_of(draw):
    def lower(one):
        return one.to(torch.{name}) if isinstance(one, torch.Tensor) and one.is_floating_point() else one
    return lambda: torch.utils._pytree.tree_map(lower, list(draw()))

Model.__init__ = _in_lower_precision(Model.__init__)
get_inputs = _inputs_of(get_inputs)
"""
DTYPES = {"f32": None, "f16": "float16", "bf16": "bfloat16"}


@dataclass(frozen=True)
class Task:
    level: int
    name: str  # file name without `.py`
    path: Path
    dtype: str = "f32"

    @property
    def key(self) -> str:
        return f"level{self.level}/{self.name}" if self.level else self.name

    def source(self) -> str:
        try:
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise TaskError(f"cannot read {self.path}: {error}") from error
        name = DTYPES[self.dtype]
        return text + LOWER.format(name=name) if name else text


def _order(name: str) -> tuple[int, str]:
    number = re.match(r"\d+", name)
    return (int(number.group()) if number else 1 << 30, name)


def find_tasks(root: Path, levels: list[int] | None = None, patterns: list[str] | None = None,
               dtype: str = "f32") -> list[Task]:
    """Tasks under `root`, by level and number.

    `patterns` are globs over a task's name or key, or its number (`17`, `2/17`). Raises TaskError where the
    folder holds no task at all, or none of a level or a pattern.
    """
    folder = root / "KernelBench" if (root / "KernelBench").is_dir() else root
    if not folder.is_dir():
        raise TaskError(f"{root} is no folder")
    places = [(int(child.name[5:]), child) for child in folder.iterdir()
              if child.is_dir() and re.fullmatch(r"level\d+", child.name)]
    if not places:
        places = [(0, folder)]
    found = [Task(level, path.stem, path, dtype) for level, place in sorted(places)
             for path in sorted(place.glob("*.py"), key=lambda path: _order(path.stem))
             if not path.name.startswith("_")]
    if not found:
        raise TaskError(f"{root} holds no tasks: expected level<N>/*.py or *.py")
    for level in levels or []:
        if level not in {task.level for task in found}:
            there = ", ".join(str(one) for one in sorted({task.level for task in found}))
            raise TaskError(f"--level: {root} has no level {level}, but {there}")
    chosen = [task for task in found if levels is None or task.level in levels]
    for pattern in patterns or []:
        if not any(matches(task, pattern) for task in chosen):
            near = difflib.get_close_matches(pattern, [name for task in chosen for name in (task.name, task.key)], n=1)
            raise TaskError(f"--tasks: none of {len(chosen)} tasks is '{pattern}'" + (f"; nearest is '{near[0]}'" if near else ""))
    return [task for task in chosen if not patterns or any(matches(task, pattern) for pattern in patterns)]


def matches(task: Task, pattern: str) -> bool:
    numbered = re.fullmatch(r"(?:(?:level)?(\d+)/)?(\d+)", pattern)
    if numbered:
        level, number = numbered.groups()
        return (level is None or int(level) == task.level) and \
            re.match(r"\d+(?=_|$)", task.name) is not None and \
            int(re.match(r"\d+", task.name).group()) == int(number)
    return fnmatch.fnmatchcase(task.name, pattern) or fnmatch.fnmatchcase(task.key, pattern)


def load(source: str, name: str = "task") -> types.ModuleType:
    """Executes a task's text. Raises TaskError, never the task's own exceptions."""
    module = types.ModuleType(name)
    try:
        exec(compile(source, f"{name}.py", "exec", dont_inherit=True), module.__dict__)
    except MemoryError:
        raise
    except Exception as error:
        raise TaskError(f"the file does not run: {type(error).__name__}: {error}") from error
    for needed in ("Model", "get_inputs", "get_init_inputs"):
        if not callable(getattr(module, needed, None)):
            raise TaskError(f"the file defines no {needed}")
    module.get_inputs = drawn_anew(module.get_inputs, module)
    return module


def drawn_anew(draw, module: types.ModuleType):
    """get_inputs of some tasks sets a seed itself, so that all inputs would be alike, whatever the judge's seed is. In here
    that has no effect; a generator of its own starts from the judge's seed and its own together."""
    import torch
    seeders = (torch.manual_seed, torch.random.manual_seed, torch.cuda.manual_seed, torch.cuda.manual_seed_all)

    def get_inputs():
        judges = torch.initial_seed()

        class Generator(torch.Generator):
            def __init__(self, *_, **__):
                self.manual_seed(0)

            def manual_seed(self, seed):
                return super().manual_seed((judges + int(seed)) % (1 << 63))

        others = {torch.Generator: Generator, **dict.fromkeys(seeders, lambda seed: torch.default_generator)}
        kept = [(names, name, one) for names in (vars(torch), vars(torch.random), vars(torch.cuda), vars(module))
                for name, one in names.items() if any(one is other for other in others)]
        for names, name, one in kept:
            names[name] = others[one]
        try:
            return draw()
        finally:
            for names, name, one in kept:
                names[name] = one
    return get_inputs
