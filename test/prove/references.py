#!/usr/bin/env python3
"""Holds kernels of dsl/kernels against their references in PyTorch, and wrong ones against the same.

    TEGULA_PYTHON=.venv/bin/python test/prove/references.py BUILD [linear/matmul...]

Constants without a default are those of the reference's first case. Of each reference a wrong twin is made, whose result
is twice as large: it must be told apart.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORDS = {0: "equal", 4: "different", 5: "undecided"}


def constants(kernel, reference):
    """Options for the constants of the last kernel that the reference's first case names."""
    head = kernel[kernel.rindex("kernel ") :].split("->")[0]
    names = re.findall(r"\b(\w+): (?:int|float|bool)(?:\[\d\])?(?![\w\[])", head)
    case = re.search(r"# (?:check|bench):(.*)", reference)
    values = dict(one.strip().split("=") for one in case[1].split(",") if "=" in one) if case else {}
    return [f"-p={name}={values[name]}" for name in names if name in values]


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("build", type=pathlib.Path)
    options.add_argument("kernels", nargs="*")
    given = options.parse_args()
    folder = ROOT / "dsl/kernels"
    names = given.kernels or sorted(str(p.relative_to(folder)).removesuffix(".ref.py") for p in folder.rglob("*.ref.py"))
    failures, equal = 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            kernel, reference = folder / f"{name}.tgl", folder / f"{name}.ref.py"
            text = reference.read_text()
            wrong = pathlib.Path(scratch) / "wrong.py"
            wrong.write_text(re.sub(r"(?m)^(    )return (.*)$", r"\1return 2 * (\2)", text))
            for path, allowed in ((reference, (0, 5)), (wrong, (4, 5))):
                done = subprocess.run([given.build / "bin/tegula", "prove", kernel, f"--against={path}",
                                       *constants(kernel.read_text(), text)], capture_output=True, text=True)
                words = (done.stdout or done.stderr).strip().splitlines() or [""]
                fails = done.returncode not in allowed or (given.kernels and done.returncode == 5)
                failures += fails
                equal += path == reference and done.returncode == 0
                print(f"{'FAILS ' if fails else ''}{name} {path.name}: {words[0][:150]}", flush=True)
    print(f"{equal} of {len(names)} equal")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
