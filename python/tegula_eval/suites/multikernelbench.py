"""MultiKernelBench: reference/CATEGORY/*.py, modules in KernelBench's form; some read their inputs' shapes from a file of JSON
lines beside them (`get_input_groups`), each of which is a workload."""
from __future__ import annotations

import ast
from pathlib import Path

from ..rule.tasks import TaskError
from . import results
from .suite import Suite, SuiteTask, folders, make_task, read

RULE = {"form": "sum", "atol": 1e-4, "rtol": 1e-4}
# Before the text: the one line of the file that this workload is, whichever way it is opened.
GROUP = '''import io
import os

__file__ = {file!r}
_LINES = {lines!r}


def open(path, *_, **__):
    return io.StringIO(_LINES[os.path.basename(path)])


'''
DRAW = '''

def get_inputs():
    [inputs] = get_input_groups()
    return inputs
'''


def find(places: list[Path]) -> list[SuiteTask]:
    found = []
    for place in folders(places):
        root = place / "reference" if (place / "reference").is_dir() else place
        for path in sorted(root.glob("*/*.py")):
            if path.name.startswith("_"):
                continue
            group, name = path.parent.name, path.stem
            try:
                parts = _parts(path, place)
                found.append(make_task(f"{group}/{name}", group, parts, files=(f"{group}/{name}", name)))
            except TaskError as error:
                found.append(make_task(f"{group}/{name}", group, [], problem=str(error), files=(f"{group}/{name}", name)))
    if not found:
        raise TaskError(f"{', '.join(map(str, places))}: expected reference/CATEGORY/*.py")
    return found


def _parts(path: Path, root: Path) -> list[tuple]:
    text = read(path, root)
    try:
        functions = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    except (SyntaxError, ValueError) as error:
        raise TaskError(f"{path} is not Python: {error}") from error
    if "get_input_groups" not in functions:
        return [("own", text, RULE, {})]
    beside = path.with_suffix(".json")
    if not beside.is_file():
        raise TaskError(f"{path} has get_input_groups, but there is no {beside.name} beside it")
    lines = [line for line in read(beside, root).splitlines() if line.strip()]
    return [(str(number), GROUP.format(file=path.name, lines={beside.name: line}) + text + DRAW, RULE, {})
            for number, line in enumerate(lines)]


def score(ones: list) -> list:
    known = [one for one in ones if one.known]
    built = sum(one.outcome not in ("refused", "binding", "internal", "no program") for one in known)
    return [("Compile@1", results.share(built, len(known))), ("Pass@1", results.correctness(ones)),
            *[(f"SpeedUp_{p}@1", results.fast(ones, p)) for p in (1, 2)]]


SUITE = Suite("multikernelbench", find, score)
