"""Which file of a folder holds the program for a task."""
from __future__ import annotations

import re
from pathlib import Path

from ..rule.tasks import Task


def find_program(folder: Path, task: Task, ending: str = ".tgl") -> Path | None:
    for place in (folder / f"level{task.level}" / f"{task.name}{ending}", folder / f"{task.name}{ending}",
                  *([folder / file_name(task)] if ending == ".py" else [])):
        if place.is_file():
            return place
    return None


def file_name(task: Task, sample: int = 0) -> str:
    """As KernelBench's scripts look for it: runs/NAME/level_<N>_problem_<N>_sample_<N>_kernel.py."""
    number = re.match(r"\d+(?=_|$)", task.name)
    if not task.level or not number:
        return f"{task.name}.py" if not sample else f"{task.name}_sample_{sample}.py"
    return f"level_{task.level}_problem_{int(number.group())}_sample_{sample}_kernel.py"
