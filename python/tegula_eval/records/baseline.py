"""Times that were recorded earlier: of eager mode and torch.compile, by task.

A table (tab-separated, with a line of names: `level`, `task`, and `eager_ms`, `compiled_ms`, ... in milliseconds, or
`_us`), or the results.jsonl of another run.
"""
from __future__ import annotations

import csv
import json
import math
from dataclasses import dataclass, field
from pathlib import Path

from ..rule.tasks import TaskError

COLUMNS = {"eager": "eager", "compiled": "compile", "compile": "compile"}
UNITS = {"ms": 1e-3, "us": 1e-6, "s": 1.0}


@dataclass
class Baseline:
    source: str = ""
    seconds: dict[str, dict[str, float]] = field(default_factory=dict)  # task -> eager, compile

    def of(self, task: str) -> dict[str, float]:
        return self.seconds.get(task, {})


def read(path: Path | None) -> Baseline:
    """Raises TaskError."""
    if path is None:
        return Baseline()
    try:
        text = path.read_text(encoding="utf-8")
        found = _from_run(text) if path.suffix == ".jsonl" else _from_table(text)
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"cannot read {path}: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TaskError(f"{path} is no table of times: {error}") from error
    if not found:
        raise TaskError(f"{path} holds no times")
    return Baseline(path.name, found)


def _from_table(text: str) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(text.splitlines(), delimiter="\t"):
        level = int(row.get("level") or 0)
        key = f"level{level}/{row['task']}" if level else row["task"]
        for name, value in row.items():
            what, _, unit = name.rpartition("_")
            if what in COLUMNS and unit in UNITS and _is_time(value):
                found.setdefault(key, {})[COLUMNS[what]] = float(value) * UNITS[unit]
    return found


def _is_time(text: str | None) -> bool:
    try:
        return math.isfinite(float(text or "")) and float(text) > 0
    except ValueError:  # `-` and words mean that there is none
        return False


def _from_run(text: str) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for line in text.splitlines():
        record = json.loads(line)
        timing = record.get("timing") or {}
        times = {name: timing[f"{name}_s"] for name in ("eager", "compile") if f"{name}_s" in timing}
        if times:
            found[record["task"]] = times
    return found
