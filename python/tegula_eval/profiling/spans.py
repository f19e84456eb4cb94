"""Times by module and operator: torch.profiler, with a span around each call of a module."""
from __future__ import annotations

import collections
import contextlib
import statistics
import time
from dataclasses import dataclass, field
from typing import Callable

import torch
from torch.profiler import ProfilerActivity, profile, record_function

SPAN, TURN = "module:", "turn:"
REST = "(Python, and what is no operator)"


@dataclass
class Call:
    """A call of a module: forward's arguments, tensors as they were."""
    name: str
    args: tuple
    kwargs: dict


@dataclass
class Times:
    """Seconds of one call of the model. `own`: of each kind of call (a number in `calls`), without modules in it."""
    own: dict[int, float] = field(default_factory=dict)
    count: dict[int, float] = field(default_factory=dict)  # calls, for one call of the model
    operators: dict[str, float] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)


def seconds(call: Callable[[], object], times: int, device: str) -> float:
    """The median, without a profiler."""
    found = []
    for _ in range(times + 1):
        start = time.perf_counter()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
    return statistics.median(found[1:])


def _signature(args: tuple, kwargs: dict) -> tuple:
    def of(value):
        if isinstance(value, torch.Tensor):
            return value.dtype, tuple(value.shape)
        if isinstance(value, (tuple, list)):
            return type(value), tuple(map(of, value))
        return (type(value), value) if isinstance(value, (bool, int, float, str, type(None))) else type(value)

    return tuple(map(of, args)), tuple((name, of(value)) for name, value in kwargs.items())


@contextlib.contextmanager
def _spans(model: torch.nn.Module, calls: list[Call]):
    """Within it each call of a module is a span `module:NUMBER`, by its name and what it is given."""
    numbers: dict[tuple, int] = {}
    open_spans: list = []
    handles = []

    def before(name: str):
        def enter(module, args, kwargs):
            key = name, _signature(args, kwargs)
            if key not in numbers:
                numbers[key] = len(calls)
                calls.append(Call(name, args, kwargs))
            span = record_function(f"{SPAN}{numbers[key]}")
            span.__enter__()
            open_spans.append(span)
        return enter

    def after(module, args, kwargs, result):
        open_spans.pop().__exit__(None, None, None)

    try:
        for name, module in model.named_modules():
            handles.append(module.register_forward_pre_hook(before(name), with_kwargs=True))
            handles.append(module.register_forward_hook(after, with_kwargs=True))
        yield
    finally:
        for one in handles:
            one.remove()


def measure(call: Callable[[], object], model: torch.nn.Module | None, times: int, device: str) -> Times:
    """`model`: whose modules get spans; None: operators alone."""
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device == "cuda" else [])
    found = Times()
    with _spans(model, found.calls) if model is not None else contextlib.nullcontext():
        call()
        with profile(activities=activities, acc_events=True) as profiled:
            for number in range(times):
                with record_function(f"{TURN}{number}"):
                    call()
            if device == "cuda":
                torch.cuda.synchronize()
    own, count, operators = _Medians(times), _Medians(times), _Medians(times)
    for event in sorted(profiled.events(), key=lambda one: one.time_range.start):
        if event.device_type != torch.autograd.DeviceType.CPU or event.name.startswith(TURN):
            continue
        inside, turn = None, event
        while turn is not None and not turn.name.startswith(TURN):
            if inside is None and turn.name.startswith(SPAN):
                inside = turn
            turn = turn.cpu_parent
        if turn is None:
            continue
        number = int(turn.name[len(TURN):])
        spent = 1e-6 * (event.self_device_time_total if device == "cuda" else event.self_cpu_time_total)
        if event.name.startswith(SPAN):
            count.add(number, int(event.name[len(SPAN):]), 1)
        if inside is not None:
            own.add(number, int(inside.name[len(SPAN):]), spent)
        operators.add(number, REST if event.name.startswith(SPAN) else event.name, spent)
    found.own, found.count, found.operators = own.found(), count.found(), operators.found()
    return found


class _Medians:
    """Values by key in each turn. Of each, by its place among those of its key, the median over the turns: a turn may be
    interrupted anywhere."""

    def __init__(self, turns: int):
        self.turns = [collections.defaultdict(list) for _ in range(turns)]

    def add(self, turn: int, key, value: float) -> None:
        self.turns[turn][key].append(value)

    def found(self) -> dict:
        found = {}
        for key in dict.fromkeys(key for turn in self.turns for key in turn):
            values = [turn[key] for turn in self.turns]
            if len(set(map(len, values))) == 1:
                found[key] = sum(map(statistics.median, zip(*values)))
            else:
                found[key] = statistics.median(map(sum, values))
        return {key: value for key, value in found.items() if value}
