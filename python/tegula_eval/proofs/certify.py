"""What a record says of a program that was proved to be its task's module."""
from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Callable

from ..program.binding import BindingError
from ..program.runner import Refused
from ..rule.tasks import TaskError
from ..rule.variants import Variant, find_variants
from . import trace
from .asking import Proof, ProveFailed, prove_against_module
from .module import NoReference

SMALL_BYTES, SMALL_FLOPS = 1 << 16, 1 << 17  # of sizes that a proof has steps for
SAYS = {"equal": "equal for all inputs of these sizes",
        "equal on points": "equal for all inputs of these sizes on which comparisons and roundings come out as at a point drawn",
        "less precise": "equal for all inputs of these sizes, with roundings that the module has not",
        "not equal": "not equal", "undecided": "not decided"}


def small_variants(task: str) -> list[Variant]:
    """Of a task's text, at sizes that a proof has steps for, or the least ones. Raises TaskError."""
    return find_variants(task, SMALL_BYTES, SMALL_FLOPS, grows=False)


def certify(program: str, smaller: Callable[[], list[Variant]], variant: Variant, deadline_s: float = 60) -> dict:
    """As prove_against_module takes them. `verdict`, what it `says`, `reason`, `sizes`, and `certificates` of `tegula prove` with the `reference` that they are
    about. What cannot be asked is undecided, with the reason."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            proof = prove_against_module(program, variant, smaller, Path(folder), deadline_s)
    except (ProveFailed, NoReference, BindingError, Refused, TaskError) as error:
        proof = Proof("undecided", str(error))
    sizes = []
    for one in proof.certificates:
        sizes += [point["sizes"] for point in one["equal"]["points"] if point["sizes"] not in sizes]
    return {"verdict": proof.verdict, "says": SAYS[proof.verdict], "reason": proof.reason, "fixed": proof.fixed, "sizes": sizes,
            "certificates": proof.certificates, "reference": proof.reference}


@functools.cache
def warm() -> None:
    """Loads what a proof loads, once for all children of this process."""
    trace.warm()
