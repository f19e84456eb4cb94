"""SOL-ExecBench: folders that hold definition.json and workload.jsonl, in any depth."""
from __future__ import annotations

from collections import Counter
from pathlib import Path

from ..rule.tasks import TaskError
from . import flashinfer_bench, results, solutions
from .definitions import definition_of, files_for, lines_of, load_json
from .suite import Suite, SuiteTask, folders, make_task, read


def find(places: list[Path]) -> list[SuiteTask]:
    found = []
    for root in folders(places):
        paths = sorted(root.rglob("definition.json"))
        names = Counter(path.parent.name for path in paths)
        for path in paths:
            folder = path.parent
            called = str(folder.relative_to(root)) if names[folder.name] > 1 else folder.resolve().name
            group = folder.parent.name if folder != root else root.resolve().name
            try:
                definition = definition_of(load_json(read(path, root), path), path)
                workloads = lines_of(read(folder / "workload.jsonl", root), folder / "workload.jsonl")
                found.append(flashinfer_bench.task_of(definition, workloads, root, _rule, called, group,
                                                      files=(called, *files_for(definition.name))))
            except TaskError as error:
                found.append(make_task(called, group, [], problem=str(error)))
    if not found:
        raise TaskError(f"{', '.join(map(str, places))}: no folder holds a definition.json")
    return found


def _rule(workload: dict) -> dict:
    """The workload's tolerance. Raises TaskError."""
    told = workload.get("tolerance") or {}
    try:
        cap = told.get("max_error_cap")
        return {"form": "sum", "atol": float(told.get("max_atol", 1e-2)), "rtol": float(told.get("max_rtol", 1e-2)),
                "share": float(told.get("required_matched_ratio", 0.99)), "cap": None if cap is None else float(cap),
                "negative_inf": bool(told.get("allow_negative_inf", False))}
    except (TypeError, ValueError, AttributeError) as error:
        raise TaskError(f"the workload's tolerance {told!r}: {error}") from error


def sol_score(seconds: float, baseline_s: float, bound_s: float) -> float:
    """0.5 at the baseline's time, 1 at the bound's: 1 / (1 + (t - bound)/(baseline - bound))."""
    gap = baseline_s - bound_s
    if gap <= 0:
        return 1.0 if seconds <= bound_s else 0.0
    return min(1.0, 1 / (1 + max(0.0, seconds - bound_s) / gap))


def score(ones: list) -> list:
    known = [one for one in ones if one.known]
    scores, is_timed = [], False
    for one in known:
        timings = [(record or {}).get("timing") or {} for record in one.records]
        whole = bool(timings) and all(each.get("program_s") and each.get("roofline_s") for each in timings)
        is_timed |= whole
        # What is not right scores nothing.
        scores.append(results.mean([sol_score(each["program_s"], each["eager_s"], each["roofline_s"]) for each in timings])
                      if whole and one.right and one.passes_theirs() else 0.0)
    return [("problems passed", results.correctness(ones)),
            ("SOL score (eager mode as the baseline, our bound)", results.mean(scores) if is_timed else None),
            ("problems faster than eager mode", results.fast(ones))]


SUITE = Suite("sol-execbench", find, score, candidate=solutions.as_module, endings=(".json", "/solution.json", ".py"),
              solution=solutions.write_sol)
