"""Times a program, eager mode and torch.compile in turns on a device.

Every turn draws new inputs and runs all sides on them, the next turn beginning with another side. Each call finds
an L2 cache overwritten. What the program wrote while it was timed is held against eager mode's result of the turn.
"""
from __future__ import annotations

import contextlib
import statistics
import time
from typing import Callable

import torch

from ..program import runner
from ..program.binding import Binding, bind
from ..rule.reference import Case, restore, results
from ..rule.verdict import measure_error
from .clock import Clock
from .roofline import rates

ENOUGH_S = 0.3   # of the slowest side, all turns together
LONG_S = 1.0     # a side that takes so long is timed once
LEAST_TURNS = 3


@contextlib.contextmanager
def without_tf32():
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def time_turns(case: Case, program: runner.Program, kernels: dict[str, tuple[runner.Kernel, list[float]]], seen,
               options: dict, stage: Callable[[str], None]) -> dict:
    """`kernels`: the program as it is, "program", and, where the module takes TF32 and it shall too, "program_tf32";
    with each by how much (norm) its judged result was off eager mode's. `seen`: what the module costs."""
    model, target = case.built.model, torch.device(options["device"]).type
    clock = Clock(target)
    told: dict = {"turns": 0, "variant": "own", "tf32_convolutions": torch.backends.cudnn.allow_tf32,
                  "tf32_products": torch.backends.cuda.matmul.allow_tf32}
    sides: dict[str, Callable] = {"eager": model}
    if seen.convolves and options.get("tf32_off", True):
        sides["eager_f32"] = _without_tf32(model)
    if options.get("compiled") and not options.get("no_compile"):
        stage("torch.compile")
        fast, why = _compiled(case, options)
        if fast is not None:
            sides["compile"] = fast
        else:
            told["compile_failed"] = why
        stage("time")
    elif options.get("no_compile"):
        told["compile_failed"] = options["no_compile"]
    names = [*kernels, *sides]
    times: dict[str, list[float]] = {name: [] for name in names}
    is_long = options["first_s"] > LONG_S
    for turn in range(0 if is_long else -1, options["turns"]):
        _draw(case, options, turn)
        binding = bind(program.parameters, case)
        launches = {name: _Launch(kernel, binding) for name, (kernel, _) in kernels.items()}
        first = (turn + 1) % len(names)
        for name in names[first:] + names[:first]:
            if name in launches:
                seconds, _ = clock(launches[name].prepared)
                launches[name].prepared.wait()
            else:
                restore(model, case.state)
                given = [one.clone() if options.get("writes") and isinstance(one, torch.Tensor) else one
                         for one in case.inputs]
                with torch.no_grad():
                    seconds, value = clock(lambda: sides[name](*given))
                if name == "eager":
                    expected = results(value)
                del value, given
            if turn >= 0:
                times[name].append(seconds)
        for name, (_, gaps) in kernels.items():
            failed = _differs(launches[name].results(), expected, gaps)
            if failed:
                return {**told, "failed": f"turn {turn}: {failed}"}
        moved = launches["program"].moved()
        del expected, launches, binding
        case.inputs = []
        spent = [sum(ones) for ones in times.values()]
        if turn >= 0 and (sum(spent) > 4 * LONG_S or
                          turn + 1 >= LEAST_TURNS and max(spent) >= ENOUGH_S):
            break
    return {**told, **_summary(times), **_bounds(target, moved, seen.flops, statistics.median(times["program"]))}


class _Launch:
    """A kernel's call on a task's tensors; those that it writes to are copies."""

    def __init__(self, kernel: runner.Kernel, binding: Binding):
        written = {one.name.decode() for one in kernel.arguments if runner.ROLES[one.role] == "inout"}
        self.tensors = {name: one.clone() if name in written else one for name, one in binding.tensors.items()}
        self.prepared = kernel.prepare(self.tensors, binding.scalars)
        self.names = binding.outputs or sorted(written)

    def results(self) -> list[torch.Tensor]:
        return [self.prepared.outputs.get(name, self.tensors.get(name)) for name in self.names]

    def moved(self) -> int:
        """Bytes of all arguments."""
        return sum(one.nbytes for one in {one.data_ptr(): one for one in [
            *self.tensors.values(), *self.prepared.outputs.values()]}.values())


def _draw(case: Case, options: dict, turn: int) -> None:
    torch.manual_seed(options["seed"] + 1000 + turn)
    device = options["device"]
    try:
        with torch.device(device):
            inputs = list(case.built.module.get_inputs())
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception:  # it wants its numbers on the CPU
        inputs = list(case.built.module.get_inputs())
    case.inputs = [one.to(device) if isinstance(one, torch.Tensor) else one for one in inputs]


def _without_tf32(model):
    def run(*inputs):
        with without_tf32():
            return model(*inputs)
    return run


def _compiled(case: Case, options: dict) -> tuple[Callable | None, str]:
    """torch.compile's function, warm; or why there is none: no compiler of its own on the machine, a module that
    it does not take."""
    started = time.monotonic()
    try:
        torch._dynamo.reset()
        fast = torch.compile(case.built.model)
        _draw(case, options, -2)
        with torch.no_grad():
            fast(*case.inputs)
        case.inputs = []
        return fast, f"{time.monotonic() - started:.1f} s"
    except Exception as error:
        return None, f"{type(error).__name__}: {str(error).strip()[:200]}"


def _differs(written: list[torch.Tensor], expected: list[torch.Tensor], gaps: list[float]) -> str:
    """Where a timed call's result is further off eager mode's than the judged one was."""
    for ours, theirs, gap in zip(written, expected, gaps):
        if ours.shape != theirs.shape:
            return "the timed call's result has another shape"
        if not theirs.is_floating_point():
            if float((ours != theirs).double().mean()) > 1e-3:  # a tie or two may fall otherwise
                return "the timed call's result is not the module's"
        else:
            off = measure_error(ours, theirs).norm
            if not off <= 10 * gap + 1e-5 or bool(torch.isnan(ours).any()) != bool(torch.isnan(theirs).any()):
                return f"the timed call's result is off by {off:.2e}, the judged one was by {gap:.2e}"
    return ""


def _summary(times: dict[str, list[float]]) -> dict:
    told: dict = {"turns": len(times["program"])}
    for name, seconds in times.items():
        told[f"{name}_s"] = statistics.median(seconds)
        told[f"{name}_least_s"], told[f"{name}_most_s"] = min(seconds), max(seconds)
        if not name.startswith("program"):  # what runs as PyTorch does stands beside the program at that precision
            ours = times["program" if name == "eager_f32" else "program_tf32" if "program_tf32" in times else "program"]
            told[f"{name}_ratio"] = statistics.median(theirs / mine for theirs, mine in zip(seconds, ours))
    return told


def _bounds(target: str, moved: int, flops: int, program_s: float) -> dict:
    """What moving inputs and outputs once takes, and what the products take as float32 ones."""
    bandwidth, speed = rates(target)
    bytes_s, least_s = moved / bandwidth, max(moved / bandwidth, flops / speed)
    return {"bytes": moved, "flops": flops, "bytes_s": bytes_s, "bytes_share": bytes_s / program_s,
            "roofline_s": least_s, "roofline_share": least_s / program_s, "bytes_per_s": bandwidth,
            "flops_per_s": speed}
