"""Holds the compiler's expected times against measured ones, of the kernels of bench/real at their full sizes.

    python3 bench/real/expected.py --times=docs/results/real.md --machine=h100 [--tegula=build/release/bin/tegula] [--only=...]
    python3 bench/real/expected.py --times=real.jsonl,more.jsonl --machine=h200

--times takes tables of `bench/real` (pages) and rows (what `--json` wrote). No device is needed: the compiler is asked, not run.
Prints a line for each kernel, the worst estimate first, and which share of them is within 25 % and within a factor of 2, of all
and of each half (every other name). Exit code 4 where that is below --within25 or --within2, shares of 0 to 1. --parts adds a line
for each launch with what the model expects its parts to take.

--conflicts asks for the launches again with each strategy that the compiler has chosen left out, and prints where the model
expects the kernel to be faster without it, by the factor --margin or more: there either the model errs or the order of
strategies does.
"""
import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "python")]

import torch  # noqa: E402
from real import suite, table  # noqa: E402


PARTS = ("start", "memory", "cache", "lanes", "tensor", "chain", "atomics", "sort")


class Shapes(suite.Data):
    """Tensors that have shapes alone, where nothing else is asked of them: integers are there, as some decide sizes."""

    def __init__(self):
        super().__init__("cpu", seed=1)

    def normal(self, *shape, dtype=suite.bf16, scale=1.0):
        return torch.empty(*shape, dtype=dtype, device="meta")

    def uniform(self, *shape, low=0.0, high=1.0, dtype=suite.f32):
        return torch.empty(*shape, dtype=dtype, device="meta")


class NoNumbers(Shapes):
    """The same without integers either, which takes no time."""

    def __init__(self):
        self.device = "meta"

    def integers(self, low, high, *shape, dtype=torch.int32):
        return torch.empty(*shape, dtype=dtype, device="meta")

    def permutation(self, count, dtype=torch.int32):
        return torch.empty(count, dtype=dtype, device="meta")

    def distinct(self, high, *shape, dtype=torch.int32):
        return torch.empty(*shape, dtype=dtype, device="meta")

    def range(self, *bounds, dtype=torch.int64):
        return torch.arange(*bounds, device="meta", dtype=dtype)


def case_of(kernel):
    try:
        with torch.device("meta"):
            return kernel.case(NoNumbers(), small=False)
    except (RuntimeError, NotImplementedError):
        return kernel.case(Shapes(), small=False)


def dims_of(text, case):
    """The sizes that dims of the tensors name, as `-d` takes them."""
    text = re.sub(r"#.*", "", text)
    head = list(re.finditer(r"kernel\s+\w+\s*\((.*?)\)\s*(->|where|\{)", text, re.S))[-1][1]
    found = {}
    for name, dims in re.findall(r"(\w+)\s*:\s*(?:inout\s+)?\w+\s*\[([^\]]*)\]", head):
        if name in case.tensors:
            for dim, size in zip(dims.split(","), case.tensors[name].shape):
                if parts := re.fullmatch(r"\s*(?:(\d+)\s*\*\s*)?([A-Za-z_]\w*)\s*", dim):  # N, 2*N
                    found.setdefault(parts[2], size//int(parts[1] or 1))
    return found


def measured(paths):
    """Microseconds by kernel."""
    found = {}
    for path in paths:
        for line in open(path):
            if line.startswith("{"):
                row = json.loads(line)
                if row.get("right") and "times" in row:
                    found[row["case"]] = row["times"]["tegula"]
                continue
            if cells := table.cells_of(line):
                found[cells[1].removesuffix(", wrong")] = float(cells[3].replace(",", ""))
    return found


def ask(kernel, options, without=None):
    """What `tegula compile --why=json` says of the launches, a strategy left out; raises RuntimeError with its message where it
    does not."""
    case = case_of(kernel)
    sizes = dims_of(kernel.file.read_text(), case)
    command = [options.tegula, "compile", str(kernel.file), "--target=sm_90a", f"--machine={options.machine}", "--why=json"]
    if without:
        command += [f"--disable={without}"]
    if sizes:
        command += ["-d", ",".join(f"{name}={size}" for name, size in sizes.items())]
    for name, value in case.constants.items():
        command += ["-p", f"{name}={value}"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[:300])
    return json.loads(done.stdout)


def distribution(ratios):
    """Shares of the kernels that are within 25 % and within a factor of 2."""
    return tuple(sum(abs(math.log(ratio)) <= math.log(most) for ratio in ratios)/len(ratios) for most in (1.25, 2))


def expected_of(launches):
    """Microseconds; None where a launch has no expected time."""
    if not launches or any("expectedMicroseconds" not in one for one in launches):
        return None
    return sum(one["expectedMicroseconds"] for one in launches)


def conflicts(names, kernels, options):
    """Rows of a table: kernels that the model expects to be faster without a strategy that was chosen."""
    rows = []
    for name in names:
        launches = ask(kernels[name], options)
        chosen = expected_of(launches)
        for strategy in sorted({one["strategy"] for one in launches} - {"general"}):
            try:
                others = ask(kernels[name], options, strategy)
            except RuntimeError:
                continue  # nothing else computes it
            other = expected_of(others)
            if chosen and other and other*options.margin < chosen:
                names_of = ", ".join(sorted({one["strategy"] for one in others}))
                rows.append((chosen/other, f"| {name} | {strategy} | {chosen:,.1f} | {names_of} | {other:,.1f} |"))
    return [row for _, row in sorted(rows, reverse=True)]


def parts_of(launches):
    """A line of a table for each launch."""
    for one in launches:
        parts = one["expectedParts"]
        yield f"| | {one['name']}, {one['strategy']} | {one['expectedMicroseconds']:,.1f} | " + " | ".join(
            f"{parts[part]:,.1f}" for part in PARTS) + " |"


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", required=True)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--tegula", type=os.path.abspath, default=str(ROOT / "build/release/bin/tegula"))
    parser.add_argument("--only", default="")
    parser.add_argument("--within25", type=float, default=0)
    parser.add_argument("--within2", type=float, default=0)
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--conflicts", action="store_true")
    parser.add_argument("--margin", type=float, default=1.1)
    options = parser.parse_args(given)
    times, kernels = measured(options.times.split(",")), suite.load()
    names = [name for name in options.only.split(",") if name] or sorted(times.keys() & kernels.keys())
    if missing := [name for name in names if name not in times or name not in kernels]:
        parser.error(f"no time, or no kernel: {', '.join(missing)}")
    if not names:
        parser.error(f"{options.times} has no times of kernels of bench/real")
    if options.conflicts:
        print("| kernel | without | expected with it | then | expected |\n|---|---|---|---|---|")
        print("\n".join(conflicts(names, kernels, options)))
        return 0
    rows, failed = [], []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, future in [(name, pool.submit(ask, kernels[name], options)) for name in names]:
            try:
                launches = future.result()
            except RuntimeError as error:
                failed.append(f"{name}: {error}")
                continue
            if (expected := expected_of(launches)) is None:
                failed.append(f"{name}: a launch has no expected time")
                continue
            longest = max(launches, key=lambda one: one["expectedMicroseconds"])
            rows.append((expected/times[name], name, times[name], expected, launches, longest))
    print("| kernel | measured | expected | expected / measured | launches | longest by | most of it |\n|---|---|---|---|---|---|---|")
    for ratio, name, taken, expected, launches, longest in sorted(rows, key=lambda row: -abs(math.log(row[0]))):
        guess = " (data decide)" if any(one["isEstimate"] for one in launches) else ""
        print(f"| {name} | {taken:,.1f} | {expected:,.1f}{guess} | {ratio:.2f} | {len(launches)} | {longest['strategy']} | "
              f"{longest['mostBy']} |")
    if options.parts:
        print(f"\n| kernel | launch | expected | {' | '.join(PARTS)} |\n|---|---|---|{'---|'*len(PARTS)}")
        for ratio, name, taken, expected, launches, _ in sorted(rows, key=lambda row: -abs(math.log(row[0]))):
            print(f"| {name} | {ratio:.2f} of {taken:,.1f} | {expected:,.1f} |{' |'*len(PARTS)}", *parts_of(launches), sep="\n")
    near, twice = distribution([row[0] for row in rows]) if rows else (0, 0)
    print(f"\n{len(rows)} kernels on {options.machine}: {near:.0%} within 25 %, {twice:.0%} within a factor of 2")
    for number, half in enumerate((rows[::2], rows[1::2]), 1):
        if half:
            print("half {}: {} kernels, {:.0%} within 25 %, {:.0%} within a factor of 2".format(
                number, len(half), *distribution([row[0] for row in half])))
    print("\n".join(failed))
    return 4 if near < options.within25 or twice < options.within2 or failed else 0


if __name__ == "__main__":
    sys.exit(main())
