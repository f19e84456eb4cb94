#!/usr/bin/env python3
"""Library kernels on large and on shifted data: accuracy.py TEGULA PROGRAM.tgl...

Float tensors that a reference draws from a normal distribution, or leaves open, are drawn from normal(0, 1e8)
and normal(1e4, 1), at the sizes of the reference's cases, in f32. Beside the rule of `bench`, which lets errors grow
with the number of terms, a result may be at most TIMES as far from float64 as PyTorch's own f32, or have lost BITS
bits. The last line names the functions that have no such tensor.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

DISTRIBUTIONS = ["normal(0, 100000000)", "normal(10000, 1)"]
TIMES, BITS = 8, 5

# What is not held against PyTorch: the kernel, the distribution, why.
OTHERWISE = [
    ("swiglu", "normal(0, 100000000)", "products beyond the largest f32"),
]


def cases_of(function):
    """The function's cases at its default types, of which f32 is one."""
    cases = [line for line in function.split("\n") if line.startswith("# check:")]
    return [case for case in cases if not re.search(r"\bT\w*=", case)]


def shift(reference, program, distribution, left_out):
    """The reference with inputs drawn from `distribution`; adds functions that have none to `left_out`."""
    functions = []
    for function in re.split(r"\n\n+", reference.strip()):
        name = re.search(r"^def (\w+)\((.*?)\)", function, re.MULTILINE | re.DOTALL)
        if not name or "# exact" in function:
            continue
        kernel = re.search(rf"^kernel {name.group(1)}\((.*?)\)\s*->", program, re.MULTILINE | re.DOTALL)
        floats = re.findall(r"(\w+): (?:f32|[A-Z]\w*)\[", kernel.group(1)) if kernel else []
        given = set(re.findall(r"^# input: (\w+) = (?!normal)", function, re.MULTILINE))
        cases = cases_of(function)
        free = [tensor for tensor in floats if tensor not in given]
        if not cases or not free:
            left_out.add(name.group(1))
            continue
        left_out.discard(name.group(1))
        rest = [line for line in function.split("\n") if not line.startswith(("# check:", "# bench:", "# input:"))
                or re.match(rf"# input: ({'|'.join(given) or '$'}) =", line)]
        inputs = [f"# input: {tensor} = {distribution}" for tensor in free]
        functions.append("\n".join(cases[-2:] + inputs + rest))
    return "\n\n".join(functions) + "\n" if functions else None


def excessive(record):
    """Whether an error is more than PyTorch's, by more than roundings explain."""
    for output in record.get("outputs", []):
        ours, theirs = output["kernel"], output["libtorch"]
        for kind in ("norm", "worst"):
            if isinstance(ours[kind], (int, float)) and ours[kind] > max(TIMES * (theirs[kind] or 0), 2.0 ** (BITS - 24)):
                return f"{output.get('name')}: {kind} {ours[kind]:.1e}, PyTorch's {theirs[kind]:.1e}"
    return None


def run(tegula, name, program, reference, failures):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name + ".tgl")
        with open(path, "w") as file:
            file.write(program)
        with open(os.path.join(folder, name + ".ref.py"), "w") as file:
            file.write(reference)
        result = subprocess.run([tegula, "bench", "--check", "--json", "--threads=2", path], capture_output=True, text=True)
    if result.returncode not in (0, 4):
        failures.append(f"{name}: exit code {result.returncode}\n{result.stdout[-300:]}{result.stderr[-300:]}")
        return 0
    passed = 0
    for line in result.stdout.splitlines():
        record = json.loads(line)
        if record.get("event") != "case":
            continue
        reason = record.get("reason") or excessive(record)
        if record.get("passed") and not reason:
            passed += 1
        else:
            failures.append(f"{name}: {record.get('kernel')} {record.get('case')}: {reason}")
    return passed


def main():
    tegula, programs = sys.argv[1], sys.argv[2:]
    passed, failures, left_out = 0, [], set()
    for path in programs:
        with open(path) as file:
            program = file.read()
        with open(path.replace(".tgl", ".ref.py")) as file:
            reference = file.read()
        for distribution in DISTRIBUTIONS:
            if changed := shift(reference, program, distribution, left_out):
                before = len(failures)
                passed += run(tegula, os.path.basename(path)[:-4], program, changed, failures)
                failures[before:] = [f"{distribution} {failure}" for failure in failures[before:]
                                     if not any(f": {name} " in f"{failure} " and distribution == drawn
                                                for name, drawn, _ in OTHERWISE)]
    print("\n".join(failures))
    print(f"{passed} cases are as near as PyTorch's, {len(failures)} are not")
    print(f"{len(left_out)} functions have no float tensor to draw: {', '.join(sorted(left_out))}")
    sys.exit(bool(failures) or not passed)


if __name__ == "__main__":
    main()
