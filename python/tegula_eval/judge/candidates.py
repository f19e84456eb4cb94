"""Judges `ModelNew` files of any kind: PyTorch, Triton, CUDA. Runs in a child process, as evaluate.py does.

The candidate runs in a process of its own (confine/guest.py, confine/starter.py). Every call has new inputs, from seeds that are drawn for
this candidate alone and written down afterwards; the five distributions come in an order that nobody knows before. All
calls are timed and all are judged by the rule for programs: one of each distribution against the module in float64, the
others against the module's own result, whose distance from float64 is known from those. So there is no call that a
candidate could treat differently.

The module runs in such a process too, on the same inputs, right before or after the candidate, whichever chance says:
what slows the one slows the other. Who runs second finds the inputs in the cache: as often as not that is the candidate,
and a speedup is the geometric mean of two medians of the calls' own ratios, of those calls on which it ran first and of
the others. Calls on which an answer without the
work passes (zeros, one number, an input, the result of another call) are left out of it; where they are more than half,
no speedup is given, and the record says why.

Outcomes beyond those of evaluate.py:

  tampered   it changed its inputs (reason: inputs), returned what is no plain tensor (type), answered what was not
             asked (protocol), said that results lie where nothing is (results), cannot be stopped (stop), computed on the
             device when it was not called (device), or was faster than its memory can be read and written (time)

`refused` (load: the file does not run, or makes no module) and `call` (call: forward raises; processes: more than it may
have) have other reasons here.
"""
from __future__ import annotations

import ctypes
import functools
import os
import random
import statistics
from dataclasses import dataclass, field
from typing import Callable, Iterator

import torch
from torch.utils._pytree import tree_flatten, tree_map

from ..confine import child
from ..confine.session import Ended, Session
from ..confine.starter import Starter
from ..rule import reference, trivial_answers
from ..rule.reference import Case, evaluate_reference
from ..rule.tasks import TaskError
from ..rule.variants import state_of
from ..rule.verdict import ErrorMeasure, is_finite
from ..timing.roofline import least_seconds
from .evaluate import WIDE, caught, derived_seed, find_cached_variants, judge_case, judge_theirs, may_pass_theirs

KEPT_ELEMENTS = 1 << 22  # of each output of a call that is not judged exactly; of a larger one a part that chance chooses
WARM_UP = 3
MORE_CALLS = 4  # fewer than so many come on top, by chance
# On CUDA a stopped process takes longer to wake at some calls than at others: calls shorter than this are made MORE_TURNS
# times as often.
SHORT_S = 5e-3
MORE_TURNS = 3
LARGE_BYTES = 256 << 20  # beyond any cache
EXCESSIVE = 10
DISTRIBUTIONS = ("task", *WIDE)


@functools.cache
def starter() -> Starter:
    """This process's own, which its children may use. Once called, candidates start at once."""
    return Starter()


def evaluate(request: dict, stage: Callable[[str], None] = lambda name: None) -> dict:
    """As evaluate.evaluate, with a file's text as `program`."""
    torch.set_num_threads(request.get("threads", 1))
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE: no process of this user's reads seeds and results here
    record: dict = {"outcome": "right", "reason": "", "message": "", "flags": [], "cases": [], "timing": None}
    request["own"] = request.get("own", False) or request.get("target") == "cuda"
    with caught(record):
        try:
            _Judge(request, stage, record).run()
        except Ended as ended:
            record.update(outcome=ended.outcome, reason=ended.reason, message=str(ended))
    return record


evaluate.descriptors = lambda: [starter().descriptor]  # the judge's process asks the starter


@dataclass
class Call:
    """One of a candidate, and what came of it."""
    place: int
    distribution: str
    exactly: bool                # judged against the module in float64
    timed: bool
    module_first: bool           # the module runs before the candidate
    written: list[torch.Tensor] = field(default_factory=list)
    module: list[torch.Tensor] = field(default_factory=list)  # what the module's process gave
    chosen: list = field(default_factory=list)  # of each result the elements that are kept (_Judge.kept), None for all
    seconds: float = 0.0
    module_seconds: float = 0.0
    cheaply: str = ""            # what passes without the work


class _Judge:
    def __init__(self, request: dict, stage, record: dict):
        self.request, self.stage, self.record = request, stage, record
        self.target = request.get("target", "cpu")
        # The run's secret lies on the disk, where a candidate could read it but for its confinement.
        self.secret = os.urandom(16).hex()
        self.chance = random.Random(self.secret)
        self.turns = (request.get("time") or {}).get("turns", 0)
        without = (request.get("rule") or {}).get("without", ())
        self.distributions = [one for one in DISTRIBUTIONS if one not in without]
        self.kept: list = []  # of each result the elements of a call that are kept, None for all
        self.doubts: dict[str, list[ErrorMeasure]] = {}  # of a distribution: by how much the module is off

    def run(self) -> None:
        self.stage("variants")
        # At one size: such files are often written for the task's own.
        self.variant = find_cached_variants(self.request)[-1]
        self.stage("prepare")
        self._prepare()
        calls = self._plan()
        self._run(calls)
        self.stage("compare")
        self.record["seeds"] = self.secret
        self._judge(calls)
        if self.turns:
            self._report(calls)

    def _prepare(self) -> None:
        """Shapes and types of the results, and whether the module itself changes its inputs, from a run on inputs
        that no call is given."""
        torch.manual_seed(derived_seed(self.secret, "shapes"))
        self.base, self.drawn = reference.make_moved(self.variant.source, self._parameters(), self.target)
        case = Case(self.base.built, self._inputs("shapes", "task"), self.base.state)
        inputs = tree_map(lambda one: one.clone() if isinstance(one, torch.Tensor) else one, case.inputs)
        try:
            with torch.no_grad():
                found = reference.results(case.built.model(*inputs))
        except (MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            raise TaskError(f"forward does not run: {type(error).__name__}: {error}") from error
        self.outputs = [torch.empty(one.shape, dtype=one.dtype, device="meta") for one in found]
        self.kept = [None if one.numel() <= KEPT_ELEMENTS else torch.randint(one.numel(), (KEPT_ELEMENTS,))
                     for one in self.outputs]
        self.changes_inputs = any(isinstance(one, torch.Tensor) and not reference.is_equal(one, other)
                                  for one, other in zip(tree_flatten(case.inputs)[0], tree_flatten(inputs)[0]))
        tensors = [one for one in tree_flatten(case.inputs)[0] if isinstance(one, torch.Tensor)]
        # Ragged inputs may differ in size from draw to draw.
        self.arena = 2 * sum(one.nbytes + 512 for one in [*tensors, *self.outputs])
        self.moved = sum(one.nbytes for one in [*tensors, *state_of(case.built.model).values(), *self.outputs])

    def _parameters(self) -> int:
        return derived_seed(self.secret, "parameters")

    def _inputs(self, place, distribution: str) -> list:
        torch.manual_seed(derived_seed(self.secret, "inputs", place))
        try:
            inputs = list(self.base.built.module.get_inputs())
        except MemoryError:
            raise
        except Exception as error:
            raise TaskError(f"get_inputs does not run: {type(error).__name__}: {error}") from error
        if distribution != "task":
            inputs = tree_map(lambda one: reference.widen(one, distribution), inputs)
        return tree_map(lambda one: one.to(self.target) if isinstance(one, torch.Tensor) else one, inputs)

    def _plan(self) -> list[Call]:
        """All distributions, in an order and number that chance chooses; which calls are judged exactly too."""
        count = max(len(self.distributions), self.request.get("seeds", 2))
        if self.turns:
            count = max(count, self.turns + WARM_UP)
        count += self.chance.randrange(MORE_CALLS if self.turns else 2)
        warm = WARM_UP if self.turns else 0
        calls = self._drawn_calls(0, count, warm)
        exact = calls
        if self.turns:
            exact = [self.chance.choice([call for call in calls if call.distribution == one])
                     for one in self.distributions]
        for call in exact:
            call.exactly = True
        return calls

    def _drawn_calls(self, start: int, count: int, warm: int = 0) -> list[Call]:
        """Each distribution as often as the others, and either side first as often as the other; among those that are
        timed too: all but the first `warm`."""
        order = self.chance.sample(self.distributions, len(self.distributions))
        kinds = [order[number % len(order)] for number in range(count)]
        timed, first = kinds[:count - warm], kinds[count - warm:]
        self.chance.shuffle(timed)
        module_first = [bool(number % 2) for number in range(count - warm)]
        self.chance.shuffle(module_first)
        module_first = [self.chance.random() < 0.5 for _ in first] + module_first
        return [Call(start + number, kind, False, bool(self.turns) and number >= warm, module_first[number])
                for number, kind in enumerate(first + timed)]

    def _and_more(self, calls: list[Call]) -> Iterator[Call]:
        """The calls, and those that join them because they are short."""
        yield from list(calls)
        if self.turns and self.target == "cuda" and \
                statistics.median(min(one.seconds, one.module_seconds) for one in calls if one.timed) < SHORT_S:
            more = self._drawn_calls(len(calls), (MORE_TURNS - 1) * self.turns)
            calls += more
            yield from more

    def _session(self, trusted: bool) -> Session:
        return Session(starter(), self.target, self.arena, self.request.get("threads", 1), child.allowed_bytes, trusted)

    def _load(self, session: Session, text: str, entry: str) -> None:
        session.load(text, entry, self.base.built.init, self._parameters(), self.base.state, self.drawn)

    def _run(self, calls: list[Call]) -> None:
        module = session = None
        try:
            if self.turns:
                self.stage("the module's process")
                module = self._session(trusted=True)
                self._load(module, self.variant.source, "Model")
            self.stage("candidate")
            session = self._session(trusted=False)
            self.record["isolation"] = session.isolation
            self.record["landlock"] = session.isolation["landlock"]
            self._load(session, self.request["program"], "ModelNew")
            nothing = []
            for call in self._and_more(calls):
                inputs = self._inputs(call.place, call.distribution)
                sides = [session] if module is None else [module, session] if call.module_first else [session, module]
                for one in sides:
                    self.stage(f"call {call.place}" + (" of the module" if one is module else ""))
                    seconds, written, same = one.call(inputs, self.outputs)
                    if one is module:
                        call.module, call.module_seconds = written, seconds
                    elif not same and not self.changes_inputs:
                        raise Ended("tampered", "inputs", f"call {call.place}: it changed its inputs")
                    else:
                        call.written, call.seconds = written, seconds
                self._keep(call)
                if module is not None and call.place % 3 == 0:
                    nothing.append(module.nothing())
            self.nothing_s = min(nothing) if nothing else 0.0
        finally:
            for one in (session, module):
                if one is not None:
                    one.close()

    def _keep(self, call: Call) -> None:
        call.chosen = [None] * len(self.outputs) if call.exactly else self.kept
        call.written, call.module = (_parts(ones, call.chosen) for ones in (call.written, call.module))

    def _judge(self, calls: list[Call]) -> None:
        judged, audited, is_wrong = 0, False, False
        rule, record = self.request.get("rule"), self.record
        if rule:
            record["task_cases"] = sum(call.distribution == "task" for call in calls)
        for call in sorted(calls, key=lambda one: not one.exactly):
            if is_wrong and call.distribution != "task":
                continue
            if call.exactly:
                self.stage(f"reference {call.place}")
                case = self._exact(call, audit=not audited)
                audited = True
                if case is None:
                    continue
            elif {"random", "dropout-off"} & set(record["flags"]) or call.distribution not in self.doubts:
                if rule:
                    record["task_cases"] -= call.distribution == "task"  # the module's own result is no measure
                continue
            else:
                case = self._near(call)
            told = {"variant": self.variant.name, "changed": self.variant.changed, "call": str(call.place),
                    "distribution": call.distribution, "flags": case.flags}
            judged += self._judge_call(call, case, told)
            counts = bool(rule) and (call.exactly or call.distribution == "task")
            if counts:
                judge_theirs(call.written, case, told, rule)
            if call.exactly or counts or told["outcome"] == "wrong":
                record["cases"].insert(len(record["cases"]) - is_wrong, told)  # the case that decides stays the last
                record["flags"] += [flag for flag in case.flags if flag not in record["flags"]]
            if told["outcome"] == "wrong" and not is_wrong:
                is_wrong = True
                record.update(outcome="wrong", reason=told["reason"],
                              message=f"call {call.place}, {call.distribution}: {told['message']}")
            if is_wrong and not (rule and may_pass_theirs(record)):
                break
        if is_wrong:
            raise Ended("wrong", record["reason"], record["message"])
        if not judged:
            reason = self.record["cases"][-1].get("reason") if self.record["cases"] else ""
            raise Ended("unjudged", reason or "random", "the module's own result says nothing about a candidate's")

    def _exact(self, call: Call, audit: bool = False) -> Case | None:
        """The call with what the module gives in float64; None where that is not finite."""
        case = Case(self.base.built, self._inputs(call.place, call.distribution), self.base.state)
        evaluate_reference(case, self._parameters(), audit=audit, known_same=False)
        if call.distribution != "task" and not all(map(is_finite, (*case.exact, *case.expected))):
            return None
        if call.exactly:
            self.doubts[call.distribution] = [one or ErrorMeasure(0.0, 0.0, -1) for one in case.errors]
        case.expected, case.exact = (_parts(ones, call.chosen) for ones in (case.expected, case.exact))
        return case

    def _near(self, call: Call) -> Case:
        """The call with the module's own result in place of that in float64."""
        return Case(self.base.built, [], self.base.state, expected=call.module,
                    exact=[reference.to_float64(one) for one in call.module],
                    errors=list(self.doubts[call.distribution]))

    def _judge_call(self, call: Call, case: Case, told: dict) -> bool:
        """Fills `told`. What does not pass beside the module's own result is looked at once more, exactly."""
        draws = "dropout-off" in self.record["flags"]
        if call.exactly:
            # Of any call: the module whose dropout the first one switched off draws nothing from then on.
            return judge_case(call.written, case, self.variant.cost.depth, told, draws or "dropout-off" in case.flags)
        judged = judge_case(call.written, case, self.variant.cost.depth, told, draws, sensitive=None,
                            doubts=self.doubts[call.distribution])
        if told["outcome"] != "wrong":
            return judged
        exact = self._exact(call)
        if exact is None:
            told.update(outcome="unjudged", reason="not-finite")
            return False
        return judge_case(call.written, exact, self.variant.cost.depth, told, draws)

    def _report(self, calls: list[Call]) -> None:
        timed = [one for one in calls if one.timed]
        kept = {one.place: _parts(one.module, self.kept) if one.exactly else one.module for one in calls}
        for call in timed:
            others = [kept[one.place] for one in calls if one is not call]
            inputs = [one for one in tree_flatten(self._inputs(call.place, call.distribution))[0]
                      if isinstance(one, torch.Tensor)]
            call.cheaply = trivial_answers.passes(kept[call.place], [_parts([one] * len(call.module), self.kept, strictly=False)
                                                           for one in inputs], others, self.variant.cost.depth)
        counted = [one for one in timed if not one.cheaply]
        least = least_seconds(self.target, self.moved, 0)

        def beyond_nothing(seconds: float) -> float:
            return max(seconds - self.nothing_s, seconds / 10)

        ours, theirs = ([beyond_nothing(one) for one in ones] for ones in
                        ([call.seconds for call in timed], [call.module_seconds for call in timed]))
        self.record["timing"] = timing = {
            "program_s": statistics.median(ours), "eager_s": statistics.median(theirs), "call_s": self.nothing_s,
            "roofline_s": least, "turns": len(timed), "counted": len(counted), "variant": self.variant.name,
            "tf32_convolutions": torch.backends.cudnn.allow_tf32,
            "tf32_products": torch.backends.cuda.matmul.allow_tf32}
        if self.moved >= LARGE_BYTES and timing["program_s"] < least / 2:
            raise Ended("tampered", "time", f"{timing['program_s'] * 1e3:.3f} ms for what takes {least * 1e3:.3f} ms to move")
        if 2 * len(counted) < len(timed):
            cheaply = statistics.mode(one.cheaply for one in timed if one.cheaply)
            timing["no_speedup"] = f"{cheaply} passes for {len(timed) - len(counted)} of {len(timed)} calls without the work"
            return
        ratios = [[beyond_nothing(one.module_seconds) / beyond_nothing(one.seconds) for one in counted
                   if one.module_first == module_first] for module_first in (False, True)]
        timing["eager_ratio"] = statistics.geometric_mean(statistics.median(ones) for ones in ratios if ones)
        if timing["eager_ratio"] > EXCESSIVE:
            self.record["flags"].append("excessive")


def _parts(ones: list[torch.Tensor], chosen: list, strictly: bool = True) -> list[torch.Tensor]:
    """The elements that are kept. Not `strictly`: a tensor of another size stays as it is."""
    return [one if places is None or (not strictly and one.numel() <= int(places.max()))
            else one.flatten()[places.to(one.device)] for one, places in zip(ones, chosen)]
