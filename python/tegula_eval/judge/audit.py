"""Runs one task without a program, and finds the flags that commands/audit.py explains."""
from __future__ import annotations

import torch
from torch.utils._pytree import tree_flatten

from ..records.audits import AUDITED
from ..rule.reference import ROUNDOFF, Case, evaluate_reference, make_case, moved_results, passes, sensitivity_of
from ..rule.variants import Variant
from ..rule.verdict import bounds, kernelbench_misses, kernelbench_rule, measure_error
from .evaluate import caught, derived_seed, find_cached_variants

DRAWS = 4  # of inputs and parameters


def audit(request: dict, stage) -> dict:
    """`request`: as of evaluate.evaluate, without a program."""
    torch.set_num_threads(request.get("threads", 1))
    record: dict = {"outcome": AUDITED, "reason": "", "message": "", "flags": [], "cases": [], "timing": None}
    with caught(record):
        stage("variants")
        for variant in find_cached_variants(request):
            stage(f"reference {variant.name}")
            case = make_case(variant.source, derived_seed(request["secret"], variant.name, 0), "task")
            evaluate_reference(case, case.seed)
            stage(f"audit {variant.name}")
            case.flags += more_flags(case)
            told = {"variant": variant.name, "changed": variant.changed, "flags": case.flags}
            stage(f"roundings {variant.name}")
            inaccurate = find_inaccurate(case, variant, request["secret"])
            if inaccurate is not None:
                told["roundings"] = roundings(inaccurate, variant.cost.depth)
                case.flags += [flag for flag in ("inaccurate", "amplifies")
                               if flag not in case.flags and (flag == "inaccurate" or told["roundings"]["explained"])]
            record["flags"] += [flag for flag in case.flags if flag not in record["flags"]]
            record["cases"].append(told)
    return record


def more_flags(case: Case) -> list[str]:
    """Of a case whose results are known."""
    found = []
    if all(_is_one_number(one) for one in case.expected):
        found.append("one-number")
    given = [one for one in tree_flatten(case.inputs)[0] if isinstance(one, torch.Tensor)]
    if all(any(one.shape == result.shape and kernelbench_rule(one.to(result), result) for one in given)
           for result in case.expected):
        found.append("copy")
    if "random" not in case.flags and any(one.is_floating_point() for one in case.expected):
        found += [name for name, rounded in ROUNDED.items() if passes(case, rounded, rounded)]
    return found


def find_inaccurate(case: Case, variant: Variant, secret: str) -> Case | None:
    """The case, or one of other inputs and parameters, of which the float32 result does not pass against float64. Where
    few elements are near zero it goes by the draw whether there is one that does not."""
    if "random" in case.flags:
        return None
    draws_nothing = "dropout-off" not in case.flags
    for draw in range(1, DRAWS):
        if "inaccurate" in case.flags:
            return case
        case = make_case(variant.source, derived_seed(secret, variant.name, draw), "task")
        evaluate_reference(case, case.seed, audit=False, known_same=draws_nothing)
    return case if "inaccurate" in case.flags else None


def roundings(case: Case, depth: float) -> dict:
    """Why float32 does not pass: elements beyond KernelBench's rule and errors (norm) of the module in float32, and of
    the module in float64 where all is off by one rounding (of the samples the second from above)."""
    floats = [place for place, one in enumerate(case.exact) if one.is_floating_point()]
    beyond, moved = 0, []
    for place in floats:
        beyond += kernelbench_misses(case.expected[place], case.exact[place])
    for results in moved_results(case):
        moved.append((sum(kernelbench_misses(results[place], case.exact[place]) for place in floats),
                      [measure_error(results[place], case.exact[place]) for place in floats]))
    explained = True
    for number, place in enumerate(floats):
        errors = [ones[number] for _, ones in moved]
        allowed = bounds(case.expected[place].dtype, depth, None, sensitivity_of(errors))
        own = case.errors[place]
        explained &= own.norm <= allowed[0] and own.worst <= allowed[1]
    return {"elements": sum(case.exact[place].numel() for place in floats), "beyond": beyond,
            "error": max(case.errors[place].norm for place in floats), "explained": explained,
            "moved_beyond": sorted(count for count, _ in moved)[-2],
            "moved_error": max(sensitivity_of([ones[number] for _, ones in moved]).norm * ROUNDOFF
                               for number in range(len(floats)))}


def _is_one_number(result: torch.Tensor) -> bool:
    """The middle of the least and the largest is the nearest to all, where the rule's relative part is left out."""
    if result.numel() < 2 or not result.is_floating_point():
        return False
    middle = (result.min() + result.max()) / 2
    return kernelbench_rule(middle.expand(result.shape), result)


def _to_tf32(one: torch.Tensor) -> torch.Tensor:
    """To 10 bits behind the point, halves up."""
    return ((one.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def _floats(rounded):
    return lambda one: rounded(one) if isinstance(one, torch.Tensor) and one.dtype == torch.float32 else one


ROUNDED = {"tf32": _floats(_to_tf32), "f16": _floats(lambda one: one.half().float()),
           "bf16": _floats(lambda one: one.bfloat16().float())}
