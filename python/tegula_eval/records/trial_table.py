"""A trial of several languages as Markdown: a row for each language, and each task's verdicts."""
from __future__ import annotations

import gzip
import json
from pathlib import Path

from .summary import GOOD, geometric_mean, is_known

RAN = (GOOD, "wrong", "unjudged")  # compiled, took the module's inputs, gave results


def read(path: Path) -> list[dict]:
    """Records of a run, `results.jsonl` or that with `.gz`: of each answer the last one, and none after a right one. Raises OSError and
    ValueError."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
        last = {(one["task"], one["asked"]["turn"]): one for one in map(json.loads, lines)}
    return [one for (task, turn), one in sorted(last.items())
            if not any(last[task, before]["outcome"] == GOOD for before in range(turn) if (task, before) in last)]


def conversations(records: list[dict]) -> dict[str, dict[str, list[dict]]]:
    """Of a language and a task the records of its answers, the first one first."""
    found: dict[str, dict[str, list[dict]]] = {}
    for record in sorted(records, key=lambda one: one["asked"]["turn"]):
        task = record["task"].removeprefix(record["language"] + "/")
        found.setdefault(record["language"], {}).setdefault(task, []).append(record)
    return found


def speed(answers: list[dict]) -> float | None:
    """Times as fast as eager mode; None where the last answer is not right or was not timed."""
    last = answers[-1]
    return (last.get("timing") or {}).get("eager_ratio") if last["outcome"] == GOOD else None


def summarize(records: list[dict]) -> dict:
    """Of each language: counts and speeds. Where nothing is known of an answer (the judge or the endpoint failed) it is left out, and told
    as `lost`."""
    told = conversations(records)
    everywhere = set.intersection(*({task for task, answers in tasks.items() if speed(answers)} for tasks in told.values())) \
        if told else set()
    found = {}
    for language, tasks in told.items():
        known = {task: answers for task, answers in tasks.items() if is_known(answers[0])}
        speeds = {task: ratio for task, answers in known.items() if (ratio := speed(answers))}
        found[language] = {
            "tasks": len(known), "lost": len(tasks) - len(known),
            "accepted": sum(answers[0]["outcome"] in RAN for answers in known.values()),
            "right_first": sum(answers[0]["outcome"] == GOOD for answers in known.values()),
            "right": sum(answers[-1]["outcome"] == GOOD for answers in known.values()),
            "repaired": any(len(answers) > 1 for answers in known.values()),
            "timed": len(speeds), "speed": geometric_mean(list(speeds.values())) if speeds else None,
            "faster": sum(ratio > 1 for ratio in speeds.values()),
            "everywhere": len(everywhere),
            "speed_everywhere": geometric_mean([speeds[task] for task in everywhere]) if everywhere else None}
    return found


def as_markdown(records: list[dict], told: dict, writer: str) -> str:
    lines = [f"Writer: {writer}.", ""] if writer else []
    lines += ["| language | tasks | accepted | right first time | right after one repair | speed beside eager mode (right ones) | "
              "faster than eager mode | speed, tasks right in every language |", "|---|---|---|---|---|---|---|---|"]
    for language, one in told.items():
        count = one["tasks"]
        lines.append(f"| {language} | {count} | {_share(one['accepted'], count)} | {_share(one['right_first'], count)} | "
                     f"{_share(one['right'], count) if one['repaired'] or one['right'] == count else '-'} | "
                     f"{_times(one['speed'], one['timed'])} | {_share(one['faster'], one['timed'])} | "
                     f"{_times(one['speed_everywhere'], one['everywhere'])} |")
    answers = conversations(records)
    languages = list(told)
    lines += ["", f"| task | {' | '.join(languages)} |", "|---" * (1 + len(languages)) + "|"]
    for task in sorted({task for tasks in answers.values() for task in tasks}):
        lines.append(f"| {task} | " + " | ".join(_verdict(answers[one].get(task)) for one in languages) + " |")
    return "\n".join(lines) + "\n"


def _verdict(answers: list[dict] | None) -> str:
    if not answers:
        return ""
    ratio, last = speed(answers), answers[-1]
    text = last["outcome"] if last["outcome"] == GOOD else f"{last['outcome']} ({last['reason']})"
    return (f"{answers[0]['outcome']}, then " if len(answers) > 1 else "") + text + (f", {ratio:.2f}" if ratio else "")


def _share(part: int, count: int) -> str:
    return f"{part} ({100 * part / count:.0f} %)" if count else "-"


def _times(ratio: float | None, count: int) -> str:
    return f"{ratio:.2f} ({count})" if ratio else "-"
