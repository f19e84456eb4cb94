"""Whether a result is right: the rule of `tegula bench` (docs/bench.md, bench/Compare.h).

Two errors are taken against the float64 result, for the program and for the module's own result:

  norm   ||result - exact|| / ||exact||
  worst  max |result - exact| / max(|exact|, rms(exact))

Each of the program's must be at most twice the module's, or at most u + 2s (norm) and u + 16s (worst), u being
the unit roundoff of the result's type and s = 2^-24 sqrt(1 + depth). Where inputs and parameters that are off by
one rounding give a result that is off by more than that (`Sensitivity`: a norm over two numbers, a difference of
large ones), one sample of the module's own error says little about another program's: then the second bounds are
that many times as large, up to 16 times the module's error. KernelBench's rule (allclose with
rtol = atol = 1e-4, or 1e-2 below float32) is told beside it.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch

from . import pattern


@dataclass(frozen=True)
class ErrorMeasure:
    norm: float
    worst: float
    at: int  # flat index of the worst element, -1: none differs


@dataclass(frozen=True)
class Sensitivity:
    """The errors of a result whose inputs and parameters are off by one rounding, in roundings."""
    norm: float = 1.0
    worst: float = 0.0


@dataclass
class Verdict:
    right: bool
    reason: str = ""          # `shape`, `dtype`, `count`, `value`, `not-finite`, or "" where right
    message: str = ""
    kernelbench: bool = False
    ours: ErrorMeasure | None = None
    reference: ErrorMeasure | None = None
    wrong: list[dict] = field(default_factory=list)  # the first wrong elements
    wrong_share: float = 0.0
    pattern: str = ""         # where the wrong elements lie


def measure_error(result: torch.Tensor, exact: torch.Tensor) -> ErrorMeasure:
    """Errors over the elements at which both are finite."""
    value, truth = result.detach().double().flatten(), exact.detach().double().flatten()
    finite = torch.isfinite(truth)
    squares = float((truth[finite] ** 2).sum())
    rms = math.sqrt(squares / int(finite.sum())) if bool(finite.any()) else 0.0
    both = finite & torch.isfinite(value)
    error = torch.where(both, (value - truth).abs(), torch.zeros_like(truth))
    total = float((error ** 2).sum())
    if total == 0 and not bool((error > 0).any()):
        return ErrorMeasure(0.0, 0.0, -1)
    scale = torch.where(finite, truth.abs(), torch.zeros_like(truth)).clamp(min=rms)
    relative = torch.where(error > 0, error / scale, torch.zeros_like(error))
    at = int(relative.argmax())
    return ErrorMeasure(math.sqrt(total / squares) if squares else math.inf, float(relative[at]), at)


def kernelbench_rule(result: torch.Tensor, expected: torch.Tensor) -> bool:
    if result.shape != expected.shape:
        return False
    tolerance = 1e-4 if expected.dtype in (torch.float32, torch.float64) else 1e-2
    return torch.allclose(result.double(), expected.double(), rtol=tolerance, atol=tolerance)


def unit_roundoff(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).eps / 2


def bounds(dtype: torch.dtype, depth: float, reference: ErrorMeasure,
           sensitivity: Sensitivity = Sensitivity()) -> tuple[float, float]:
    """What is allowed: (norm, worst)."""
    roundoff = unit_roundoff(dtype)
    step = (2.0 ** -53 if dtype == torch.float64 else 2.0 ** -24) * math.sqrt(1 + depth)
    norm, worst = roundoff + 2 * step, roundoff + 16 * step
    # The worst of a result that is off at random has the tail already for which 16 stands.
    return (max(2 * reference.norm, norm, min(sensitivity.norm * norm, 16 * reference.norm)),
            max(2 * reference.worst, worst,
                min(max(sensitivity.norm * worst, sensitivity.worst * norm), 16 * reference.worst)))


def judge(result: torch.Tensor, expected: torch.Tensor, exact: torch.Tensor, depth: float,
          sensitivity: Sensitivity = Sensitivity()) -> Verdict:
    """`result` of the program, `expected` of the module, `exact` of the module in float64."""
    if result.shape != expected.shape:
        return Verdict(False, "shape", f"the program's result has shape {list(result.shape)}, the module's "
                       f"{list(expected.shape)}")
    result, expected, exact = result.detach().cpu(), expected.detach().cpu(), exact.detach().cpu()
    agrees = kernelbench_rule(result, expected)
    if not expected.is_floating_point():
        return _judge_integers(result, expected, exact, agrees)
    if not result.is_floating_point():
        return Verdict(False, "dtype", f"the program's result is {_dtype(result)}, the module's "
                       f"{_dtype(expected)}", agrees)
    nearest = exact.to(result.dtype).double()
    value = result.double()
    bad = ~(_same_kind(value, nearest) | _same_kind(value, expected.double()))
    if bool(bad.any()):
        return _wrong("not-finite", "not finite where it should be, or finite where it should not", bad, result,
                      expected, exact, agrees)
    ours, theirs = measure_error(result, exact), measure_error(expected, exact)
    norm_bound, worst_bound = bounds(result.dtype, depth, theirs, sensitivity)
    if ours.worst <= worst_bound and ours.norm <= norm_bound:
        return Verdict(True, kernelbench=agrees, ours=ours, reference=theirs)
    # Elements are told wrong by the bound on the worst; by a tighter one where the norm alone is too large.
    squares = exact.double()[torch.isfinite(exact)]
    rms = float((squares ** 2).mean().sqrt()) if squares.numel() else 0.0
    limit = worst_bound if ours.worst > worst_bound else norm_bound
    error = (value - exact.double()).abs()
    bad = torch.isfinite(error) & (error > limit * exact.double().abs().clamp(min=rms))
    measure, bound = ("worst", worst_bound) if ours.worst > worst_bound else ("norm", norm_bound)
    answer = _wrong("value", f"the {measure} error is {getattr(ours, measure):.2e}, allowed {bound:.2e}, "
                    f"PyTorch's own {getattr(theirs, measure):.2e}", bad, result, expected, exact, agrees)
    answer.ours, answer.reference = ours, theirs
    return answer


def _judge_integers(result, expected, exact, agrees) -> Verdict:
    if result.is_floating_point():
        return Verdict(False, "dtype", f"the program's result is {_dtype(result)}, the module's "
                       f"{_dtype(expected)}", agrees)
    bad = (result.long() != expected.long()) & (result.double() != exact.double())
    if not bool(bad.any()):
        return Verdict(True, kernelbench=agrees)
    return _wrong("value", "a wrong integer", bad, result, expected, exact, agrees)


def _same_kind(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.isnan(a), torch.isnan(b), torch.where(torch.isinf(a), a == b, torch.isfinite(b)))


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _number(element: torch.Tensor) -> float | str:
    """JSON has no `nan` and no `inf`: they are told as text."""
    value = float(f"{float(element):.9g}")
    return value if math.isfinite(value) else str(value)


def _wrong(reason, what, bad, result, expected, exact, agrees, count: int = 4) -> Verdict:
    places = torch.nonzero(bad.reshape(bad.shape or (1,)))
    elements = []
    for place in places[:count].tolist():
        at = tuple(place) if result.dim() else ()
        elements.append({"index": list(at), "expected": _number(exact[at]), "got": _number(result[at]),
                         "pytorch": _number(expected[at])})
    share = len(places) / max(bad.numel(), 1)
    message = f"{len(places)} of {bad.numel()} elements are wrong; {what}"
    if elements:
        first = elements[0]
        message += f"; first at {first['index']}: expected {first['expected']}, got {first['got']}"
    return Verdict(False, reason, message, agrees, wrong=elements, wrong_share=share,
                   pattern=pattern.describe(bad))
