#!/usr/bin/env python3
"""Programs with references at types and sizes that their cases do not have: variants.py TEGULA PROGRAM.tgl...

Of each case's sizes each in turn becomes 0; where a kernel says f32, f64, f16 and bf16 are tried at the sizes of
its cases. What PyTorch refuses is left out, and counted; a program that PyTorch runs must run, with its results.
"""

import os
import re
import subprocess
import sys
import tempfile

TYPES = ["f64", "f16", "bf16"]

# What PyTorch does that is not taken over: a part of the message, the kernels, why.
DIFFERS = [
    ("the reference fails", "", "PyTorch refuses the sizes, or has no such kernel for the type"),
    ("ended by signal 8", "^(t_)?lstm|attention$|^sliding_window$", "PyTorch divides by the number of heads or of hidden units"),
    (r"result has shape \[.*\], the reference's", "", "PyTorch drops the channels of a convolution that sums over none"),
    ("are none", "", "the case draws indices below a size that is 0"),
    ("which is empty", "", "every subscript leaves a dim without elements"),
    ("is not a multiple of", "", "a guard: heads in groups of 0"),
    ("is negative", "", "a guard: a window larger than its image"),
    ("over nothing has no value", "", "a guard: argmax of nothing"),
    (r"this needs .*groups > 0 \(", "", "PyTorch refuses groups=0"),
    (r"this needs ([A-Z]+ > 0( and )?)+ \(", "conv|pool|^upsample$|^depthwise_", "PyTorch refuses empty images, filters and results"),
    (r"(is outside: a subscript is|leaves 'src')", "^t_(index_add|index_copy|scatter)", "PyTorch refuses an index into a dim without elements"),
    (r"this needs N > 0 \(", "^t_(median|quantile)$", "PyTorch refuses rows without elements"),
]
# Kernels whose results are others by their text: the name, a part of the case, why.
OTHERWISE = [
    ("attention", "E=0", "the scale of heads without elements is inf"),
    ("online_attention", "S2=0", "it divides by a sum over no keys"),
    ("sliding_window", "W=0", "PyTorch gives 0 for rows that are masked throughout"),
    ("t_nearest", "[DHLW]=0", "PyTorch refuses to resize images without elements"),
    ("t_linear1", "L=0", "the same"),
    ("t_bilinear2", "[HW]=0", "the same"),
    ("t_linear1", "T=f64", "PyTorch rounds positions, which here are exact quotients"),
    ("t_digamma", "T=f64", "PyTorch's has hundreds of ulps of error beside poles, this one has one"),
    ("rope", "T=f64", "its angles are made of integers and f32"),
    ("topk", "T=f16", "the first of equals comes first, PyTorch has no order"),
    ("topk", "T=bf16", "the first of equals comes first, PyTorch has no order"),
]


def with_zeros(case, seen, program):
    """The case with each of its sizes 0 in turn, for those that are not in `seen`; constants stay."""
    for size in re.finditer(r"\b([A-Z]\w*)=(\d+)", case):
        if size.group(1) not in seen and not re.search(rf"\b{size.group(1)}: int", program):
            seen.add(size.group(1))
            yield case[: size.start(2)] + "0" + case[size.end(2) :]
    for run in re.finditer(r"\.\.\.=\(([\d, ]+)\)", case):
        dims = re.findall(r"\d+", run.group(1))
        for k in range(len(dims)):
            if (len(dims), k) not in seen:
                seen.add((len(dims), k))
                zeros = ", ".join(["0" if k == n else dim for n, dim in enumerate(dims)]) + ","
                yield case[: run.start(1)] + zeros + case[run.end(1) :]


def with_types(case, seen, _):
    """The case in each type."""
    plain = re.sub(r", T=\w+", "", case)
    if plain not in seen:
        seen.add(plain)
        for element in TYPES:
            yield f"{plain}, T={element}" if "=" in plain else f"{plain} T={element}"


def vary(reference, change, program):
    """The text of a program's reference whose cases are those that `change` makes of them."""
    functions = []
    for function in re.split(r"\n\n+", reference.strip()):
        lines = function.split("\n")
        cases = [line for line in lines if line.startswith("# check:")]
        rest = [line for line in lines if not line.startswith(("# check:", "# bench:"))]
        seen = set()
        functions.append("\n".join([new for case in cases for new in change(case, seen, program)] + rest))
    return "\n\n".join(functions) + "\n"


def make_generic(program):
    """The program with T for f32 in kernels that have no other element types; those whose T no parameter binds stay."""
    parts = re.split(r"^(?=(?:#.*\n)*kernel )", program, flags=re.MULTILINE)
    return "".join(generic_of(part) for part in parts)


def generic_of(kernel):
    if re.search(r"\b(f16|bf16|f64|[ui]4|u?i8)\b", kernel):
        return kernel
    generic = re.sub(r"\bf32\b", "T", kernel)
    parameters = generic.partition("->")[0]
    return generic if re.search(r"^kernel .*: (inout )?T\b", parameters, re.MULTILINE | re.DOTALL) else kernel


def is_expected(case, reason):
    kernel = case.split()[0].rpartition(":")[2]
    if any(re.search(part, reason) and re.search(kernels, kernel) for part, kernels, _ in DIFFERS):
        return True
    return any(name in case and re.search(rf"\b{part}\b", case) for name, part, _ in OTHERWISE)


def run(tegula, name, program, reference, totals, failures):
    if not re.search(r"^# check:", reference, re.MULTILINE):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name + ".tgl")
        with open(path, "w") as file:
            file.write(program)
        with open(os.path.join(folder, name + ".ref.py"), "w") as file:
            file.write(reference)
        result = subprocess.run([tegula, "bench", "--check", "--threads=2", path], capture_output=True, text=True)
    counts = re.search(r"^(\d+) passed, (\d+) failed$", result.stdout, re.MULTILINE)
    if not counts or result.returncode not in (0, 4):
        failures.append(f"{name}: exit code {result.returncode}\n{result.stdout[-500:]}{result.stderr[-500:]}")
        return
    totals["passed"] += int(counts.group(1))
    for failure in re.findall(r"^FAIL +(.*)\n +(.*)", result.stdout, re.MULTILINE):
        if is_expected(*failure):
            totals["refused"] += 1
        else:
            failures.append(": ".join(failure))


def main():
    tegula, programs = sys.argv[1], sys.argv[2:]
    totals, failures = {"passed": 0, "refused": 0}, []
    for path in programs:
        with open(path) as file:
            program = file.read()
        with open(path.replace(".tgl", ".ref.py")) as file:
            reference = file.read()
        name = os.path.basename(path)[:-4]
        run(tegula, name, program, vary(reference, with_zeros, program), totals, failures)
        generic = make_generic(program)
        if re.search(r"\bT\[|: T\b", generic):
            typed = "\n\n".join(function for function in vary(reference, with_types, program).split("\n\n")
                                if is_generic(generic, function))
            run(tegula, name, generic, typed, totals, failures)
    print("\n".join(failures))
    print(f"{totals['passed']} variants agree, {totals['refused']} are not PyTorch's, {len(failures)} are wrong")
    sys.exit(bool(failures))


def is_generic(program, function):
    """Whether the kernel of a reference's function has the type T."""
    name = re.search(r"^def (\w+)", function, re.MULTILINE)
    kernel = name and re.search(rf"^kernel {name.group(1)}\(.*?^}}", program, re.MULTILINE | re.DOTALL)
    return bool(kernel and re.search(r"\bT\b", kernel.group(0)))


if __name__ == "__main__":
    main()
