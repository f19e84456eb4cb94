"""The flags that an audit found for tasks, beside the records of another run."""
from __future__ import annotations

import json
from pathlib import Path

from ..rule.tasks import TaskError

AUDITED = "audited"  # the outcome


def read_flags(path: Path | None) -> dict[str, list[str]]:
    """The flags of each task in the results.jsonl of an audit, or its folder. Raises TaskError."""
    if path is None:
        return {}
    file = path / "results.jsonl" if path.is_dir() else path
    try:
        records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        return {one["task"]: one["flags"] for one in records if one["outcome"] == AUDITED}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TaskError(f"{file} holds no audit: {error}") from error


def add_flags(records: list[dict], flags: dict[str, list[str]]) -> list[dict]:
    """The records with what an audit found, for a summary."""
    return [{**one, "flags": [*one["flags"], *(flag for flag in flags.get(one["task"], [])
                                               if flag not in one["flags"])]} for one in records]
