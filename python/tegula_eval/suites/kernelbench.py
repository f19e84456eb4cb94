"""KernelBench, and what has its form: folders level<N> of modules."""
from __future__ import annotations

from pathlib import Path

from ..rule import tolerance
from ..rule.tasks import TaskError, find_tasks
from . import results
from .suite import Suite, SuiteTask, make_task, read

RULE = {"form": "sum", "atol": tolerance.DTYPED, "rtol": tolerance.DTYPED}


def find(places: list[Path]) -> list[SuiteTask]:
    found = []
    for place in places:
        for one in find_tasks(place):
            level = f"level{one.level}" if one.level else "tasks"
            files = (one.key, one.name)
            try:
                found.append(make_task(one.key, level, [("own", read(one.path, place), RULE, {})], files=files))
            except TaskError as error:
                found.append(make_task(one.key, level, [], problem=str(error), files=files))
    return found


def score(ones: list) -> list:
    return [("correct", results.correctness(ones)), *[(f"fast_{p}", results.fast(ones, p)) for p in (1, 1.5, 2)]]


SUITE = Suite("kernelbench", find, score)
