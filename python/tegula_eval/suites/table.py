"""One report of all suites of a run: our score, the suite's own beside it, and each task."""
from __future__ import annotations

import json
from pathlib import Path

from . import results
from .results import Result
from .suite import Suite

FILE = "suite.json"


def told(suite: Suite, ones: list[Result], programs: dict[str, str], is_stopped: bool = False) -> dict:
    """All that there is to say, as JSON. `programs`: the file of each task's program."""
    groups: dict[str, list[Result]] = {}
    for one in ones:
        groups.setdefault(one.task.group, []).append(one)
    return {"suite": suite.name, "stopped": is_stopped, "ours": results.ours(ones), "theirs": _score(suite, ones),
            "groups": {name: {"ours": results.ours(few), "theirs": _score(suite, few)} for name, few in sorted(groups.items())},
            "tasks": [_task(one, programs.get(one.task.name, "")) for one in ones]}


def _score(suite: Suite, ones: list[Result]) -> list[list]:
    return [[name, value] for name, value in suite.score(ones)]


def _task(one: Result, program: str) -> dict:
    bad = next((record for record in one.records if record and record["outcome"] == one.outcome), None) \
        if not one.right else None
    return {"task": one.task.name, "group": one.task.group, "outcome": one.outcome, "reason": one.reason,
            "message": one.task.problem or (bad or {}).get("message", ""), "at": (bad or {}).get("task", ""),
            "parts": len(one.task.parts), "right_parts": sum(bool(record) and record["outcome"] == "right"
                                                              for record in one.records),
            "counts": one.known, "theirs": one.passes_theirs(), "speedup": one.speedup(),
            "bound_share": one.bound_share(), "program": program}


def as_text(one: dict) -> str:
    """For the terminal: scores, then what is not right."""
    ours = one["ours"]
    right = f"{ours['right']} of {ours['judged']} right ({_percent(results.share(ours['right'], ours['judged']))})"
    lines = [f"{one['suite']}: {right}" + (", stopped before the end" if one["stopped"] else "")]
    rest = ours["tasks"] - ours["judged"]
    if rest:
        lines.append(f"  not counted: {rest} of {ours['tasks']} tasks, for reasons that are not the program's")
    lines.append("  ours: " + _ours(ours))
    lines.append("  its own: " + "; ".join(f"{name} {_number(value)}" for name, value in one["theirs"]))
    for task in one["tasks"]:
        if task["outcome"] not in ("right", results.NO_PROGRAM):
            at = f", at {task['at']}" if task["at"] not in ("", task["task"]) else ""
            reason = f" ({task['reason']})" if task["reason"] else ""
            lines.append(f"  {task['task']}: {task['outcome']}{reason}{at}" + (f": {task['message']}" if task["message"] else ""))
    missing = sum(task["outcome"] == results.NO_PROGRAM for task in one["tasks"])
    if missing:
        lines.append(f"  no program: {missing} tasks, which count as not solved")
    return "\n".join(lines)


def _ours(ours: dict) -> str:
    told_ = [f"right {_percent(results.share(ours['right'], ours['judged']))}"]
    told_ += [f"fast_{p} {_percent(value)}" for p, value in ours.get("fast_p", {}).items() if float(p) >= 1]
    if "bound_share" in ours:
        told_.append(f"share of the bound {_percent(ours['bound_share'])}")
    return "; ".join(told_ if len(told_) > 1 else [*told_, "not timed"])


def read(out: Path) -> list[dict]:
    """Of each suite that was run into this folder."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(out.glob(f"*/{FILE}"))]


def as_markdown(ones: list[dict]) -> str:
    lines = ["# Suites", "", "| suite | tasks | counted | right | fast_1 | share of the bound | its own score |",
             "|---|---:|---:|---:|---:|---:|---|"]
    for one in ones:
        ours = one["ours"]
        lines.append(f"| {one['suite']}{' (stopped)' if one['stopped'] else ''} | {ours['tasks']} | {ours['judged']} "
                     f"| {ours['right']} | {_percent(ours.get('fast_p', {}).get('1'))} | {_percent(ours.get('bound_share'))} "
                     f"| {'; '.join(f'{name} {_number(value)}' for name, value in one['theirs'])} |")
    for one in ones:
        lines += ["", f"## {one['suite']}", "", "| group | task | outcome | workloads right | its tolerance | speedup | bound | program |",
                  "|---|---|---|---:|---|---:|---:|---|"]
        for task in one["tasks"]:
            reason = f" ({task['reason']})" if task["reason"] else ""
            lines.append(f"| {task['group']} | {task['task']} | {task['outcome']}{reason} | {task['right_parts']} of {task['parts']} "
                         f"| {'yes' if task['theirs'] else 'no'} | {_number(task['speedup'])} | {_percent(task['bound_share'])} "
                         f"| {task['program']} |")
    return "\n".join(lines) + "\n"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
