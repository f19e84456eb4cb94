"""What became of a task, from the records of its parts; and our own score."""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ..records import summary
from .suite import SuiteTask

NO_PROGRAM, LEFT = "no program", "left"


def is_known(outcome: str, reason: str) -> bool:
    """Not where the judge or a device failed, the reference did, or it says nothing of a program."""
    return outcome != "unjudged" and summary.is_known({"outcome": outcome, "reason": reason})


@dataclass(frozen=True)
class Result:
    task: SuiteTask
    outcome: str
    reason: str
    records: tuple  # of each part, None where there is none

    @property
    def right(self) -> bool:
        return self.outcome == summary.GOOD

    @property
    def known(self) -> bool:
        """Whether it counts in a score. A task without a program does: it is not solved."""
        return self.outcome != LEFT and is_known(self.outcome, self.reason)

    def ratios(self, against: str = "eager") -> list[float] | None:
        """The speedup at each part; None unless all are right and timed."""
        found = [one and summary.speedup(one, against) for one in self.records]
        return found if found and all(found) else None

    def speedup(self, against: str = "eager") -> float | None:
        found = self.ratios(against)
        return summary.geometric_mean(found) if found else None

    def bound_share(self) -> float | None:
        """The time of the bound (bytes and products at rates measured on the device) over the program's."""
        shares = [_share(one) for one in self.records]
        return summary.geometric_mean(shares) if self.right and shares and all(shares) else None

    def passes_theirs(self) -> bool:
        """By the benchmark's own tolerance, at all parts."""
        return bool(self.records) and all(one is not None and passes_theirs(one) for one in self.records)

    def their_ratios(self) -> list[float]:
        """What the benchmark counts: the speedup at each part of what its own tolerance takes; nothing else has one."""
        return (self.ratios() or []) if self.passes_theirs() else []

    def their_speedup(self) -> float | None:
        found = self.their_ratios()
        return summary.geometric_mean(found) if found else None


def _share(record: dict | None) -> float | None:
    timing = (record or {}).get("timing") or {}
    return timing["roofline_s"] / timing["program_s"] if timing.get("roofline_s") and timing.get("program_s") else None


def passes_theirs(record: dict) -> bool:
    """Whether all cases with the task's own inputs are within the benchmark's tolerance: it draws no others. What ended
    otherwise than by numbers (a crash, a refusal, a result of another shape, a fraud) does not pass, nor what was planned
    and did not run."""
    if record["outcome"] != summary.GOOD and (record["outcome"] != "wrong" or record["reason"] not in ("value", "not-finite")):
        return False
    cases = [one["theirs"] for one in record["cases"] if one["distribution"] == "task" and "theirs" in one]
    return 0 < record.get("task_cases", 0) <= len(cases) and all(one["passes"] for one in cases)


def of_task(task: SuiteTask, records: dict[str, dict], has_program: bool) -> Result:
    """`records`: by the key of the part."""
    if task.problem:
        return Result(task, "task", "unreadable", ())
    found = tuple(records.get(part.key) for part in task.parts)
    if not has_program:
        return Result(task, NO_PROGRAM, "", found)
    # What the program does wrong at one part decides, whatever is not known of another.
    for one in found:
        if one is not None and one["outcome"] != summary.GOOD and is_known(one["outcome"], one["reason"]):
            return Result(task, one["outcome"], one["reason"], found)
    for one in found:
        if one is not None and one["outcome"] != summary.GOOD:
            return Result(task, one["outcome"], one["reason"], found)
    return Result(task, LEFT if None in found or not found else summary.GOOD, "", found)


def ours(results: list[Result]) -> dict:
    """Our own score: what is right, fast_p and the share of the bound, of the tasks of which something is known."""
    known = [one for one in results if one.known]
    told = {"tasks": len(results), "judged": len(known), "right": sum(one.right for one in known),
            "outcomes": dict(Counter(one.outcome for one in results).most_common())}
    speeds = [one.speedup() for one in known]
    if any(one is not None for one in speeds):
        told["fast_p"] = {str(p): sum(one is not None and one > p for one in speeds) / len(known)
                          for p in summary.THRESHOLDS}
    shares = [share for one in known if (share := one.bound_share()) is not None]
    if shares:
        told["bound_share"] = summary.geometric_mean(shares)
    return told


def share(part: int, whole: int) -> float | None:
    """None of nothing: an empty list of tasks is no success."""
    return part / whole if whole else None


def mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def correctness(results: list[Result]) -> float | None:
    known = [one for one in results if one.known]
    return share(sum(one.passes_theirs() for one in known), len(known))


def is_timed(results: list[Result]) -> bool:
    return any(one.speedup() is not None for one in results)


def fast(results: list[Result], p: float = 1) -> float | None:
    """KernelBench's fast_p: right by the benchmark's own rule and more than p times as fast as eager mode, of all; None
    where nothing was timed."""
    known = [one for one in results if one.known]
    if not is_timed(known):
        return None
    return share(sum((one.their_speedup() or 0) > p for one in known), len(known))
