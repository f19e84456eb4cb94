#!/usr/bin/env python3
"""Holds the gradients of all programs of KernelBench's levels 1 and 2 and of bench/real against central differences.

    PYTHONPATH=build/dev/python .venv/bin/python docs/dev/check_gradients.py [--bin=build/dev/bin] [--list] [FOLDER...]

Every type of floats is f64. A program of bench/real runs at its suite's small sizes; one of KernelBench, whose modules are
not in the tree, at the first of some drawn sizes and constants that it takes. For each input x with a gradient and two random
directions v, (f(x + hv) - f(x - hv))/2h, weighted by random gradients of the outputs, is compared with <grad_x, v>: relative to the
sum of |grad_x| and the difference. A program is right below 1e-6. `--list` prints each program.
"""
import argparse
import collections
import os
import pathlib
import random
import re
import sys
import time
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test/python/grad"), str(ROOT / "bench")]
sys.path.append(str(ROOT / "python"))  # tegula_eval; tegula itself is the build's

import tegula  # noqa: E402
from numeric import NUMPY, Refused, compare, gradient, inputs_of, read, widened  # noqa: E402
from real import suite  # noqa: E402

FOLDERS = ["bench/kernelbench/programs/level1", "bench/kernelbench/programs/level2", "bench/real/programs"]
LIMIT, TRIES = 1e-6, 60
WORD = re.compile(r"[A-Za-z_]\w*")


class NoSizes(Exception):
    """None of the drawn sizes fits the program."""


def number(text):
    try:
        return int(text)
    except ValueError:
        return float(text)


def real_values(path):
    """Arguments of a program of bench/real, and its constants as options."""
    kernel = suite.load()[path.stem]
    case = kernel.case(suite.Data("cpu", seed=1), small=True)
    types = {one.name: one.type for one in tegula.compile(widened(read(path))).parameters}
    values = {}
    for name, tensor in case.tensors.items():
        is_float = types[name] not in NUMPY or types[name] == "f64"
        values[name] = (tensor.double() if is_float else tensor).numpy()
    values.update({name: number(value) for name, value in case.constants.items()})
    return values, [f"-p={name}={value}" for name, value in case.constants.items()]


def constant(draw, one):
    """A value for a constant without a default, likely by its name."""
    if one.type == "bool":
        return draw.random() < 0.5
    if one.type == "float":
        return draw.choice([0.5, 1.0, 1.5])
    choices = {"kernel_size": [3, 2], "stride": [1, 2], "padding": [1, 0], "dilation": [1, 2], "groups": [1, 2],
               "num_groups": [2, 1], "output_padding": [0]}
    found = next((choices[word] for word in choices if word in one.name), [1, 2, 0])
    value = draw.choice(found)
    return tuple(value for _ in range(int(one.dims[0]))) if one.dims else value


def option(value):
    """A constant as the command line takes it."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def draws(path):
    """Arguments of a program at sizes that it takes, with options for its constants, time and again."""
    text = widened(read(path))
    kernel = tegula.compile(text)
    inputs = [one for one in kernel.parameters if one.role in ("in", "inout")]
    constants = [one for one in kernel.parameters if one.role == "constant"]
    names = {word for one in inputs for dim in one.dims for word in WORD.findall(dim)}
    names -= {one.name for one in constants} | {"maximum", "minimum", "where"}
    for attempt in range(TRIES):
        draw = random.Random(attempt)
        sizes = {name: draw.choice([4, 6, 8, 5, 7, 3, 9]) for name in sorted(names)}
        for name in sizes:
            if name[0] == "K" or name in ("R", "S"):
                sizes[name] = draw.choice([3, 1, 2, sizes[name]])
            if name in ("N", "B"):
                sizes[name] = 2 if attempt < TRIES//2 else draw.choice([2, 6])
        sizes["..."] = (2, 3)
        # A default such as 64 groups asks for more than small sizes.
        given = {one.name: constant(draw, one) for one in constants
                 if one.default is None or (attempt >= TRIES//2 and one.type == "int" and int(one.default) > 9)}
        try:
            values = inputs_of(kernel, {**sizes, **given}, {}, seed=100 + attempt)  # not what directions are drawn from
            kernel(**{name: values[name] for name in values if name in {one.name for one in kernel.parameters}})
        except (tegula.Error, KeyError, NameError, SyntaxError, ZeroDivisionError, ValueError, TypeError):
            continue
        yield values, [f"-p={name}={option(value)}" for name, value in given.items()]


def check(command, path):
    """The largest relative difference. Raises Refused where there is no gradient, NoSizes."""
    text = widened(read(path))
    gradient(command, text)  # refused before anything is drawn
    for values, options in [real_values(path)] if "real" in path.parts else draws(path):
        written = gradient(command, text, *options)
        try:
            return compare(text, written, values)
        except tegula.LaunchError:
            if "real" in path.parts:
                raise
            continue  # sizes at which an extreme is over nothing, which has no gradient
        except AssertionError as error:
            if "not finite" not in str(error):
                raise
            # Logarithms and roots take numbers above 0.
            positive = {name: 0.3*abs(one) + 0.2 if getattr(one, "dtype", None) == float else one for name, one in values.items()}
            return compare(text, written, positive)
    raise NoSizes


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--bin", default=ROOT / "build/dev/bin", type=pathlib.Path)
    options.add_argument("--list", action="store_true")
    options.add_argument("folders", nargs="*", default=FOLDERS)
    options = options.parse_args()
    warnings.simplefilter("ignore")
    os.environ.setdefault("TEGULA_NUM_THREADS", "1")
    command, wrong = str(options.bin / "tegula"), 0
    print("| programs | have a gradient | right | largest difference | no sizes found | wrong |\n|---|---|---|---|---|---|")
    for folder in options.folders:
        found, reasons, start = {}, collections.Counter(), time.time()
        programs = sorted((ROOT / folder).rglob("*.tgl"))
        for path in programs:
            try:
                found[path.stem] = check(command, path)
            except Refused:
                continue
            except NoSizes:
                reasons["sizes"] += 1
                found[path.stem] = None
            except Exception as error:  # noqa: BLE001: told, and counted as wrong
                found[path.stem] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            if options.list:
                print(f"  {path.stem}: {found[path.stem]}", file=sys.stderr, flush=True)
        numbers = {name: one for name, one in found.items() if isinstance(one, float)}
        right = {name: one for name, one in numbers.items() if one < LIMIT}
        bad = [name for name, one in found.items() if name not in right and one is not None]
        wrong += len(bad)
        print(f"| {folder} | {len(found)} of {len(programs)} | {len(right)} | {max(right.values(), default=0):.1e} | "
              f"{reasons['sizes']} | {', '.join(bad) or 'none'} |", flush=True)
        print(f"{folder}: {time.time() - start:.0f} s", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
