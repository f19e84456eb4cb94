#!/usr/bin/env python3
"""Counts PTX instructions for each weight in the main loops of products of few rows, for docs/design/tile-dialect.md.

    docs/dev/skinny_instructions.py build/dev/bin/tegula

Instructions from the loop's label to the branch back, those for what data puts outside among them.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ["w4a16_linear", "w4a16_gptq", "w8a16_linear", "nf4_linear", "mxfp4_linear", "w4a16_many_rows"]


def told(tegula, program, sizes, emit):
    command = [tegula, "compile", program, f"--emit={emit}", "--target=sm_90a", "-d", sizes]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def loop_of(ptx):
    """Instructions of the last loop with products."""
    lines = re.search(r"entry \w*_tiles\(.*?\n\}", ptx, re.DOTALL).group().splitlines()
    labels, best = {}, []
    for number, line in enumerate(lines):
        if label := re.match(r"(\$\w+):", line):
            labels[label.group(1)] = number
        branch = re.search(r"bra(?:\.uni)?\s+(\$\w+);", line)
        if branch and branch.group(1) in labels:
            body = lines[labels[branch.group(1)] : number + 1]
            if any("mma.sync" in each for each in body):
                best = [each for each in body if re.match(r"\s+(@!?%|[a-z])", each)]
    return best


def main(tegula):
    for name in PROGRAMS:
        sizes = "M=16,N=4096,K=4096" + (",G=32" if name == "w4a16_gptq" else "")
        program = ROOT / "bench" / "real" / "programs" / f"{name}.tgl"
        shape = re.findall(r"skinny_tile = array<i64: (\d+), (\d+), (\d+)>", told(tegula, program, sizes, "scheduled"))
        columns, _, vector = map(int, shape[-1])
        weights = columns // 8 * vector  # of a thread in a turn
        count = len(loop_of(told(tegula, program, sizes, "ptx")))
        print(f"| {name} | {count / weights:.1f} |")


if __name__ == "__main__":
    main(sys.argv[1])
