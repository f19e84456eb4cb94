"""Modules that are alike, together, and by Amdahl's law what a faster one would give."""
from __future__ import annotations

import re
from dataclasses import dataclass

import torch

from .spans import Call, Times, _signature


@dataclass
class Group:
    """Modules of one class that are called alike, and whose names differ in numbers alone."""
    pattern: str
    kind: str
    module: torch.nn.Module
    call: Call
    calls: float   # for one call of the model
    share: float   # of its time, modules in it included
    modules: int

    def speedup(self, times: float) -> float:
        """Of the model, were the group so many times faster."""
        return 1 / (1 - self.share + self.share / times)


def rank(times: Times, model: torch.nn.Module) -> list[Group]:
    """By share; the model itself is left out."""
    modules = dict(model.named_modules())
    total = sum(times.own.values())
    inclusive: dict[int, float] = {}
    for number, call in enumerate(times.calls):
        prefix = call.name + "." if call.name else ""
        same = [other for other, one in enumerate(times.calls) if one.name == call.name]
        inner = sum(spent for other, spent in times.own.items() if times.calls[other].name.startswith(prefix)
                    and times.calls[other].name != call.name)
        # A module that is called in several ways shares what lies in it by its calls.
        part = times.count.get(number, 0) / max(sum(times.count.get(one, 0) for one in same), 1e-9)
        inclusive[number] = times.own.get(number, 0.0) + inner * part
    groups: dict[tuple, Group] = {}
    for number, call in enumerate(times.calls):
        if not call.name or not total:
            continue
        module = modules[call.name]
        pattern = re.sub(r"(?<![^.])\d+(?![^.])", "*", call.name)
        key = pattern, type(module), _signature(call.args, call.kwargs), str(module)
        if key not in groups:
            groups[key] = Group(pattern, type(module).__name__, module, call, 0, 0, 0)
        groups[key].calls += times.count.get(number, 0)
        groups[key].share += inclusive[number] / total
        groups[key].modules += 1
    ranked = sorted(groups.values(), key=lambda one: -one.share)
    for one in ranked:
        if one.modules == 1:
            one.pattern = one.call.name
    return ranked
