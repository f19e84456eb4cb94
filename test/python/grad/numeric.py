"""Gradients held against central differences of the program they were derived from, in float64.

A random direction v of one input at a time: (f(x + h v) - f(x - h v))/2h, weighted by random gradients of the outputs,
must be <grad_x, v>.
"""
import re
import subprocess
from pathlib import Path

import numpy as np
import tegula

NUMPY = {"f64": np.float64, "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8, "u8": np.uint8,
         "u32": np.uint32, "u64": np.uint64, "bool": np.bool_}


class Refused(Exception):
    """`tegula grad` has no rule: E0913."""


def widened(text: str) -> str:
    """The program with f64 in place of every float type."""
    return re.sub(r"\b(f32|f16|bf16|f8e4m3|f8e5m2)\b", "f64", text)


def gradient(command: str, text: str, *options: str, kernel: str = "") -> str:
    """What `tegula grad` writes. Raises Refused, and AssertionError for all else that is wrong."""
    arguments = [command, "grad", "-", *options] + ([f"--kernel={kernel}"] if kernel else [])
    done = subprocess.run(arguments, input=text, capture_output=True, text=True)
    if done.returncode == 1 and "error[E0913]" in done.stderr:
        raise Refused(re.search(r"error\[E0913\]: no gradient: (.*)", done.stderr)[1])
    assert done.returncode == 0, done.stderr
    return done.stdout


def warnings(command: str, text: str) -> list[str]:
    """The codes of what `tegula check` says. Raises AssertionError for an error."""
    done = subprocess.run([command, "check", "-"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + text
    return re.findall(r"warning\[(W\d+)\]: (.*)", done.stderr)


def call(kernel, values):
    names = [one.name for one in kernel.parameters if one.role != "out"]
    result = kernel(**{name: values[name] for name in names if name in values})
    return result if isinstance(result, tuple) else (result,)


def inputs_of(kernel, sizes: dict, draws: dict, seed: int) -> dict:
    """Random arguments at these sizes. `draws`: for a name a function of the generator and the shape."""
    rng = np.random.default_rng(seed)
    known = {"maximum": max, "minimum": min}
    for one in kernel.parameters:
        if one.role == "constant" and one.default is not None and one.name not in sizes:
            try:
                known[one.name] = eval(one.default.replace("true", "True").replace("false", "False"), {}, dict(known))
            except (NameError, SyntaxError):
                pass
    known.update(sizes)
    values = {}
    for one in kernel.parameters:
        if one.role == "scalar":
            values[one.name] = sizes.get(one.name, 0.75)
        elif one.role == "constant" and one.name in sizes:
            values[one.name] = sizes[one.name]
        elif one.role in ("in", "inout"):
            shape = []
            for dim in one.dims:
                shape += list(known["..."]) if dim == "..." else [eval("(" + re.sub(r"(?<!/)/(?!/)", "//", dim) + ")", {}, known)]
            dtype = NUMPY[one.type if one.type in NUMPY else "f64"]
            if one.name in draws:
                values[one.name] = np.asarray(draws[one.name](rng, tuple(shape)))
            elif dtype == np.float64:
                values[one.name] = rng.standard_normal(shape)
            elif dtype == np.bool_:
                values[one.name] = rng.integers(0, 2, shape).astype(dtype)
            else:
                values[one.name] = rng.integers(0, 2, shape).astype(dtype)
    return values


def compare(text: str, gradient_text: str, values: dict, kernel=None, constants=None, seed=0, step=1e-6):
    """The largest relative difference over the inputs, each along two directions.

    A difference quotient rounds the weighted outputs, of size S, to 2^-52 S/step: where the gradient is smaller, as where it is 0
    by the program's form, the difference is relative to what would make that rounding a tenth of the bound 1e-6.
    """
    rng = np.random.default_rng(seed)
    forward = tegula.compile(text, kernel, **(constants or {}))
    backward = tegula.compile(gradient_text)
    inouts = [one.name for one in forward.parameters if one.role == "inout"]
    outputs = [one.name for one in forward.outputs if one.name not in inouts]

    def results_of(inputs):
        inputs = {**inputs, **{name: inputs[name].copy() for name in inouts}}  # which the call changes
        found = dict(zip(outputs, call(forward, inputs))) if outputs else call(forward, inputs) and {}
        return {**found, **{f"{name}_after": inputs[name] for name in inouts}}

    results = results_of(values)
    seeds = {f"grad_{name}": rng.standard_normal(np.shape(result)) for name, result in results.items()
             if np.asarray(result).dtype == np.float64}
    known = {**results, **values, **seeds}
    gradients = dict(zip([one.name for one in backward.outputs], call(backward, known)))

    def weighed(found):
        return sum(float(np.sum(seeds[f"grad_{name}"] * found[name])) for name in found if f"grad_{name}" in seeds)

    size = sum(float(np.sum(np.abs(seeds[f"grad_{name}"] * results[name]))) for name in results if f"grad_{name}" in seeds)
    floor = max(1e-3, 1e7 * 2**-52 * size / step) if np.isfinite(size) else 1e-3
    worst = 0.0
    for name, found in gradients.items():
        name = name.removeprefix("grad_")
        assert found.shape == values[name].shape, (name, found.shape)
        assert np.isfinite(found).all(), f"the gradient of {name} is not finite"
        for _ in range(2):
            direction = rng.standard_normal(values[name].shape)
            ends = [weighed(results_of({**values, name: values[name] + sign * step * direction})) for sign in (1, -1)]
            expected = (ends[0] - ends[1]) / (2 * step)
            got = float(np.sum(found * direction))
            scale = float(np.sqrt(np.sum(found**2))) + abs(expected) + floor
            worst = max(worst, abs(got - expected) / scale)
    return worst


def read(path) -> str:
    return Path(path).read_text(encoding="utf-8")
