"""A benchmark's own rule for what is close enough, told beside the verdict and never in its place.

A rule is a dictionary, so that it goes through JSON with the request:

  form   `sum`: |ours - theirs| <= atol + rtol |theirs|; `either`: an element fails where it is beyond both atol and rtol
  atol, rtol
  share  of the elements that must be close (1)
  cap    the largest absolute error that is taken at all (none)
  nan    whether nan equals nan, and an infinity itself (no: what is not finite is then wrong)
  negative_inf  whether -inf equals itself
  dtypes atol and rtol by type, where they differ
  without  distributions of inputs that are not drawn (none)
"""
from __future__ import annotations

import math
import re
import typing

if typing.TYPE_CHECKING:
    import torch  # the command's help is there without it

# Which of equal numbers comes first is no promise of the reference: none are drawn where it chooses by order.
ORDERS = re.compile(r"\b(topk|sort|argsort|kthvalue)\b")
DTYPED = "by dtype"  # as atol: KernelBench's 1e-4, below float32 1e-2


def of_reference(rule: dict, text: str) -> dict:
    """The rule for a task with this reference."""
    return {**rule, "without": ["special"]} if ORDERS.search(text) else rule


def measure(results: list[torch.Tensor], expected: list[torch.Tensor], rule: dict) -> dict:
    """`passes`, the largest errors, and `dtype`: what differs in type, of the first result that does."""
    told = {"passes": len(results) == len(expected), "max_absolute_error": 0.0, "max_relative_error": 0.0}
    for place, (ours, theirs) in enumerate(zip(results, expected)):
        if ours.dtype != theirs.dtype:
            told.setdefault("dtype", f"result {place} is {_name(ours)}, the module's {_name(theirs)}")
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            told["passes"] = False
            continue
        passes, absolute, relative = _measure(ours.detach().to(theirs.device), theirs.detach(), rule)
        told["passes"] &= passes
        told["max_absolute_error"] = max(told["max_absolute_error"], absolute)
        told["max_relative_error"] = max(told["max_relative_error"], relative)
    for name in ("max_absolute_error", "max_relative_error"):
        if not math.isfinite(told[name]):
            told[name] = str(told[name])  # JSON has no infinity
    return told


def _measure(ours: torch.Tensor, theirs: torch.Tensor, rule: dict) -> tuple[bool, float, float]:
    if not theirs.numel():
        return True, 0.0, 0.0
    import torch
    is_complex = theirs.is_complex()  # the distance is then that of the numbers, as torch.allclose has it
    if not theirs.is_floating_point() and not is_complex:
        wrong = ours.long() != theirs.long()
        return not bool(wrong.any()), float((ours.double() - theirs.double()).abs().max()), 0.0
    a, b = (one.to(torch.complex128 if is_complex else torch.float64) for one in (ours, theirs))
    same = (a == b) | (torch.isnan(a) & torch.isnan(b)) if rule.get("nan") else torch.isfinite(a) & (a == b)
    if rule.get("negative_inf"):
        same |= (a == b) & (a == -math.inf)
    error = torch.where(same, 0.0, (a - b).abs())
    relative = error / (b.abs() + 1e-8)
    if not bool(torch.isfinite(error).all()):
        return False, math.inf, math.inf
    tolerances = _tolerances(theirs.dtype, rule)
    if rule.get("form", "sum") == "either":
        far = (error > tolerances[0]) & (relative > tolerances[1])
    else:
        far = error > tolerances[0] + tolerances[1] * b.abs()
    share = 1 - float(far.double().mean())
    cap = rule.get("cap")
    largest = float(error.max())
    return share >= rule.get("share", 1.0) and (cap is None or largest <= cap), largest, float(relative.max())


def _tolerances(dtype: torch.dtype, rule: dict) -> tuple[float, float]:
    if str(dtype).removeprefix("torch.") in rule.get("dtypes", {}):
        return tuple(rule["dtypes"][str(dtype).removeprefix("torch.")])
    if rule["atol"] == DTYPED:
        import torch
        both = 1e-4 if dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128) else 1e-2
        return both, both
    return rule["atol"], rule["rtol"]


def _name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
