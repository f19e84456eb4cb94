"""Judges one answer of a trial, in whichever language, by one rule. Runs in a child process, as evaluate.py does.

Every answer is a module when it runs: a Tegula program becomes one as `tegula-eval export` writes it. It runs in a process
of its own (confine/guest.py), is given inputs and parameters, and is held against the module in float64, at the sizes and on
the distributions of evaluate.py. On CUDA it is then timed in turns with eager mode at the task's own sizes: each side between two events of
its own process, after the L2 cache was overwritten.

A module in Triton or CUDA must do its work itself: which operators of torch its forward runs is told by its process, and
those that compute are refused. That and the times are believed; a stranger's file is for candidates.py.

Outcomes beyond those of evaluate.py are those of candidates.py, and `refused` for the reason `operators`.
"""
from __future__ import annotations

import ctypes
import gc
import statistics
from typing import Callable

import torch
from torch.utils._pytree import tree_flatten, tree_map

from ..confine import child
from ..confine.session import Ended, Session
from ..program import provenance, runner
from ..rule import reference
from ..rule.reference import Case, evaluate_reference, results
from ..rule.tasks import TaskError
from ..rule.variants import Variant, build_on, state_of
from ..rule.verdict import is_finite, measure_error
from ..timing.at_own_sizes import ENOUGH_S, LEAST_TURNS, LONG_S, _differs
from ..timing.clock import Clock
from ..timing.device_turns import DeviceTurns
from . import candidates
from .evaluate import caught, derived_seed, distributions, find_cached_variants, judge_case
from .export import bound_text

# What makes room, or copies: all else that is no view computes.
FREE = set("""empty empty_like empty_strided new_empty new_empty_strided zeros zeros_like new_zeros ones ones_like new_ones full
full_like new_full fill_ zero_ scalar_tensor lift_fresh detach alias clone copy_ _to_copy contiguous _reshape_alias
_unsafe_view""".split())
CLOCK_S, CLOCK_RATIO = 2e-3, 2.0  # a call of which this process sees more than that beyond its own clock is told


def evaluate(request: dict, stage: Callable[..., None] = lambda name, waits=False: None) -> dict:
    """`request`: as evaluate.evaluate, with `language`, and `turns`: the folder of DeviceTurns, where several judge on one
    device. What it waits for turns is no part of the deadline (`stage(name, waits=True)`)."""
    torch.set_num_threads(request.get("threads", 1))
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE: as in candidates.py
    record: dict = {"outcome": "right", "reason": "", "message": "", "flags": [], "cases": [], "timing": None}
    with caught(record):
        try:
            _Trial(request, stage, record).run()
        except Ended as ended:
            record.update(outcome=ended.outcome, reason=ended.reason, message=str(ended))
    if record["outcome"] != "missing":
        record["versions"] = provenance.versions(request.get("target", "cpu"))
    return record


evaluate.descriptors = lambda: [candidates.starter().descriptor]
evaluate.waits = True  # the answer runs in a process of its own, and the task is the caller's


def _free(target: str) -> None:
    gc.collect()
    if target == "cuda":
        torch.cuda.empty_cache()


def make_case(variant: Variant, seed: int, distribution: str, target: str) -> Case:
    """As reference.make_case, with numbers drawn on the device. Raises TaskError."""
    torch.manual_seed(seed)
    built = build_on(variant.source, target)
    if distribution != "task":
        built.inputs = tree_map(lambda value: reference.widen(value, distribution), built.inputs)
        reference._jitter(built.model)
    return Case(built, built.inputs, state_of(built.model), seed=seed)


class _Trial:
    def __init__(self, request: dict, stage, record: dict):
        self.request, self.stage, self.record = request, stage, record
        self.target = request.get("target", "cpu")
        self.computes_alone = request["language"] in ("triton", "cuda")

    def run(self) -> None:
        text = self._text()
        turns = DeviceTurns(self.request.get("turns"))
        session = None
        try:
            self.stage("the device", waits=True)
            with turns.beside_others():
                self.stage("candidate")
                session = Session(candidates.starter(), self.target, self._room(), self.request.get("threads", 1),
                                  child.allowed_bytes, alone=False)
                self.record["isolation"] = session.isolation
                gaps = self._judge(session, text)
                _free(self.target)
            if self.request.get("time"):
                self.stage("the device, alone", waits=True)
                with turns.alone():
                    self.stage("time")
                    session.has_device()
                    self._time(session, text, gaps)
        finally:
            if session is not None:
                session.close()

    def _text(self) -> str:
        """The answer as a module. Raises what evaluate.caught takes."""
        request = self.request
        if request["language"] != "tegula":
            self.stage("variants")
            self.variants = find_cached_variants(request)
            return request["program"]
        self.stage("parse")
        program = runner.Program(request["program"], request.get("program_name", "program.tgl"))
        self.stage("check")
        program.check()
        self.stage("variants")
        self.variants = find_cached_variants(request)
        self.stage("bind")
        return bound_text("An answer", request, program, self.variants[0].source)

    def _room(self) -> int:
        """Bytes for inputs and results of the largest call; notes what the results are, and whether the module changes its
        inputs."""
        case = make_case(self.variants[-1], derived_seed(self.request["secret"], "shapes"), "task", self.target)
        found = reference.run_module(case, 0)
        inputs = tree_map(lambda one: one.clone() if isinstance(one, torch.Tensor) else one, case.inputs)
        with torch.no_grad():
            case.built.model(*inputs)
        tensors, after = ([one for one in tree_flatten(ones)[0] if isinstance(one, torch.Tensor)]
                          for ones in (case.inputs, inputs))
        self.changes_inputs = not all(reference.is_equal(one, other) for one, other in zip(tensors, after))
        self.outputs = [one.to("meta") for one in found]
        return 2 * sum(one.nbytes + 512 for one in [*tensors, *found])

    def _judge(self, session: Session, text: str) -> list[float]:
        """Raises Ended where a case is wrong. How far each result is from eager mode's at the last size (norm)."""
        judged, gaps = 0, []
        for place, variant in enumerate(self.variants):
            for number, distribution in enumerate(distributions(place, self.request.get("seeds", 2))):
                self.stage(f"reference {variant.name}")
                case = self._case(variant, derived_seed(self.request["secret"], variant.name, number), distribution,
                                  number)
                if case is None:
                    continue
                told = {"variant": variant.name, "changed": variant.changed, "seed": case.seed,
                        "distribution": distribution, "flags": case.flags}
                self.record["cases"].append(told)
                self.record["flags"] += [flag for flag in case.flags if flag not in self.record["flags"]]
                self.stage(f"run {variant.name}")
                written = self._call(session, text, case, watched=number == 0)
                self.stage(f"compare {variant.name}")
                judged += judge_case(written, case, variant.cost.depth, told, "dropout-off" in case.flags)
                if told["outcome"] == "wrong":
                    raise Ended("wrong", told["reason"], f"{variant.name} ({variant.changed or 'own sizes'}), "
                                f"{distribution}: {told['message']}")
                if distribution == "task":
                    gaps = [measure_error(one, other).norm if other.is_floating_point() else 0.0
                            for one, other in zip(written, case.expected)]
        if not judged:
            raise Ended("unjudged", self.record["cases"][-1].get("reason") or "random",
                        "the module's own result says nothing about an answer's")
        return gaps

    def _case(self, variant: Variant, seed: int, distribution: str, number: int) -> Case | None:
        """None where the module cannot take this distribution."""
        try:
            case = make_case(variant, seed, distribution, self.target)
            evaluate_reference(case, seed, audit=False, known_same=number > 0)
        except TaskError:
            if distribution == "task":
                raise
            return None
        if distribution != "task" and not all(map(is_finite, (*case.exact, *case.expected))):
            return None
        return case

    def _call(self, session: Session, text: str, case: Case, watched: bool) -> list[torch.Tensor]:
        session.load(text, "ModelNew", case.built.init, case.seed, case.state, {})
        _, written, same = session.call(case.inputs, [one.to("meta") for one in case.expected],
                                        "watch" if watched and self.computes_alone else "call")
        if not same and not self.changes_inputs:
            raise Ended("tampered", "inputs", "forward changes its inputs")
        if watched and self.computes_alone:
            computing = [name for name in session.operators() if name not in FREE]
            if computing:
                raise Ended("refused", "operators", f"forward computes with torch: {', '.join(computing[:8])}; its kernels "
                            "must do that (torch may allocate, view and copy)")
        return [one.to(self.target) for one in written]

    def _time(self, session: Session, text: str, gaps: list[float]) -> None:
        request, variant = self.request, self.variants[-1]
        case = make_case(variant, derived_seed(request["secret"], "timing"), "task", self.target)
        model, clock = case.built.model, Clock(self.target)
        session.load(text, "ModelNew", case.built.init, case.seed, case.state, {})
        times: dict[str, list[float]] = {"program": [], "eager": [], "seen": []}
        for turn in range(-2, request["time"].get("turns", 10)):
            torch.manual_seed(derived_seed(request["secret"], "timing", turn))
            case.inputs = self._inputs(case)
            sides: dict[str, Callable] = {"eager": lambda: self._eager(model, case, clock),
                                          "program": lambda: self._program(session, case)}
            found = {name: sides[name]() for name in (sorted(sides) if turn % 2 else sorted(sides, reverse=True))}
            (eager_s, expected), (program_s, seen_s, written) = found["eager"], found["program"]
            failed = _differs([one.to(self.target) for one in written], expected, gaps)
            if failed:
                raise Ended("wrong", "timed", f"turn {turn}: {failed}")
            if turn >= 0:
                for name, seconds in (("program", program_s), ("eager", eager_s), ("seen", seen_s)):
                    times[name].append(seconds)
            spent = max(sum(times["program"]), sum(times["eager"]))
            if len(times["eager"]) >= LEAST_TURNS and spent >= ENOUGH_S or spent >= LONG_S:
                break
        self._report(times)

    def _inputs(self, case: Case) -> list:
        with torch.device(self.target):
            inputs = list(case.built.module.get_inputs())
        return tree_map(lambda one: one.to(self.target) if isinstance(one, torch.Tensor) else one, inputs)

    def _eager(self, model, case: Case, clock: Clock) -> tuple[float, list[torch.Tensor]]:
        reference.restore(model, case.state)
        given = tree_map(lambda one: one.clone() if isinstance(one, torch.Tensor) else one, case.inputs) \
            if self.changes_inputs else case.inputs
        with torch.no_grad():
            seconds, value = clock(lambda: model(*given))
        return seconds, results(value)

    def _program(self, session: Session, case: Case) -> tuple[float, float, list[torch.Tensor]]:
        seen, written, _ = session.call(case.inputs, self.outputs, "time")
        return session.seconds(), seen, written

    def _report(self, times: dict[str, list[float]]) -> None:
        told = {f"{name}_s": statistics.median(seconds) for name, seconds in times.items()}
        told["eager_ratio"] = statistics.median(theirs / ours for theirs, ours in zip(times["eager"], times["program"]))
        told.update(turns=len(times["program"]), variant=self.variants[-1].name,
                    tf32_convolutions=torch.backends.cudnn.allow_tf32,
                    tf32_products=torch.backends.cuda.matmul.allow_tf32)
        self.record["timing"] = told
        if told["seen_s"] > CLOCK_RATIO * told["program_s"] + CLOCK_S:
            self.record["flags"].append("clock")
