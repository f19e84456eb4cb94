"""What an adapter gives: tasks, each with the parts that it is judged at, and the score that its benchmark uses.

A part is a module in KernelBench's form (rule/tasks.py), so that the judge is the same for all of them: new inputs from
secret seeds, five distributions, float64 as the truth. A task is solved where all of its parts are right.
"""
from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

from ..rule.tasks import TaskError



class Forbidden(TaskError):
    """A solution does what its benchmark forbids: it counts as not right."""


MAX_FILE = 64 << 20  # bytes of a file of a benchmark


@dataclass(frozen=True)
class Part:
    """One workload, shape or setting of a task: what the judge knows as a task."""
    key: str    # TASK@NAME, or TASK where there is one part alone
    name: str
    text: str
    rule: dict  # the benchmark's own (rule/tolerance.py)
    facts: dict = field(default_factory=dict)  # what its score or its traces need
    problem: str = ""  # why it cannot be judged
    level: int = 0

    def source(self) -> str:
        if self.problem:
            raise TaskError(self.problem)
        return self.text


@dataclass(frozen=True)
class SuiteTask:
    name: str
    group: str          # category, level or operator type, in which scores are counted too
    parts: tuple[Part, ...]
    problem: str = ""   # why its files cannot be read
    files: tuple[str, ...] = ()  # under which a program is looked for, without an ending; the first that is there counts
    facts: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Suite:
    name: str
    find: Callable[[list[Path]], list[SuiteTask]]
    # Of results (suites/results.py), as (what, value); a value that is not known is None.
    score: Callable[[list], list[tuple[str, float | None]]]
    # A solution in the benchmark's own form as `class ModelNew` for a part. None: it is written so.
    candidate: Callable[[SuiteTask, Part, str], str] | None = None
    endings: tuple[str, ...] = (".py",)  # of files of solutions
    solution: Callable | None = None     # writes a program as a solution and its traces (suites/solutions.py)


def make_task(name: str, group: str, parts: list[tuple[str, str, dict, dict]], **more) -> SuiteTask:
    """`parts`: name, text, rule and facts of each; a fifth is why it cannot be judged."""
    if not parts and not more.get("problem"):
        more["problem"] = "it has no workload: nothing would be judged"
    key = (lambda part: name) if len(parts) == 1 else (lambda part: f"{name}@{part}")
    more.setdefault("files", (name,))
    return SuiteTask(name, group, tuple(Part(key(part), part, text, rule, facts, *rest)
                                        for part, text, rule, facts, *rest in parts), **more)


def read(path: Path, root: Path) -> str:
    """A file below `root`. Raises TaskError, also for a link that leads out of there."""
    inside(path, root)
    try:
        if path.stat().st_size > MAX_FILE:
            raise TaskError(f"{path} has {path.stat().st_size} bytes, more than {MAX_FILE}")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"cannot read {path}: {error}") from error


def inside(path: Path, root: Path) -> Path:
    """The path, all links followed. Raises TaskError where it lies outside of `root`: nothing there is read."""
    real = path.resolve()
    if not real.is_relative_to(root.resolve()):
        raise TaskError(f"{path} is outside of {root}: not read")
    return real


def folders(places: list[Path]) -> list[Path]:
    for place in places:
        if not place.is_dir():
            raise TaskError(f"{place} is no folder")
    return places


def choose(tasks: list[SuiteTask], patterns: list[str] | None) -> list[SuiteTask]:
    """Those whose name or group is one of the patterns, which are globs. Raises TaskError where one has none, and for two
    tasks of one name."""
    seen: set[str] = set()
    for task in tasks:
        if task.name in seen:
            raise TaskError(f"there are two tasks '{task.name}'")
        seen.add(task.name)

    def matches(task: SuiteTask, pattern: str) -> bool:
        return any(fnmatch.fnmatchcase(one, pattern) for one in (task.name, task.group, f"{task.group}/{task.name}"))

    for pattern in patterns or []:
        if not any(matches(task, pattern) for task in tasks):
            raise TaskError(f"--tasks: none of {len(tasks)} tasks is '{pattern}'")
    return [task for task in tasks if not patterns or any(matches(task, pattern) for pattern in patterns)]
