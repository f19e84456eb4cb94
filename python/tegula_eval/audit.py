"""tegula-eval audit: tasks on which an answer without the work passes, and references that disagree with themselves.

Each task is run at small and ragged sizes, on inputs as it draws them, with no program at all. Beside the flags of
reference.py (`random`, `dropout-off`, `unstable`, `inaccurate`, `zero`, `constant`) it is found out whether
KernelBench's rule takes

  one-number  the same number everywhere
  copy        one of the inputs
  tf32, f16, bf16  what the module gives for inputs and parameters that are rounded to that type

and, where the module's own float32 result does not pass against float64 (`inaccurate`: the exact result itself is then
not taken for that of the module), whether the task is so or PyTorch:

  amplifies   its error is no more than roundings explain, by the bound that programs are held to (verdict.py): the task
              makes large errors of roundings, and what a program passes by is luck
"""
from __future__ import annotations

import json
import re
from pathlib import Path

import torch
from torch.utils._pytree import tree_flatten

from . import display, pool, summary
from .evaluate import caught, derived_seed, find_cached_variants
from .reference import ROUNDOFF, Case, evaluate_reference, make_case, moved_results, passes, sensitivity_of
from .store import Store
from .tasks import Task, TaskError, find_tasks
from .variants import Variant
from .verdict import ErrorMeasure, bounds, kernelbench_misses, kernelbench_rule, measure_error

AUDITED = "audited"
DRAWS = 4  # of inputs and parameters
NONE = ErrorMeasure(0.0, 0.0, -1)
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


def audit(request: dict, stage) -> dict:
    """`request`: as of evaluate.evaluate, without a program."""
    torch.set_num_threads(request.get("threads", 1))
    record: dict = {"outcome": AUDITED, "reason": "", "message": "", "flags": [], "cases": [], "timing": None}
    with caught(record):
        stage("variants")
        for variant in find_cached_variants(request):
            stage(f"reference {variant.name}")
            case = make_case(variant.source, derived_seed(request["secret"], variant.name, 0), "task")
            evaluate_reference(case, case.seed)
            stage(f"audit {variant.name}")
            case.flags += more_flags(case)
            told = {"variant": variant.name, "changed": variant.changed, "flags": case.flags}
            stage(f"roundings {variant.name}")
            inaccurate = find_inaccurate(case, variant, request["secret"])
            if inaccurate is not None:
                told["roundings"] = roundings(inaccurate, variant.cost.depth)
                case.flags += [flag for flag in ("inaccurate", "amplifies")
                               if flag not in case.flags and (flag == "inaccurate" or told["roundings"]["explained"])]
            record["flags"] += [flag for flag in case.flags if flag not in record["flags"]]
            record["cases"].append(told)
    return record


def more_flags(case: Case) -> list[str]:
    """Of a case whose results are known."""
    found = []
    if all(_is_one_number(one) for one in case.expected):
        found.append("one-number")
    given = [one for one in tree_flatten(case.inputs)[0] if isinstance(one, torch.Tensor)]
    if all(any(one.shape == result.shape and kernelbench_rule(one.to(result), result) for one in given)
           for result in case.expected):
        found.append("copy")
    if "random" not in case.flags and any(one.is_floating_point() for one in case.expected):
        found += [name for name, rounded in ROUNDED.items() if passes(case, rounded, rounded)]
    return found


def find_inaccurate(case: Case, variant: Variant, secret: str) -> Case | None:
    """The case, or one of other inputs and parameters, of which the float32 result does not pass against float64. Where
    few elements are near zero it goes by the draw whether there is one that does not."""
    if "random" in case.flags:
        return None
    draws_nothing = "dropout-off" not in case.flags
    for draw in range(1, DRAWS):
        if "inaccurate" in case.flags:
            return case
        case = make_case(variant.source, derived_seed(secret, variant.name, draw), "task")
        evaluate_reference(case, case.seed, audit=False, known_same=draws_nothing)
    return case if "inaccurate" in case.flags else None


def roundings(case: Case, depth: float) -> dict:
    """Why float32 does not pass: elements beyond KernelBench's rule and errors (norm) of the module in float32, and of
    the module in float64 where all is off by one rounding (of the samples the second from above)."""
    floats = [place for place, one in enumerate(case.exact) if one.is_floating_point()]
    beyond, moved = 0, []
    for place in floats:
        beyond += kernelbench_misses(case.expected[place], case.exact[place])
    for results in moved_results(case):
        moved.append((sum(kernelbench_misses(results[place], case.exact[place]) for place in floats),
                      [measure_error(results[place], case.exact[place]) for place in floats]))
    explained = True
    for number, place in enumerate(floats):
        errors = [ones[number] for _, ones in moved]
        allowed = bounds(case.expected[place].dtype, depth, NONE, sensitivity_of(errors))
        own = case.errors[place]
        explained &= own.norm <= allowed[0] and own.worst <= allowed[1]
    return {"elements": sum(case.exact[place].numel() for place in floats), "beyond": beyond,
            "error": max(case.errors[place].norm for place in floats), "explained": explained,
            "moved_beyond": sorted(count for count, _ in moved)[-2],
            "moved_error": max(sensitivity_of([ones[number] for _, ones in moved]).norm * ROUNDOFF
                               for number in range(len(floats)))}


def _is_one_number(result: torch.Tensor) -> bool:
    """The middle of the least and the largest is the nearest to all, where the rule's relative part is left out."""
    if result.numel() < 2 or not result.is_floating_point():
        return False
    middle = (result.min() + result.max()) / 2
    return kernelbench_rule(middle.expand(result.shape), result)


def _to_tf32(one: torch.Tensor) -> torch.Tensor:
    """To 10 bits behind the point, halves up."""
    return ((one.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def _floats(rounded):
    return lambda one: rounded(one) if isinstance(one, torch.Tensor) and one.dtype == torch.float32 else one


ROUNDED = {"tf32": _floats(_to_tf32), "f16": _floats(lambda one: one.half().float()),
           "bf16": _floats(lambda one: one.bfloat16().float())}


def run(options) -> int:
    from .cli import NOT_RIGHT, RIGHT, Run
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
