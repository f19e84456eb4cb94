"""Samples of operators out of PyTorch's OpInfo, as JSON. A process of its own: it takes seconds to import, and gigabytes.

    python -m tegula_eval.suites.opinfo OUT OPERATOR...      # such as relu.default add.Tensor

OUT gets, for each operator, the calls of OpInfo's samples (float32, CPU) that PyTorch makes of this operator alone: arguments by
the names of its schema. A floating tensor is told by its shape, and by the range of all samples for that argument, so that it can
be drawn anew; integers and booleans as they are. Samples with an empty tensor are left out: no result would be judged.
"""
from __future__ import annotations

import importlib.util
import json
import math
import sys
import types
import unittest

import torch
from torch.utils._python_dispatch import TorchDispatchMode

MAX_ELEMENTS = 4096  # of a tensor of integers


class Unsupported(Exception):
    """An argument that has no form here."""


def entries():
    """OpInfo's. It imports the base class of its tests from a package that is not needed for samples."""
    if importlib.util.find_spec("expecttest") is None:
        stand_in = types.ModuleType("expecttest")
        stand_in.TestCase = unittest.TestCase
        sys.modules["expecttest"] = stand_in
    from torch.testing._internal.common_methods_invocations import op_db
    return op_db


class _Calls(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls: list[tuple] = []

    def __torch_dispatch__(self, function, types_, args=(), kwargs=None):
        self.calls.append((function, args, kwargs or {}))
        return function(*args, **(kwargs or {}))


def _told(value) -> dict:
    if isinstance(value, torch.Tensor):
        if not value.numel() or value.layout != torch.strided or value.is_complex() or value.is_quantized:
            raise Unsupported
        dtype, shape = str(value.dtype).removeprefix("torch."), list(value.shape)
        if value.is_floating_point():
            low, high = float(value.min()), float(value.max())
            if not math.isfinite(low) or not math.isfinite(high):
                raise Unsupported
            return {"tensor": dtype, "shape": shape, "low": low, "high": high}
        if value.numel() > MAX_ELEMENTS:
            raise Unsupported
        return {"tensor": dtype, "shape": shape, "values": value.flatten().tolist()}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if value is None or isinstance(value, (bool, int, str)) or isinstance(value, float) and math.isfinite(value):
        return {"value": value}
    if isinstance(value, (list, tuple)) and all(isinstance(one, (bool, int, float)) for one in value):
        return {"value": list(value)}
    raise Unsupported


def _arguments(function, args: tuple, kwargs: dict) -> dict:
    names = [one.name for one in function._schema.arguments]
    given = dict(zip(names, args)) | kwargs
    return {name: _told(given[name]) for name in names if name in given}


def _exists(name: str) -> bool:
    base, _, overload = name.partition(".")
    return hasattr(getattr(torch.ops.aten, base, None), overload)


def samples(wanted: list[str]) -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {name: [] for name in wanted}
    bases = {name.partition(".")[0].strip("_") for name in wanted}
    all_entries = entries()
    named = [one for one in all_entries if bases & {part.strip("_") for name in (one.name, one.aten_name, *(
        alias.name for alias in one.aliases)) if name for part in (name.rpartition(".")[2],)}]
    _collect(named, found)
    # An operator that samples of another name come down to: a minute for all of OpInfo.
    if not all(calls or not _exists(name) for name, calls in found.items()):
        _collect([one for one in all_entries if one not in named], found)
    return {name: _widened(calls) for name, calls in found.items()}


def _widened(calls: list[dict]) -> list[dict]:
    """Each floating argument with the range of all calls; of the calls that are then alike, one."""
    ranges: dict[str, tuple[float, float]] = {}
    for call in calls:
        for name, one in call.items():
            if "low" in one:
                low, high = ranges.get(name, (one["low"], one["high"]))
                ranges[name] = min(low, one["low"]), max(high, one["high"])
    told: list[dict] = []
    for call in calls:
        wide = {name: {**one, "low": ranges[name][0], "high": ranges[name][1]} if "low" in one else one
                for name, one in call.items()}
        if wide not in told:
            told.append(wide)
    return told


def _collect(some, found: dict[str, list[dict]]) -> None:
    for one in some:
        if torch.float32 not in one.supported_dtypes("cpu"):
            continue
        try:
            made = list(one.sample_inputs("cpu", torch.float32))
        except Exception:  # samples that want what this machine lacks
            continue
        for sample in made:
            try:
                with torch.no_grad(), _Calls() as traced:
                    one.op(sample.input, *sample.args, **sample.kwargs)
                [(function, args, kwargs)] = traced.calls
                name = f"{function.overloadpacket.__name__}.{function._overloadname}"
                if name in found:
                    found[name].append(_arguments(function, args, kwargs))
            except Exception:  # not this operator alone, or an argument without a form: no sample
                continue


def main() -> None:
    torch.manual_seed(0)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(samples(sys.argv[2:]), file)


if __name__ == "__main__":
    main()
