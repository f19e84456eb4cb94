"""Judges one program on one task. Runs in a child process.

`evaluate` gives a record of fixed form; its `outcome` is one of

  right      every case that can be judged is right
  wrong      a result is wrong (reason: value, not-finite, shape, dtype)
  refused    the compiler refuses the program (reason: the first diagnostic's code)
  binding    its parameters do not stand for the module's (reason: see program/binding.py)
  call       it refuses the module's shapes or types (reason: the code), or left a tensor (reason: subscript)
  unjudged   the module's own result says nothing (reason: random, unstable)
  task       the task is broken
  internal   a defect of the compiler
  missing    a device, a driver or memory is missing

to which confine/child.py adds timeout, memory, crashed and failed.
"""
from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Callable

import torch

from ..program import provenance, runner
from ..program.binding import Binding, BindingError, bind
from ..rule import tolerance
from ..rule.reference import Case, evaluate_reference, make_case, sensitivities
from ..rule.tasks import TaskError
from ..rule.variants import Variant, find_variants, from_json, to_json
from ..rule.verdict import ErrorMeasure, Sensitivity, is_finite, judge

WIDE = ("normal", "large", "negative", "special")  # after "task", as the task draws its inputs
SEARCH_VERSION = 4  # of the search for variants: another one does not use what this one found


def derived_seed(secret: str, *parts) -> int:
    """A seed that cannot be told without the secret."""
    digest = hashlib.blake2b(repr(parts).encode(), key=secret.encode()[:64], digest_size=7).digest()
    return int.from_bytes(digest, "little")


def evaluate(request: dict, stage: Callable[[str], None] = lambda name: None) -> dict:
    """`request`: task and program as text, secret, seeds (cases of each kind), target, bytes and flops of the
    budget, own (also at the task's own sizes), certify (also by `tegula prove`, where it is right: the record's `proof`), time
    (None or the options of timing), rule (a benchmark's own tolerance,
    which is told beside the verdict). With a rule the record has `task_cases`: how many cases with the task's own
    inputs were planned."""
    torch.set_num_threads(request.get("threads", 1))
    record: dict = {"outcome": "right", "reason": "", "message": "", "flags": [], "cases": [], "timing": None,
                    "kernels": []}
    with caught(record):
        _evaluate(request, stage, record)
    target = request.get("target", "cpu")
    if record["outcome"] != "missing":
        record["versions"] = provenance.versions(target)
        if record["timing"]:
            record["clocks"] = provenance.clocks(target)
    return record


@contextlib.contextmanager
def caught(record: dict):
    """What a task or program does wrong becomes the record's outcome; a wrong result that was found before it stays that."""
    found: dict = {}
    try:
        yield
    except TaskError as error:
        found = dict(outcome="task", reason="broken", message=str(error))
    except BindingError as error:
        found = dict(outcome="binding", reason=error.reason, message=str(error))
    except runner.Refused as error:
        outcome = {1: "refused", 2: "call", 3: "missing", 4: "call"}.get(error.status, "internal")
        reason = "subscript" if error.status == 4 else (error.codes or ["?"])[0]
        found = dict(outcome=outcome, reason=reason, message=str(error), diagnostics=error.records[:8])
    if record["outcome"] != "wrong":
        record.update(found)


def _evaluate(request: dict, stage, record: dict) -> None:
    stage("parse")
    program = runner.Program(request["program"], request.get("program_name", "program.tgl"))
    stage("check")
    program.check()
    stage("variants")
    variants = find_cached_variants(request)
    kernels: dict[str, runner.Kernel] = {}
    judged, known_same = 0, False
    rule = request.get("rule")
    if rule:
        record["task_cases"] = len(variants)
    for place, variant in enumerate(variants):
        for number, distribution in enumerate(distributions(place, request.get("seeds", 2))):
            is_wrong = record["outcome"] == "wrong"
            if distribution in (rule or {}).get("without", ()) or is_wrong and distribution != "task":
                continue
            seed = derived_seed(request["secret"], variant.name, number)
            stage(f"reference {variant.name}")
            case = _case(variant, seed, distribution, request.get("target", "cpu"), number, known_same)
            if case is None:
                continue
            known_same = not {"random", "dropout-off"} & set(case.flags)
            for flag in case.flags:
                if flag not in record["flags"]:
                    record["flags"].append(flag)
            told = {"variant": variant.name, "changed": variant.changed, "seed": seed,
                    "distribution": distribution, "flags": case.flags}
            record["cases"].insert(len(record["cases"]) - is_wrong, told)  # the case that decides stays the last
            stage(f"compile {variant.name}")
            binding = bind(program.parameters, case)
            kernel = _kernel(program, binding, kernels, request, record)
            stage(f"run {variant.name}")
            results, told["run_s"] = _launch(kernel, binding)
            stage(f"compare {variant.name}")
            told["result_sha256"] = provenance.of_results(results)
            takes = {**binding.settings, **binding.scalars}
            draws = "dropout-off" in case.flags and not any(name in takes for name in case.instead)
            judged += judge_case(results, case, variant.cost.depth, told, draws)
            if rule:
                record["sources"] = _sources(binding, program)
                judge_theirs(results, case, told, rule)
            if told["outcome"] == "wrong" and not is_wrong:
                record.update(outcome="wrong", reason=told["reason"],
                              message=f"{variant.name} ({variant.changed or 'own sizes'}), {distribution}: "
                                      + told["message"])
            if record["outcome"] == "wrong" and not (rule and may_pass_theirs(record)):
                return
    if record["outcome"] == "wrong":
        return
    if not judged:
        record.update(outcome="unjudged", reason=record["cases"][-1].get("reason") or "random",
                      message="the module's own result says nothing about a program's")
        return
    if request.get("certify"):
        from ..proofs.certify import certify, small_variants  # torch's decompositions take seconds
        stage("prove")
        record["proof"] = certify(request["program"], lambda: small_variants(request["task"]),
                                  variants[0])
    if request.get("time"):
        from ..timing.at_variant import time_program  # needs a device's events, or minutes on a CPU
        stage("time")
        seed = derived_seed(request["secret"], "timing")
        record["timing"] = time_program(program, variants[-1], {**request, "seed": seed})


def _sources(binding: Binding, program: runner.Program) -> dict:
    """What each parameter stands for; of one that the program writes in place, with "inout" as its kind."""
    inout = {one.name for one in program.parameters if one.role == "inout"}
    return {name: ["inout" if name in inout and not binding.outputs else kind, source]
            for name, (kind, source) in binding.sources.items()}


def judge_theirs(results: list[torch.Tensor], case: Case, told: dict, rule: dict) -> None:
    """What a benchmark's own tolerance says of the case; a result of another type than the module's is wrong there."""
    told["theirs"] = tolerance.measure(results, case.expected, rule)
    if told["outcome"] != "wrong" and "dtype" in told["theirs"]:
        told.update(outcome="wrong", reason="dtype", message=told["theirs"]["dtype"])


def may_pass_theirs(record: dict) -> bool:
    """Whether the benchmark's own tolerance may take what ours does not: then the other cases with the task's inputs run too."""
    return record["reason"] in ("value", "not-finite") and all(
        one["theirs"]["passes"] for one in record["cases"] if one["distribution"] == "task" and "theirs" in one)


def distributions(place: int, seeds: int) -> list[str]:
    """Of the cases at one size: all at the first, which is the smallest; `seeds` at each other one, where another of the
    wide ones is the first."""
    count = max(seeds, 1 + len(WIDE)) if place == 0 else seeds
    return ["task", *(WIDE[(number + place) % len(WIDE)] for number in range(count - 1))]


def find_cached_variants(request: dict) -> list[Variant]:
    """Those of the request, where it has some: found for this task before. Else they are found, and are then in the
    request."""
    if not request.get("variants"):
        request["variants"] = to_json(find_variants(request["task"], *_budget(request)))
    return from_json(request["variants"])


def _budget(request: dict) -> tuple:
    own = request.get("own", False) or request.get("do") == "candidate" and request.get("target") == "cuda"
    return request.get("bytes", 8 << 20), request.get("flops", 1 << 28), own


class VariantCache:
    """A folder of variants, each found once for a task. No process that runs a task may write it: it would find
    variants for others."""

    def __init__(self, folder: str, request: dict):
        key = hashlib.sha256(repr((SEARCH_VERSION, request["task"], *_budget(request))).encode()).hexdigest()[:32]
        self.path = Path(folder) / f"{key}.json"

    def read(self) -> list[dict] | None:
        try:
            found = json.loads(self.path.read_text())
            from_json(found)
            return found
        except (OSError, ValueError, KeyError, TypeError):  # not there, or cut off: found again
            return None

    def write(self, found: list[dict]) -> None:
        part = self.path.with_suffix(f".{os.getpid()}")
        try:
            from_json(found)
            part.write_text(json.dumps(found))
            part.replace(self.path)
        except OSError:  # a full disk costs time, not results
            part.unlink(missing_ok=True)
        except (KeyError, TypeError):  # what a task's process says of itself
            pass


def _case(variant: Variant, seed: int, distribution: str, target: str, number: int,
          known_same: bool) -> Case | None:
    """None where the module cannot take this distribution."""
    try:
        case = make_case(variant.source, seed, distribution, target)
        evaluate_reference(case, seed, audit=number == 0, known_same=known_same)
    except TaskError:
        if distribution == "task":
            raise
        return None
    # Where the module's own result overflows, what it gives on the way does in another order of the same operations.
    if distribution != "task" and not all(map(is_finite, (*case.exact, *case.expected))):
        return None
    return case


def _kernel(program: runner.Program, binding: Binding, kernels: dict, request: dict,
            record: dict) -> runner.Kernel:
    key = repr((sorted(binding.settings.items()), binding.optionals, binding.ellipsis_rank))
    if key not in kernels:
        kernels[key] = program.compile(binding.settings, binding.optionals, binding.ellipsis_rank,
                                       request.get("target", "cpu"), request.get("threads", 1), stages=provenance.STAGES)
        own = {one.dtype for one in binding.tensors.values()}
        told = provenance.of_kernel(kernels[key], binding.settings, binding.optionals, binding.ellipsis_rank, own)
        record["kernels"].append(told)
        if told.get("lowered") and "lower-precision" not in record["flags"]:
            record["flags"].append("lower-precision")
    return kernels[key]


def _launch(kernel: runner.Kernel, binding: Binding) -> tuple[list[torch.Tensor], float]:
    """The results, and the seconds that the program ran."""
    # Copies: what the program may write to is not what the module was given.
    tensors = {name: tensor.clone() for name, tensor in binding.tensors.items()}
    launch = kernel.prepare(tensors, binding.scalars)
    started = time.perf_counter()
    launch()
    launch.wait()
    seconds = time.perf_counter() - started
    if binding.outputs:
        return [launch.outputs[name] for name in binding.outputs], seconds
    return [tensors[one.name.decode()] for one in kernel.arguments
            if runner.ROLES[one.role] == "inout"], seconds


def _told(error: ErrorMeasure | None) -> dict | None:
    """JSON has no infinity: text stands for it."""
    return error and {name: value if math.isfinite(value) else str(value) for name, value in asdict(error).items()
                      if name != "elements"}


def _number(value: float) -> float | str:
    return float(f"{value:.4g}") if math.isfinite(value) else str(value)


def judge_case(results: list[torch.Tensor], case: Case, depth: float, told: dict, draws: bool = False,
               sensitive: Callable[[Case], list[Sensitivity]] | None = sensitivities,
               doubts: list[ErrorMeasure] | None = None) -> bool:
    """Fills the case's record; whether it could be judged. `draws`: the program may draw random numbers. `doubts`:
    by how much `case.exact` is off itself. `sensitive`: None where what is sensitive is judged elsewhere."""
    def verdicts_at(sensitivity: list[Sensitivity]):
        off = doubts or [ErrorMeasure(0.0, 0.0, -1)] * len(results)
        errors = case.errors or [None] * len(results)
        return [judge(ours, expected, exact, depth, *rest)
                for ours, expected, exact, *rest in zip(results, case.expected, case.exact, sensitivity, off, errors)]

    verdicts = verdicts_at([Sensitivity()] * len(results))
    if any(one.reason == "value" for one in verdicts) and "random" not in case.flags and sensitive is not None:
        sensitivity = sensitive(case)
        told["sensitivity"] = [[_number(one.norm), _number(one.worst), _number(one.elements)] for one in sensitivity]
        verdicts = verdicts_at(sensitivity)
    first = next((place for place, one in enumerate(verdicts) if not one.right), None)
    shown = verdicts[first if first is not None else 0]
    told.update(outcome="right", reason="", message="", kernelbench=all(one.kernelbench for one in verdicts),
                error=_told(shown.ours), pytorch=_told(shown.reference))
    if first is None:
        return "random" not in case.flags
    if "random" in case.flags and shown.reason in ("value", "not-finite"):
        told.update(outcome="unjudged", reason="random")
        return False
    if draws and shown.reason in ("value", "not-finite"):
        # It may draw as the module does, from other numbers, and has no constant that ends that.
        told.update(outcome="unjudged", reason="random", message=shown.message)
        return False
    if shown.reason in ("value", "not-finite") and "unstable" in case.flags:
        # Nobody's float32 is near the truth here. KernelBench's rule may still hold: then it decides.
        if told["kernelbench"]:
            return True
        if "inaccurate" in case.flags:
            told.update(outcome="unjudged", reason="unstable")
            return False
    which = f"result {first}: " if len(verdicts) > 1 else ""
    told.update(outcome="wrong", reason=shown.reason, message=which + shown.message, wrong=shown.wrong,
                wrong_share=shown.wrong_share, pattern=shown.pattern)
    return True
