"""tegula-eval audit: tasks on which an answer without the work passes, and references that disagree with themselves.

Each task is run at small and ragged sizes, on inputs as it draws them, with no program at all. Beside the flags of
rule/reference.py (`random`, `dropout-off`, `unstable`, `inaccurate`, `zero`, `constant`) it is found out whether
KernelBench's rule takes

  one-number  the same number everywhere
  copy        one of the inputs
  tf32, f16, bf16  what the module gives for inputs and parameters that are rounded to that type

and, where the module's own float32 result does not pass against float64 (`inaccurate`: the exact result itself is then
not taken for that of the module), whether the task is so or PyTorch:

  amplifies   its error is no more than roundings explain, by the bound that programs are held to (rule/verdict.py): the task
              makes large errors of roundings, and what a program passes by is luck
"""
from __future__ import annotations

import re

from ..records.audits import AUDITED
from ..records.store import Store
from ..rule.tasks import Task, find_tasks
from ..workers import pool
from . import display
from .exit_codes import NOT_RIGHT, RIGHT
from .kernelbench import Run

MEANING = {
    "zero": "zeros pass",
    "one-number": "one number everywhere passes",
    "constant": "what it gives for other inputs passes",
    "copy": "an input passes as the result",
    "tf32": "inputs and parameters rounded to TF32 pass",
    "f16": "inputs and parameters rounded to float16 pass",
    "bf16": "inputs and parameters rounded to bfloat16 pass",
    "random": "two runs on the same inputs differ",
    "dropout-off": "two runs differ, but for dropout",
    "unstable": "in float32 it is far from itself in float64",
    "inaccurate": "in float32 it fails the rule against itself in float64: the exact result does not pass",
    "amplifies": "inaccurate, by no more than the roundings of any float32 program explain",
}


def run(options) -> int:
    tasks = find_tasks(options.root, options.level, options.tasks)
    store = Store(options.out)
    judges = pool.Pool(options.jobs, options.deadline, options.memory)
    try:
        records = Run(options, store, judges).audits(tasks)
    finally:
        judges.stop()
        store.close()
    (options.out / "audit.md").write_text(as_markdown(records, tasks))
    for flag, names in by_flag(records).items():
        print(f"{flag:12} {len(names):4}  {MEANING.get(flag, '')}")
    told = [one for one in records if one["outcome"] != AUDITED]
    for one in told:
        print(display.line(one))
    sound = sum(not one["flags"] for one in records if one["outcome"] == AUDITED)
    print(f"{len(records)} tasks, {sound} without any of these")
    return NOT_RIGHT if told else RIGHT


def by_flag(records: list[dict]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {flag: [] for flag in MEANING}
    for record in records:
        for flag in record["flags"]:
            found.setdefault(flag, []).append(record["task"])
    return {flag: names for flag, names in found.items() if names}


def as_markdown(records: list[dict], tasks: list[Task]) -> str:
    place = {task.key: number for number, task in enumerate(tasks)}
    levels = sorted({one["level"] for one in records})
    told = [one for one in records if one["outcome"] != AUDITED]
    sound = sum(not one["flags"] for one in records if one["outcome"] == AUDITED)
    lines = ["# Tasks that say less than they seem to", "",
             "What `tegula-eval audit` found ([eval.md](../eval.md), \"Audit\"): tasks on which an answer without the work",
             "passes KernelBench's rule (rtol = atol = 1e-4 in float32), and references that disagree with themselves, at",
             f"small or ragged sizes on the CPU. Of {len(records)} tasks {sound} have none of these flags.", "",
             "| flag | meaning | " + " | ".join(f"level {level}" for level in levels) + " |",
             "|---|---|" + "---:|" * len(levels)]
    flags = by_flag(records)
    for flag, names in flags.items():
        counts = [sum(one["task"] in names for one in records if one["level"] == level) for level in levels]
        lines.append(f"| `{flag}` | {MEANING.get(flag, '')} | " + " | ".join(map(str, counts)) + " |")
    lines += ["", "Which tasks:", "", "| flag | level | tasks |", "|---|---|---|"]
    for flag, names in flags.items():
        for level in levels:
            ones = [one["task"] for one in records if one["level"] == level and one["task"] in names]
            if ones:
                ones.sort(key=lambda name: place.get(name, 0))
                lines.append(f"| `{flag}` | {level} | {', '.join(_number(name) for name in ones)} |")
    lines += _roundings(records)
    if told:
        lines += ["", "## Not audited", ""] + [f"- {display.line(one)}" for one in told]
    return "\n".join(lines) + "\n"


def _roundings(records: list[dict]) -> list[str]:
    """What the flags `inaccurate` and `amplifies` go by."""
    rows = [f"| {one['task']} | {case['variant']} | {told['elements']} | {told['beyond']} | {told['error']:.1e} "
            f"| {told['moved_beyond']} | {told['moved_error']:.1e} |"
            for one in records for case in one["cases"] if (told := case.get("roundings"))]
    if not rows:
        return []
    return ["", "## Where float32 itself does not pass", "",
            "Elements that KernelBench's rule does not take, and the error (norm), against the module in float64: of PyTorch in",
            "float32, and of the module in float64 with inputs, parameters and results of operators off by one rounding of float32.",
            "", "| task | sizes | elements | float32: beyond | error | one rounding: beyond | error |",
            "|---|---|---:|---:|---:|---:|---:|", *rows]


def _number(task: str) -> str:
    """`19` for level1/19_ReLU; a task without a number by its name."""
    name = task.rpartition("/")[2]
    number = re.match(r"\d+(?=_|$)", name)
    return number[0] if number else name
