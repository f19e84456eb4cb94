"""Answers without the work: whether zeros, one number, an input, or what another call gave passes for a result, by the
rule for programs."""
from __future__ import annotations

import torch

from .verdict import ErrorMeasure, bounds, judge

LOOKED_AT = 1024  # elements that are compared before all are
EXACT = ErrorMeasure(0.0, 0.0, -1)


def passes(expected: list[torch.Tensor], inputs: list[list[torch.Tensor]], others: list[list[torch.Tensor]],
           depth: float) -> str:
    """What does, in words; "" where nothing does. `inputs` and `others`: what may stand for each result."""
    if not any(one.numel() for one in expected):
        return "nothing"
    if all(_passes(torch.zeros_like(one), one, depth) for one in expected):
        return "a result of zeros"
    if all(_passes(_one_number(one), one, depth) for one in expected):
        return "one number"
    for given in inputs:
        if all(ours.shape == one.shape and ours.dtype == one.dtype and _passes(ours, one, depth)
               for ours, one in zip(given, expected)):
            return "an input"
    for other in others:
        if len(other) == len(expected) and all(ours.shape == one.shape and ours.dtype == one.dtype and
                                               _passes(ours, one, depth) for ours, one in zip(other, expected)):
            return "the result of another call"
    return ""


def _one_number(one: torch.Tensor) -> torch.Tensor:
    if not one.numel():
        return one
    if not one.is_floating_point():
        return one.flatten()[:1].expand(one.numel()).reshape(one.shape)
    wide = one.double().flatten()
    return ((wide.amin() + wide.amax()) / 2).to(one.dtype).expand(one.numel()).reshape(one.shape)


def _passes(ours: torch.Tensor, expected: torch.Tensor, depth: float) -> bool:
    step = max(1, expected.numel() // LOOKED_AT)
    part, theirs = (one.flatten()[::step] for one in (ours, expected))
    if not expected.is_floating_point():
        return torch.equal(part, theirs) and torch.equal(ours, expected)
    part, theirs = part.double(), theirs.double()
    error = (part - theirs).abs_()
    norm = bounds(expected.dtype, depth, EXACT)[0]
    if not bool(torch.isfinite(error).all()):
        if not torch.equal(part.isfinite(), theirs.isfinite()):
            return False
    elif float(error.norm()) > 4 * norm * float(theirs.norm()):  # of a part it may be more than of all
        return False
    return judge(ours, expected, expected.double(), depth, theirs=EXACT).right
