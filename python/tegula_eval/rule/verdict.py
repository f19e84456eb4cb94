"""Whether a result is right: the rule of `tegula bench` (docs/bench.md, bench/Compare.h).

Two errors are taken against the float64 result, for the program and for the module's own result:

  norm   ||result - exact|| / ||exact||
  worst  max |result - exact| / max(|exact|, rms(exact))

Each of the program's must be at most twice the module's, or at most u + 2s (norm) and u + 16s (worst), u being
the unit roundoff of the result's type and s = r sqrt(1 + depth), r = 2^-24 being that of float32, in which sums are added.

Where inputs, parameters and what operators give on the way, all off by one rounding, give a result that is off by more than
that (`Sensitivity`: a norm over two numbers, a difference of large ones), one sample of the module's own error says
little about another program's. Two things then allow more:

  on the way  what is rounded to float32 on the way moves the result by so many roundings: r + 2s (norm) and r + 16s (worst)
              count as many times, up to 16 times the module's error, or 16 times that of the result for what is off by
              one rounding, whichever is more; the latter up to 512 times the module's error (or r), or what that would be
              were it the least in 10,000: where eager mode is near float64, no sensitivity excuses what is far from it. The
              result's own rounding, u - r, counts once, however sensitive it is.
  by luck     below float32 a module rounds on the way to the result's type, which its own error shows. That is the root
              of a mean of so many squares as there are elements that decide: of few it may be small by chance. So it counts
              as what it would be were it the least in 10,000 (chi squared of `elements`), but no more than all roundings
              on the way being those of the result's type. Of many elements that is the error itself: a program
              that is off everywhere, by a bias or by more roundings, is not helped by any sensitivity.

Both grow with the error that a lower precision makes, so that it stays as far beyond them as where nothing is sensitive.
KernelBench's rule (allclose with rtol = atol = 1e-4, or 1e-2 below float32) is told beside it.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch

from . import error_pattern


@dataclass(frozen=True)
class ErrorMeasure:
    norm: float
    worst: float
    at: int  # flat index of the worst element, -1: none differs
    elements: float = math.inf  # that decide the norm: all of them where errors are alike, one where one is far larger


@dataclass(frozen=True)
class Sensitivity:
    """The errors of a result whose inputs and parameters are off by one rounding, in roundings."""
    norm: float = 1.0
    worst: float = 0.0
    elements: float = math.inf  # that decide the norm


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


EXCUSED = 512  # times the module's own error
CHUNK = 1 << 24  # elements looked at together: results of gigabytes are compared beside what made them


def as_real(one: torch.Tensor) -> torch.Tensor:
    """A complex tensor as its real and imaginary parts, along a last dim: as one number only the real part would be looked at."""
    return torch.view_as_real(one.resolve_conj()) if one.is_complex() else one


def is_finite(one: torch.Tensor) -> bool:
    """Whether all of its numbers are; of any type, those too that torch does not compute in."""
    one = as_real(one)
    return not one.is_floating_point() or math.isfinite(float(one.double().sum())) or \
        bool(torch.isfinite(one.double()).all())


def _chunks(*tensors: torch.Tensor):
    """The same elements of each, a part at a time, on the device that one of them is on."""
    flat = [one.detach().reshape(-1) for one in tensors]
    device = next((one.device for one in flat if one.device.type != "cpu"), flat[0].device)
    for start in range(0, flat[0].numel(), CHUNK):
        yield start, [one[start:start + CHUNK].to(device) for one in flat]


def _sizes(exact: torch.Tensor) -> tuple[float, float]:
    """The sum of the squares of the finite elements, and the root of their mean."""
    squares, count = 0.0, 0
    for _, (part,) in _chunks(exact):
        part = part.double()
        added = float(part.dot(part))
        if not math.isfinite(added):
            part = part[torch.isfinite(part)]
            added = float(part.dot(part))
        squares += added
        count += part.numel()
    return squares, math.sqrt(squares / count) if count else 0.0


def measure_error(result: torch.Tensor, exact: torch.Tensor) -> ErrorMeasure:
    """Errors over the elements at which both are finite. On the device of `exact`, a part at a time."""
    result, exact = as_real(result), as_real(exact)
    squares, rms = _sizes(exact)
    total, fourths, worst, at = 0.0, 0.0, 0.0, -1
    for start, (truth, value) in _chunks(exact, result):
        truth, value = truth.double(), value.double()
        error = (value - truth).abs_()
        scale = truth.abs()
        if not math.isfinite(float(error.sum())):
            error.masked_fill_(~torch.isfinite(error), 0.0)
            scale.masked_fill_(~torch.isfinite(scale), 0.0)
        relative = error / scale.clamp_(min=rms)
        if not rms:
            relative.masked_fill_(error == 0, 0.0)
        place = int(relative.argmax())
        if float(relative[place]) > worst:
            worst, at = float(relative[place]), start + place
        error.square_()
        total += float(error.sum())
        fourths += float(error.dot(error))
    if at < 0:
        return ErrorMeasure(0.0, 0.0, -1)
    return ErrorMeasure(math.sqrt(total / squares) if squares else math.inf, worst, at,
                        total * total / fourths if fourths else math.inf)


def _tolerance(dtype: torch.dtype) -> float:
    return 1e-4 if dtype in (torch.float32, torch.float64) else 1e-2


def kernelbench_misses(result: torch.Tensor, expected: torch.Tensor) -> int:
    """How many elements KernelBench's rule does not take."""
    result, expected = as_real(result), as_real(expected)
    tolerance = _tolerance(expected.dtype)
    return sum(int((~torch.isclose(ours.double(), theirs.double(), rtol=tolerance, atol=tolerance)).sum())
               for _, (theirs, ours) in _chunks(expected, result))


def kernelbench_rule(result: torch.Tensor, expected: torch.Tensor) -> bool:
    result, expected = as_real(result), as_real(expected)
    if result.shape != expected.shape:
        return False
    tolerance = _tolerance(expected.dtype)
    return all(_is_close(ours.double(), theirs.double(), tolerance)
               for _, (theirs, ours) in _chunks(expected, result))


def _is_close(ours: torch.Tensor, theirs: torch.Tensor, tolerance: float) -> bool:
    """torch.allclose, in a third of its time where all is finite."""
    error = (ours - theirs).abs_()
    if not math.isfinite(float(error.sum())):
        return torch.allclose(ours, theirs, rtol=tolerance, atol=tolerance)
    return bool((error <= theirs.abs().mul_(tolerance).add_(tolerance)).all())


def unit_roundoff(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).eps / 2


def luck(elements: float) -> float:
    """By what the norm of an error must be multiplied, for no more than one of 10,000 to be smaller by chance: errors of
    `elements`, normal and independent. The quantile of chi squared: of many Wilson and Hilferty's, of few that of the
    density near zero, which is above it."""
    apart = 2 / (9 * elements)
    root = 1 - apart - 3.72 * math.sqrt(apart)
    few = math.exp((math.log(1e-4) + math.lgamma(elements / 2 + 1)) * 2 / elements) * 2 / elements if elements < 40 else 0.0
    return max(root ** 3 if root > 0 else 0.0, few) ** -0.5


def bounds(dtype: torch.dtype, depth: float, reference: ErrorMeasure | None,
           sensitivity: Sensitivity = Sensitivity()) -> tuple[float, float]:
    """What is allowed: (norm, worst). `reference`: None for what any float32 program's roundings explain."""
    own = unit_roundoff(dtype)
    rounding = 2.0 ** -53 if dtype == torch.float64 else 2.0 ** -24
    step = rounding * math.sqrt(1 + depth)

    def moved(unit: float) -> tuple[float, float]:
        """Roundings of `unit` on the way."""
        norm, worst = unit + 2 * step, unit + 16 * step
        # The worst of a result that is off at random has the tail already for which 16 stands.
        return sensitivity.norm * norm, max(sensitivity.norm * worst, sensitivity.worst * norm)

    allowed = []
    times = luck(sensitivity.elements)
    for theirs, off, many, way, by_luck in zip((reference.norm, reference.worst) if reference is not None else (0.0, 0.0),
                                               (sensitivity.norm, sensitivity.worst), (2, 16), moved(rounding), moved(own)):
        excused = 16 * max(theirs, off * rounding)
        if reference is not None:
            excused = max(16 * theirs, min(excused, max(theirs, rounding) * max(times, EXCUSED)))
        bound = max(2 * theirs, own + many * step, own - rounding + min(way, excused))
        if own > rounding:
            bound = max(bound, min(2 * theirs * times, by_luck))
        allowed.append(bound)
    return allowed[0], allowed[1]


def judge(result: torch.Tensor, expected: torch.Tensor, exact: torch.Tensor, depth: float,
          sensitivity: Sensitivity = Sensitivity(), doubt: ErrorMeasure = ErrorMeasure(0.0, 0.0, -1),
          theirs: ErrorMeasure | None = None) -> Verdict:
    """`result` of the program, `expected` of the module, `exact` of the module in float64, or what stands for
    that and is itself off by `doubt`. `theirs`: the error of `expected`, where it is known."""
    if result.shape != expected.shape:
        return Verdict(False, "shape", f"the program's result has shape {list(result.shape)}, the module's "
                       f"{list(expected.shape)}")
    if result.is_complex() != expected.is_complex():
        return Verdict(False, "dtype", f"the program's result is {_dtype(result)}, the module's {_dtype(expected)}")
    result, expected, exact = (as_real(one.detach()) for one in (result, expected, exact))
    agrees = kernelbench_rule(result, expected)
    if not expected.is_floating_point():
        return _judge_integers(result, expected, exact, agrees)
    if not result.is_floating_point():
        return Verdict(False, "dtype", f"the program's result is {_dtype(result)}, the module's "
                       f"{_dtype(expected)}", agrees)

    def other_kind(value, theirs, truth):
        nearest = truth.to(value.dtype).double()
        if math.isfinite(float(value.double().sum())) and math.isfinite(float(nearest.sum())):
            return torch.zeros_like(value, dtype=torch.bool)  # no element is another kind of number
        return ~(_same_kind(value.double(), nearest) | _same_kind(value.double(), theirs.double()))

    bad = _mask(other_kind, result, expected, exact)
    if bad is not None:
        return _wrong("not-finite", "not finite where it should be, or finite where it should not", bad, result,
                      expected, exact, agrees)
    ours, theirs = measure_error(result, exact), theirs or measure_error(expected, exact)
    norm_bound, worst_bound = bounds(result.dtype, depth, theirs, sensitivity)
    norm_bound, worst_bound = norm_bound + 2 * doubt.norm, worst_bound + 2 * doubt.worst
    if ours.worst <= worst_bound and ours.norm <= norm_bound:
        return Verdict(True, kernelbench=agrees, ours=ours, reference=theirs)
    # Elements are told wrong by the bound on the worst; by a tighter one where the norm alone is too large.
    rms = _sizes(exact)[1]
    limit = worst_bound if ours.worst > worst_bound else norm_bound

    def beyond(value, truth):
        error = (value.double() - truth.double()).abs()
        return torch.isfinite(error) & (error > limit * truth.double().abs().clamp(min=rms))

    bad = _mask(beyond, result, exact)
    if bad is None:  # the norm adds up what no element alone is wrong by
        bad = torch.zeros(result.shape, dtype=torch.bool)
        bad.view(-1)[max(ours.at, 0)] = True
    measure, bound = ("worst", worst_bound) if ours.worst > worst_bound else ("norm", norm_bound)
    answer = _wrong("value", f"the {measure} error is {getattr(ours, measure):.2e}, allowed {bound:.2e}, "
                    f"PyTorch's own {getattr(theirs, measure):.2e}", bad, result, expected, exact, agrees)
    answer.ours, answer.reference = ours, theirs
    return answer


def _mask(where, *tensors: torch.Tensor) -> torch.Tensor | None:
    """The elements at which `where(parts...)` holds, on the CPU; None where there is none."""
    parts = [(where(*part), start) for start, part in _chunks(*tensors)]
    if not any(bool(part.any()) for part, _ in parts):
        return None
    return torch.cat([part.cpu() for part, _ in parts]).reshape(tensors[0].shape)


def _judge_integers(result, expected, exact, agrees) -> Verdict:
    if result.is_floating_point():
        return Verdict(False, "dtype", f"the program's result is {_dtype(result)}, the module's "
                       f"{_dtype(expected)}", agrees)
    if result.dtype == torch.bool:  # a byte that is neither 0 nor 1 was never written (runner.poison)
        result = result.view(torch.uint8)
    bad = _mask(lambda value, theirs, truth: (value.long() != theirs.long()) & (value.double() != truth.double()),
                result, expected, exact)
    if bad is None:
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
    wrong = int(bad.sum())
    places = _first(bad, count)
    elements = []
    for place in places:
        at = tuple(place) if result.dim() else ()
        elements.append({"index": list(at), "expected": _number(exact[at]), "got": _number(result[at]),
                         "pytorch": _number(expected[at])})
    share = wrong / max(bad.numel(), 1)
    message = f"{wrong} of {bad.numel()} elements are wrong; {what}"
    if elements:
        first = elements[0]
        message += f"; first at {first['index']}: expected {first['expected']}, got {first['got']}"
    return Verdict(False, reason, message, agrees, wrong=elements, wrong_share=share,
                   pattern=error_pattern.describe(bad))


def _first(bad: torch.Tensor, count: int) -> list[list[int]]:
    """Indices of the first `count` elements that are set."""
    flat: list[int] = []
    for start, (part,) in _chunks(bad):
        flat += [start + place for place in torch.nonzero(part).flatten()[:count - len(flat)].tolist()]
        if len(flat) >= count:
            break
    indices = []
    for place in flat:
        index = []
        for size in reversed(bad.shape):
            index.insert(0, place % size)
            place //= size
        indices.append(index)
    return indices
