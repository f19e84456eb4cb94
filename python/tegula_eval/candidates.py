"""Judges `ModelNew` files of any kind: PyTorch, Triton, CUDA. Runs in a child process, as evaluate.py does.

The candidate runs in a process of its own (guest.py), which ends before anything that is expected is computed. Every
call has new inputs, from seeds that are drawn for this candidate alone and written down afterwards, and every
call's outputs are judged, those of timed calls too, by the rule for programs. The module is timed in the same way, in
such a process before the candidate's and in another one after it, of which the faster counts: what a candidate leaves
running cannot make the module look slow.

Outcomes beyond those of evaluate.py:

  tampered   it changed its inputs (reason: inputs), returned what is no plain tensor (type), answered what was not
             asked (protocol), or was faster than its memory can be read and written (time)

`refused` (load: the file does not run, or makes no module) and `call` (call: forward raises) have other reasons here.
"""
from __future__ import annotations

import functools
import os
import statistics
from typing import Callable

import torch
from torch.utils._pytree import tree_flatten, tree_map

from . import reference
from .evaluate import WIDE, caught, derived_seed, find_cached_variants, judge_case
from .reference import Case, evaluate_reference, make_case
from .roofline import least_seconds
from .session import Ended, Session
from .starter import Starter
from .tasks import TaskError
from .variants import Variant, state_of
from .verdict import kernelbench_rule

KEPT_ELEMENTS = 1 << 22  # of each output of a timed call; of a larger one a part that is drawn after the call
WARM_UP = 3
LARGE_BYTES = 256 << 20  # beyond any cache
EXCESSIVE = 10


@functools.cache
def starter() -> Starter:
    """This process's own, which its children may use. Once called, candidates start at once."""
    return Starter()


def evaluate(request: dict, stage: Callable[[str], None] = lambda name: None) -> dict:
    """As evaluate.evaluate, with a file's text as `program`."""
    torch.set_num_threads(request.get("threads", 1))
    record: dict = {"outcome": "right", "reason": "", "message": "", "flags": [], "cases": [], "timing": None}
    request["own"] = request.get("own", False) or request.get("target") == "cuda"
    with caught(record):
        try:
            _Judge(request, stage, record).run()
        except Ended as ended:
            record.update(outcome=ended.outcome, reason=ended.reason, message=str(ended))
    return record


evaluate.descriptors = lambda: [starter().descriptor]  # the judge's process asks the starter


class _Judge:
    def __init__(self, request: dict, stage, record: dict):
        self.request, self.stage, self.record = request, stage, record
        self.target = request.get("target", "cpu")
        # The run's secret lies on the disk, where a candidate can read it.
        self.secret = os.urandom(16).hex()

    def run(self) -> None:
        self.stage("variants")
        # At one size: such files are often written for the task's own.
        self.variant = find_cached_variants(self.request)[-1]
        self.stage("prepare")
        self._prepare()
        turns = (self.request.get("time") or {}).get("turns", 0)
        before = self._time_module(turns) if turns else []
        self.stage("candidate")
        taken, times, agrees = self._run_candidate(turns)
        self.stage("compare")
        self._judge(taken, agrees)
        if not turns or self.record["outcome"] != "right":
            return
        after = self._time_module(turns)
        self._report(times, before, after, turns)

    def _prepare(self) -> None:
        """Shapes and types of the results, and whether the module itself changes its inputs, from a run on inputs
        that no call is given."""
        seed = derived_seed(self.secret, "shapes")
        case = make_case(self.variant.source, seed, "task", self.target)
        inputs = tree_map(lambda one: one.clone() if isinstance(one, torch.Tensor) else one, case.inputs)
        try:
            with torch.no_grad():
                found = reference.results(case.built.model(*inputs))
        except (MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            raise TaskError(f"forward does not run: {type(error).__name__}: {error}") from error
        self.outputs = [torch.empty(one.shape, dtype=one.dtype, device="meta") for one in found]
        self.changes_inputs = any(isinstance(one, torch.Tensor) and not torch.equal(one, other)
                                  for one, other in zip(tree_flatten(case.inputs)[0], tree_flatten(inputs)[0]))
        tensors = [one for one in tree_flatten(case.inputs)[0] if isinstance(one, torch.Tensor)]
        # Ragged inputs may differ in size from draw to draw.
        self.arena = 2 * sum(one.nbytes + 512 for one in [*tensors, *self.outputs])
        self.moved = sum(one.nbytes for one in [*tensors, *state_of(case.built.model).values(), *self.outputs])

    def _module(self, agrees: bool) -> Case:
        """The module with the candidate's parameters: where it takes none, those that both draw from one seed."""
        return make_case(self.variant.source, self._parameters(), "normal" if agrees else "task", self.target)

    def _parameters(self) -> int:
        return derived_seed(self.secret, "parameters")

    def _inputs(self, base: Case, place, distribution: str) -> list:
        torch.manual_seed(derived_seed(self.secret, "inputs", place))
        try:
            inputs = list(base.built.module.get_inputs())
        except MemoryError:
            raise
        except Exception as error:
            raise TaskError(f"get_inputs does not run: {type(error).__name__}: {error}") from error
        if distribution != "task":
            inputs = tree_map(lambda one: reference.widen(one, distribution), inputs)
        return tree_map(lambda one: one.to(self.target) if isinstance(one, torch.Tensor) else one, inputs)

    def _plan(self, turns: int) -> list[tuple]:
        """Judged and timed calls among one another: (place, distribution)."""
        judged = [(number, ("task", *WIDE)[number % (1 + len(WIDE))]) for number in range(max(3, self.request.get("seeds", 2)))]
        timed = [(f"turn {turn}", "task") for turn in range(-WARM_UP if turns else 0, turns)]
        return [*judged, *timed, ("last", "normal")]

    def _run_candidate(self, turns: int):
        taken, times = [], []
        session = Session(starter(), self.target, self.arena)
        try:
            self.record["landlock"] = session.landlock
            base = self._module(agrees=True)
            agrees = session.load(self.request["program"], "ModelNew", base.built.init, self._parameters(),
                                  base.state, self.request.get("threads", 1))
            for place, distribution in self._plan(turns):
                self.stage(f"call {place}")
                inputs = self._inputs(base, place, distribution)
                seconds, written, same = session.call(inputs, self.outputs)
                if not same and not self.changes_inputs:
                    raise Ended("tampered", "inputs", f"call {place}: it changed its inputs")
                taken.append((place, distribution, *_kept(written, is_timed=isinstance(place, str) and place != "last")))
                if isinstance(place, str) and place.startswith("turn") and int(place[5:]) >= 0:
                    times.append(seconds)
        finally:
            session.close()
        return taken, times, agrees

    def _judge(self, taken: list, agrees: bool) -> None:
        timed, judged, audited = self._module(agrees), 0, False
        self.record["seeds"] = self.secret
        for place, distribution, written, chosen in taken:
            # A module may keep tensors beside its parameters and buffers: those of a run in float64 stay in it.
            base = timed if chosen is not None else self._module(agrees)
            case = Case(base.built, self._inputs(base, place, distribution), base.state)
            if chosen is not None:
                self._judge_timed(case, place, written, chosen)
                continue
            self.stage(f"reference {place}")
            evaluate_reference(case, self._parameters(), audit=not audited, known_same=False)
            audited = True
            if distribution != "task" and any(one.is_floating_point() and not bool(torch.isfinite(one).all())
                                              for one in case.exact):
                continue
            told = {"variant": self.variant.name, "changed": self.variant.changed, "call": str(place),
                    "distribution": distribution, "flags": case.flags}
            self.record["cases"].append(told)
            self.record["flags"] += [flag for flag in case.flags if flag not in self.record["flags"]]
            # Of any call: the module whose dropout the first one switched off draws nothing from then on.
            judged += judge_case(written, case, self.variant.cost.depth, told, "dropout-off" in self.record["flags"])
            if told["outcome"] == "wrong":
                raise Ended("wrong", told["reason"], f"call {place}, {distribution}: {told['message']}")
        if not judged:
            raise Ended("unjudged", self.record["cases"][-1].get("reason") or "random",
                        "the module's own result says nothing about a candidate's")

    def _judge_timed(self, case: Case, place, written: list[torch.Tensor], chosen: list) -> None:
        if {"random", "dropout-off"} & set(self.record["flags"]):
            return
        expected = reference.run_module(case, self._parameters())
        for number, (ours, theirs, places) in enumerate(zip(written, expected, chosen)):
            theirs = theirs.flatten().cpu()
            theirs = theirs if places is None else theirs[places]
            nan = ours.isnan() if ours.is_floating_point() else torch.zeros(ours.shape, dtype=torch.bool)
            if not kernelbench_rule(ours.nan_to_num(), theirs.nan_to_num()) or \
                    (theirs.is_floating_point() and bool((nan & ~theirs.isnan()).any())):
                if "unstable" in self.record["flags"]:
                    continue
                raise Ended("wrong", "value", f"{place}: result {number} of a timed call is not the module's")

    def _time_module(self, turns: int) -> list[float]:
        """Seconds of each call of the module, and of nothing, in a process like the candidate's."""
        self.stage("time the module")
        session = Session(starter(), self.target, self.arena)
        try:
            base = self._module(agrees=False)
            session.load(self.variant.source, "Model", base.built.init, self._parameters(), base.state,
                         self.request.get("threads", 1))
            times = []
            for turn in range(-WARM_UP, turns):
                seconds, _, _ = session.call(self._inputs(base, f"module {turn}", "task"), self.outputs)
                times.append(seconds)
            self.nothing_s = min(session.nothing() for _ in range(10))
        finally:
            session.close()
        return times[WARM_UP:]

    def _report(self, times: list[float], before: list[float], after: list[float], turns: int) -> None:
        module = min(statistics.median(before), statistics.median(after))
        program = statistics.median(times)
        ours, theirs = (max(one - self.nothing_s, one / 10) for one in (program, module))
        least = least_seconds(self.target, self.moved, 0)
        self.record["timing"] = {
            "program_s": ours, "eager_s": theirs, "eager_ratio": theirs / ours, "call_s": self.nothing_s,
            "roofline_s": least, "turns": turns, "variant": self.variant.name,
            "tf32_convolutions": torch.backends.cudnn.allow_tf32,
            "tf32_products": torch.backends.cuda.matmul.allow_tf32}
        if self.moved >= LARGE_BYTES and ours < least / 2:
            raise Ended("tampered", "time", f"{ours * 1e3:.3f} ms for what takes {least * 1e3:.3f} ms to move")
        if theirs / ours > EXCESSIVE:
            self.record["flags"].append("excessive")


def _kept(written: list[torch.Tensor], is_timed: bool) -> tuple[list[torch.Tensor], list | None]:
    if not is_timed:
        return written, None
    chosen = [None if one.numel() <= KEPT_ELEMENTS else torch.randint(one.numel(), (KEPT_ELEMENTS,))
              for one in written]
    flat = [one.flatten() for one in written]
    return [one.cpu() if places is None else one[places.to(one.device)].cpu()
            for one, places in zip(flat, chosen)], chosen
