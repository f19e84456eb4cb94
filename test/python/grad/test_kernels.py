"""The gradients of dsl/kernels, at the small sizes that their references name, against central differences."""
import os
import re
from pathlib import Path

import numpy as np
import pytest
import tegula
from numeric import NUMPY, Refused, compare, gradient, inputs_of, read, warnings, widened

TREE = Path(__file__).resolve().parents[3]
COMMAND = os.environ.get("TEGULA_COMMAND", str(TREE / "build/dev/bin/tegula"))
PROGRAMS = sorted((TREE / "dsl/kernels").glob("*/*.tgl"))
REFUSED = {"argmax": "no output of floats"}


def sizes_of(reference: str) -> dict:
    """The second line of sizes, which is small and ragged, without types."""
    lines = re.findall(r"^# check: (.*)", reference, re.M)
    found = re.findall(r"([\w.]+)=(\([^)]*\)|[\w.]+)", lines[min(1, len(lines) - 1)])
    return {name: eval(value) for name, value in found if re.fullmatch(r"\([^)]*\)|[\d.]+", value)}


def draws_of(reference: str, types: dict, known: dict) -> dict:
    """What the reference's lines `input:` say of its tensors."""
    draws = {}
    for name, kind, arguments in re.findall(r"^# input: (\w+) = (\w+)\((.*)\)", reference, re.M):
        lo, hi = (float(eval(one, {}, known)) for one in arguments.split(","))
        dtype = NUMPY.get(types[name], np.float64)

        def draw(rng, shape, kind=kind, lo=lo, hi=hi, dtype=dtype):
            if kind == "integers":
                return rng.integers(int(lo), int(hi), shape).astype(dtype)
            return rng.uniform(lo, hi, shape) if kind == "uniform" else rng.normal(lo, hi, shape)
        draws[name] = draw
    return draws


@pytest.mark.parametrize("path", PROGRAMS, ids=[path.stem for path in PROGRAMS])
def test_kernel(path):
    if path.stem in REFUSED:
        with pytest.raises(Refused, match=REFUSED[path.stem]):
            gradient(COMMAND, read(path))
        return
    # As it is written, with generic types: no guard that the kernel has not.
    assert len(warnings(COMMAND, gradient(COMMAND, read(path)))) <= len(warnings(COMMAND, read(path)))
    text = widened(read(path)).replace("u4[", "u8[")
    reference = read(path.with_suffix("").with_suffix(".ref.py"))
    kernel = tegula.compile(text)
    sizes = sizes_of(reference)
    if sizes.get("S2") == 0:
        sizes["S2"] = 5
    constants = {one.name: one.default for one in kernel.parameters if one.role == "constant"}
    defaults = {name: eval(value) for name, value in constants.items() if re.fullmatch(r"[\d.e-]+", value or "")}
    draws = draws_of(reference, {one.name: one.type for one in kernel.parameters}, {**defaults, **sizes})
    values = inputs_of(kernel, sizes, draws, seed=1)
    given = [f"-p={name}={sizes[name]}" for name in constants if name in sizes]
    assert compare(text, gradient(COMMAND, text, *given), values) < 1e-6
