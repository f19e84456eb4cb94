"""One task at its own sizes on a device: whether a program is right, and how fast.

All of it happens on the device, one thing after another and given back at once, so that a task of 13 GB does: the
program's result, eager mode's without TF32 (and, where it has convolutions, with), then the module in float64 on
the same inputs, which are made again from their seed where they are needed again. Where float64 does not fit or
does not run, eager mode in float32 stands for it, and by how much that is off itself is measured on inputs and
parameters that are off by one rounding; the record says so. Then everything is timed in turns on new inputs.

At "equal" precision the program is compiled twice for a module whose convolutions take TF32, which is measured: as
it is, which is timed against the module without TF32, and with TF32 where the module takes it, which is held against
the module as PyTorch runs it, and timed against that where it is right. Where the module has matrix products too,
which PyTorch does not round, that is convolutions alone.

Runs where `device` is "cpu" the same way.
"""
from __future__ import annotations

import contextlib
import gc
import time
from typing import Callable

import torch

from ..program import provenance, runner
from ..program.binding import Binding, bind
from ..rule.reference import (ROUNDOFF, Case, flag_accuracy, in_float64, is_same, nearby, restore, results,
                              switch_off_dropout, to_float64)
from ..rule.tasks import TaskError
from ..rule.variants import Measure, build_on, state_of
from ..rule.verdict import ErrorMeasure, Sensitivity, measure_error
from ..timing.at_own_sizes import time_turns, without_tf32
from ..timing.clock import Clock
from .evaluate import caught, derived_seed, judge_case

# TF32 keeps 13 bits less than float32 does: results differ by about 3e-4 then (norm), by less than 1e-6 where an operator
# only adds up in another order. What follows a convolution (a minimum, a mean) may hide that.
ROUNDED = 1e-5
OUT_OF_MEMORY = (MemoryError, torch.OutOfMemoryError)
# Operators that cuDNN may run in TF32, by a part of their names; and those whose products cuBLAS makes, in f32.
CUDNN_KINDS = ("convolution", "cudnn_rnn")
PRODUCTS = {"mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "vdot", "linear", "_addmm_activation",
            "_trilinear", "_cdist_forward"}
PRODUCT_PARTS = ("attention", "transformer")


class Seen(Measure):
    """What a forward pass costs, which kinds of cuDNN's operators it has, and whether it has matrix products beside
    them, and draws random numbers. With `asks_rounding`, for which kinds PyTorch takes TF32: such operators are run once
    more without it, until one differs."""

    def __init__(self, asks_rounding: bool = False):
        super().__init__()
        self.asks_rounding = asks_rounding
        self.draws = self.multiplies = False
        self.kinds: set[str] = set()
        self.rounded: set[str] = set()

    @property
    def convolves(self) -> bool:
        return bool(self.kinds)

    @property
    def precision(self) -> str:
        """That of a program's products where the module rounds. Nothing tells the products of a recurrent layer from
        others: where those alone are rounded, and where nothing else multiplies, it is all of them."""
        if torch.backends.cuda.matmul.allow_tf32 or not self.multiplies:
            return "tf32"
        return "conv_tf32" if "convolution" in (self.rounded or self.kinds) else "tf32"

    def __torch_dispatch__(self, function, types_, args=(), kwargs=None):
        name = str(function)
        kind = next((one for one in CUDNN_KINDS if one in name), None)
        if kind:
            self.kinds.add(kind)
        base = function.overloadpacket.__name__
        self.multiplies |= base in PRODUCTS or any(part in base for part in PRODUCT_PARTS)
        self.draws |= any(part in name for part in ("rand", "bernoulli", "dropout", "normal_", "multinomial"))
        result = super().__torch_dispatch__(function, types_, args, kwargs)
        if kind and self.asks_rounding and kind not in self.rounded and torch.backends.cudnn.allow_tf32:
            with without_tf32():
                plain = function(*args, **(kwargs or {}))
            first, plain = (one if isinstance(one, torch.Tensor) else one[0] for one in (result, plain))
            if float((first - plain).norm()) > ROUNDED * float(plain.norm()):
                self.rounded.add(kind)
        return result


def make_case(source: str, seed: int, device: str) -> Case:
    """The task as it draws its inputs and parameters, without dropout. Raises TaskError."""
    torch.manual_seed(seed)
    built = build_on(source, device)
    case = Case(built, built.inputs, state_of(built.model), seed=seed)
    if any(isinstance(one, torch.nn.modules.dropout._DropoutNd) and one.p > 0 for one in built.model.modules()):
        case.instead = switch_off_dropout(case)
        case.flags.append("dropout-off")
    return case


def kernel_key(binding: Binding) -> str:
    return repr((sorted(binding.settings.items()), sorted(binding.optionals), binding.ellipsis_rank))


def compile_for(program: runner.Program, binding: Binding, target: str, options: dict,
                precision: str | None = None) -> runner.Kernel:
    """`precision`: of products; without it the one that the options say, f32 where they say "equal"."""
    asked = precision or options.get("precision")
    return program.compile(binding.settings, binding.optionals, binding.ellipsis_rank, target, options["threads"],
                           stages=provenance.STAGES, precision="f32" if asked == "equal" else asked)


def free() -> None:
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def run_module(case: Case, seed: int) -> list[torch.Tensor]:
    """What forward gives, without copies of anything: what it does to its inputs is done to the case's."""
    restore(case.built.model, case.state)
    torch.manual_seed(seed)
    with torch.no_grad():
        return [one.detach() for one in results(case.built.model(*case.inputs))]


class OwnSize:
    """`job`: task and program as text, secret, key; `options`: device, threads, turns, compiled, tf32_off."""

    def __init__(self, job: dict, options: dict, ready: dict | None, stage: Callable[[str], None]):
        self.job, self.options, self.ready, self.stage = job, options, ready or {}, stage
        self.device = options["device"]
        self.seed = derived_seed(job["secret"], "own", 0)
        self.seconds: dict[str, float] = {}
        self.record: dict = {"outcome": "right", "reason": "", "message": "", "flags": [], "cases": [],
                             "timing": None, "kernels": []}

    def judge_and_time(self) -> dict:
        try:
            with caught(self.record):
                self._judge_and_time()
        except OUT_OF_MEMORY as error:
            self.record.update(outcome="memory", reason=self.at, message=str(error)[:300])
        self._end_stage()
        return {**self.record, "stages": {name: round(value, 3) for name, value in self.seconds.items()}}

    def _begin(self, name: str) -> None:
        self._end_stage()
        self.at, self.began = name, time.monotonic()
        self.stage(name)

    def _end_stage(self) -> None:
        if hasattr(self, "at"):
            self.seconds[self.at] = self.seconds.get(self.at, 0.0) + time.monotonic() - self.began
            self.began = time.monotonic()

    def _judge_and_time(self) -> None:
        self._begin("draw")
        program = self._program()
        case = self._draw()
        told = self._told(case)
        self.record.update(flags=case.flags, cases=[told])
        kernel, ours, takes = self._run_program(program, case, self.ready)
        seen, plain = self._run_eager(case)
        if "random" not in case.flags and seen.draws:
            self._flag_random(case)
        # A program that takes TF32 is held against a module that does.
        takes_tf32 = "tf32" in self.job["program"] or self.options.get("precision") in ("tf32", "conv_tf32")
        if plain is not case.expected and takes_tf32:
            case.expected = plain
        kept = {"ours": ours, "expected": case.expected, "plain": [] if plain is case.expected else plain}
        del ours, plain
        doubts = self._find_exact(case, kept, told)
        self._move(kept, self.device)
        ours, case.expected, plain = kept["ours"], kept["expected"], kept["plain"] or kept["expected"]
        if doubts:
            case.exact = case.expected
        self._begin("compare")
        flag_accuracy(case)
        if plain is not case.expected:
            told["pytorch_tf32"] = max(measure_error(one, exact).norm for one, exact in zip(plain, case.exact))
        draws = "dropout-off" in case.flags and not any(name in takes for name in case.instead)
        if not self._judge(ours, case, seen, told, draws, doubts):
            return
        candidates = {"program": (kernel, _gaps(ours, plain))}
        rounds = plain is not case.expected and (
            seen.rounded or any(gap > ROUNDED for gap in _gaps(plain, case.expected)))
        if self.options.get("precision") == "equal" and rounds:
            told = {**self._told(case), "variant": "tf32", "precision": seen.precision}
            self.record["cases"].append(told)
            case.expected = plain
            flag_accuracy(case)
            case.inputs = self._draw().inputs
            ours = kept["ours"] = None
            kernel, ours, _ = self._run_program(program, case, {}, seen.precision)
            case.inputs = []
            if self._is_right(ours, case, seen, told, draws, doubts):
                candidates["program_tf32"] = kernel, _gaps(ours, plain)
        del ours, plain, kept
        case.expected, case.exact, case.inputs = [], [], []
        free()
        self._begin("time")
        self.record["timing"] = time_turns(case, program, candidates, seen, {
            **self.options, **self.job, "seed": self.seed, "first_s": self.first_s, "writes": self.writes}, self.stage)
        self.record["clocks"] = provenance.clocks(torch.device(self.device).type)

    def _told(self, case: Case) -> dict:
        return {"variant": "own", "changed": "", "seed": self.seed, "distribution": "task", "flags": case.flags}

    def _judge(self, ours: list[torch.Tensor], case: Case, seen: Seen, told: dict, draws: bool,
               doubts: list[ErrorMeasure] | None) -> bool:
        """Whether the results are right; the record says what they are where they are not."""
        if self._is_right(ours, case, seen, told, draws, doubts):
            return True
        if told["outcome"] == "wrong":
            self.record.update(outcome="wrong", reason=told["reason"], message=told["message"])
        else:
            self.record.update(outcome="unjudged", reason=told["reason"] or "random",
                               message="the module's own result says nothing about a program's")
        return False

    def _is_right(self, ours: list[torch.Tensor], case: Case, seen: Seen, told: dict, draws: bool,
                  doubts: list[ErrorMeasure] | None) -> bool:
        told["result_sha256"] = provenance.of_results(ours)
        judged = judge_case(ours, case, seen.depth, told, draws, self._sensitive, doubts)
        return judged and told["outcome"] != "wrong"

    def _program(self) -> runner.Program:
        if "error" in self.ready:
            raise self.ready["error"]
        if "program" in self.ready:
            return self.ready["program"]
        program = runner.Program(self.job["program"], self.job["program_name"])
        program.check()
        return program

    def _draw(self) -> Case:
        return make_case(self.job["task"], self.seed, self.device)

    def _run_program(self, program: runner.Program, case: Case, ready: dict, precision: str | None = None):
        binding = bind(program.parameters, case)
        kernel = ready.get("kernel")
        if kernel is None or ready["kernel_key"] != kernel_key(binding):
            self._begin("compile")
            kernel = compile_for(program, binding, torch.device(self.device).type, self.options, precision)
        own = {one.dtype for one in binding.tensors.values()}
        told = provenance.of_kernel(kernel, binding.settings, binding.optionals, binding.ellipsis_rank, own)
        self.record["kernels"].append(told)
        # By the program itself, not by what the run asks for.
        asked = precision or self.options.get("precision")
        if asked in (None, "equal", "f32") and told.get("lowered"):
            case.flags.append("lower-precision")
        self._begin("run")
        written = {one.name.decode() for one in kernel.arguments if runner.ROLES[one.role] == "inout"}
        tensors = {name: one.clone() if name in written else one for name, one in binding.tensors.items()}
        launch = kernel.prepare(tensors, binding.scalars)
        self.first_s = Clock(torch.device(self.device).type)(launch)[0]
        launch.wait()
        names = binding.outputs or [one.name.decode() for one in kernel.arguments if one.name.decode() in written]
        return kernel, [launch.outputs.get(name, tensors.get(name)) for name in names], {**binding.settings,
                                                                                        **binding.scalars}

    def _run_eager(self, case: Case) -> tuple[Seen, list[torch.Tensor]]:
        """Fills `case.expected`, without TF32. What the module takes, and its result as PyTorch runs it."""
        self._begin("eager")
        seen = Seen(self.options.get("precision") == "equal")
        before = [one._version if isinstance(one, torch.Tensor) else 0 for one in case.inputs]
        try:
            with seen:
                plain = run_module(case, self.seed)
        except (*OUT_OF_MEMORY, TaskError):
            raise
        except Exception as error:
            raise TaskError(f"forward does not run: {type(error).__name__}: {error}") from error
        if not plain:
            raise TaskError("forward returns no tensor")
        self.writes = before != [one._version if isinstance(one, torch.Tensor) else 0 for one in case.inputs]
        self._fresh(case)
        case.expected = plain
        if seen.convolves or torch.backends.cuda.matmul.allow_tf32:
            with without_tf32():
                case.expected = run_module(case, self.seed)
            self._fresh(case)
        return seen, plain

    def _fresh(self, case: Case) -> None:
        """Draws the inputs again where forward wrote into them."""
        if self.writes:
            case.inputs = []
            case.inputs = self._draw().inputs

    def _flag_random(self, case: Case) -> None:
        with without_tf32():
            again = run_module(case, self.seed + 1)
        self._fresh(case)
        if not is_same(case.expected, again):
            case.flags.append("random")

    def _find_exact(self, case: Case, kept: dict, told: dict) -> list[ErrorMeasure] | None:
        """Fills `case.exact`. By how much that is off itself, where it is not float64."""
        why = self.job.get("no_float64")
        # Then with the other results out of the way, or, where cuDNN has no such convolution, without cuDNN.
        tries = [] if why else [contextlib.nullcontext()]
        while tries:
            self._begin("float64")
            how = tries.pop()
            try:
                case.inputs = [to_float64(one) for one in _taken(case.inputs)]
                with in_float64(case.built.model), how:
                    case.exact = run_module(case, self.seed)
                case.inputs = []
                told["reference"] = "float64"
                return None
            except OUT_OF_MEMORY as error:
                if not why:
                    tries.append(contextlib.nullcontext())
                why = f"float64 does not fit: {str(error)[:120]}"
            except Exception as error:
                if not why:
                    tries.append(torch.backends.cudnn.flags(enabled=False))
                why = f"float64 does not run: {type(error).__name__}: {str(error)[:120]}"
            case.inputs = []
            free()
            self._begin("draw")
            case.expected = []
            self._move(kept, "cpu")
            case.inputs = self._draw().inputs
        self._begin("float32")
        near, state = nearby(self.seed), case.state
        try:
            case.state = {name: near(one) for name, one in state.items()}
            case.inputs = [near(one) for one in _taken(case.inputs)]
            with without_tf32():
                moved = run_module(case, self.seed)
        finally:
            case.state, case.inputs = state, []
        self._move(kept, self.device)
        doubts = [measure_error(one, exact) for one, exact in zip(moved, kept["expected"])]
        told.update(reference="float32", reference_error=max(one.norm for one in doubts), reference_why=why)
        return doubts

    def _move(self, kept: dict, device: str) -> None:
        """Results to another device, where they fit there."""
        for ones in kept.values():
            for place, one in enumerate(ones):
                with contextlib.suppress(*OUT_OF_MEMORY):
                    ones[place] = one.to(device)
        free()

    def _sensitive(self, case: Case) -> list[Sensitivity]:
        """As reference.sensitivities, of inputs and parameters alone: results of operators take too much memory."""
        nothing = [Sensitivity()] * len(case.exact)
        if case.exact is case.expected:
            return nothing
        self._begin("sensitivity")
        near, state = nearby(self.seed), case.state
        try:
            case.inputs = [near(to_float64(one)) for one in _taken(self._draw().inputs)]
            case.state = {name: near(to_float64(one)) for name, one in state.items()}
            with in_float64(case.built.model):
                moved = run_module(case, self.seed)
            errors = [measure_error(one, exact) for one, exact in zip(moved, case.exact)]
        except OUT_OF_MEMORY:
            return nothing
        finally:
            case.state, case.inputs = state, []
        return [Sensitivity(one.norm / ROUNDOFF, one.worst / ROUNDOFF, one.elements) for one in errors]


def _gaps(ours: list[torch.Tensor], plain: list[torch.Tensor]) -> list[float]:
    """By how much (norm) results are off eager mode's."""
    return [measure_error(one, other).norm if other.is_floating_point() else 0.0 for one, other in zip(ours, plain)]


def _taken(values: list):
    """The list's elements; each is gone from it once the next is asked for."""
    values.reverse()
    while values:
        yield values.pop()
