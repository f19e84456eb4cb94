#!/usr/bin/env python3
"""Measures the figures of docs/results/compile-times.md and cpu.md on this machine and writes them into these pages.

    bench/figures.py [--bin=build/release/bin] [--threads=2] [--seconds=0.5] [--only=compile,kernels,library,eager] [--through=COMMAND] [--print]

Needs a release build (cmake --preset release && ninja -C build/release) on a quiet machine: the pages' tables are
replaced, between `<!-- NAME -->` and `<!-- end -->`; --print shows them instead. What is measured:

compile   wall time of whole processes, the median of 30 (of 10 from 100 ms on): `tegula check`, source to running
          CPU code (`tegula run` on a handful of elements), source to PTX (`tegula compile --target=sm_90a --emit=ptx`),
          and, where ptxas is found, to a cubin that is not in the cache
kernels   `tegula bench` on dsl/kernels: kernel and libtorch's eager mode in turns in one process, medians, ratio
library   the same on test/e2e/std, each kernel of the standard library at the sizes of its reference's `# bench:`
eager     bench/check_eager_overhead.py with its 5 %
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = [ROOT / "docs" / "results" / name for name in ("compile-times.md", "cpu.md")]


def milliseconds(command):
    """Median wall time of a process."""
    times = []
    uncached = dict(os.environ, TEGULA_CACHE_DIR="")
    while len(times) < (30 if not times or times[0] < 100 else 10):
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=uncached)
        times.append((time.perf_counter() - start) * 1e3)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stderr}")
    return statistics.median(times)


def compile_table(options):
    tegula = options.bin / "tegula"
    to_ptx = lambda program: [tegula, "compile", program, "--target=sm_90a", "--emit=ptx", "-o", "/dev/null"]
    to_cubin = lambda program: [tegula, "compile", program, "--target=sm_90a", "--emit=cubin", "-o", "/dev/null"]
    has_ptxas = os.environ.get("TEGULA_PTXAS") or shutil.which("ptxas")
    programs = [
        ("dsl/kernels/softmax/softmax.tgl", "M=2,N=8"),
        ("dsl/kernels/norm/layer_norm.tgl", "M=2,N=8"),
        ("dsl/kernels/linear/matmul.tgl", "M=2,K=8,N=8"),
        ("dsl/kernels/linear/linear_gelu.tgl", "M=2,K=8,N=8"),
        ("dsl/kernels/conv/conv2d_relu.tgl", "N=1,C=2,H=5,W=5,O=2,KH=3,KW=3"),
        ("dsl/kernels/attention/causal_attention.tgl", "B=1,H=1,S=8,D=8"),
        ("bench/programs/block.tgl", "B=1,S=8,C=32,F=32"),
    ]
    lines = ["| program | lines | check | to running CPU code | to PTX | to cubin |", "|---|---|---|---|---|---|"]
    for program, sizes in programs:
        lines.append(f"| {program} | {len((ROOT / program).read_text().splitlines())} "
                     f"| {milliseconds([tegula, 'check', program]):.0f} ms "
                     f"| {milliseconds([tegula, 'run', program, '-d', sizes]):.0f} ms "
                     f"| {milliseconds(to_ptx(program)):.0f} ms "
                     + (f"| {milliseconds(to_cubin(program)):.0f} ms |" if has_ptxas else "| |"))
    return "\n".join(lines)


def bench_table(options, files):
    cases = []
    for file in files:
        done = subprocess.run(options.through.split() + [options.bin / "tegula", "bench", "--json",
                              f"--threads={options.threads}", f"--seconds={options.seconds}", file],
                              capture_output=True, text=True, cwd=ROOT)
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        wrong = [event for event in events if event.get("event") == "case" and not event.get("passed")]
        if done.returncode or wrong:
            sys.exit(f"{file}: exit code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        cases += [event for event in events if event.get("event") == "case" and event.get("timed")]
    cases.sort(key=lambda case: -case["speedup"])
    lines = ["| kernel | sizes | ms | GB/s | GFLOP/s | libtorch ms | ratio |", "|---|---|---|---|---|---|---|"]
    for case in cases:
        rate = lambda name: f"{case[name]:.1f}" if case.get(name) else ""
        lines.append(f"| {case['kernel']} | {case['case']} | {case['time']['median'] * 1e3:.3g} "
                     f"| {rate('gigabytesPerSecond')} | {rate('gigaflopsPerSecond')} "
                     f"| {case['libtorchTime']['median'] * 1e3:.3g} | {case['speedup']:.2f} |")
    ratios = [case["speedup"] for case in cases]
    return "\n".join(lines) + (f"\n\n{len(ratios)} cases: geometric mean {statistics.geometric_mean(ratios):.2f}, least "
                               f"{min(ratios):.2f}, below 1: {sum(ratio < 1 for ratio in ratios)}.")


def eager_table(options):
    library = options.bin.parent / "lib" / "libtegula_torch.so"
    done = subprocess.run(options.through.split() + [ROOT / "bench" / "check_eager_overhead.py", library,
                           f"--python={ROOT / '.venv' / 'bin' / 'python'}"], capture_output=True, text=True)
    return f"```\n{(done.stdout + done.stderr).strip()}\n```\n\nExit code {done.returncode} (0: within 5 %)."


def machine():
    said = [word for word in sys.argv[1:] if not word.startswith("--through")]
    model = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT).stdout.strip()
    return (f"{model[1] if model else platform.machine()}, {os.cpu_count()} threads, {datetime.date.today()}, "
            f"commit {commit}; `bench/figures.py {' '.join(said)}`.").replace(" `", " `")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", default=ROOT / "build/release/bin", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.5, help="time for each side of a case")
    parser.add_argument("--only", default="compile,kernels,library,eager")
    parser.add_argument("--through", default="",
                        help="a command that runs another, on a quiet machine: each file is measured through it")
    parser.add_argument("--print", action="store_true", help="write nothing")
    options = parser.parse_args()
    options.bin = options.bin.resolve()
    measure = {
        "compile": lambda: compile_table(options),
        "kernels": lambda: bench_table(options, sorted((ROOT / "dsl/kernels").glob("*/*.tgl"))),
        "library": lambda: bench_table(options, sorted((ROOT / "test/e2e/std").glob("*.tgl"))),
        "eager": lambda: eager_table(options),
    }
    for name in options.only.split(","):
        text = f"{machine()}\n\n{measure[name]()}"
        if options.print:
            print(f"## {name}\n{text}\n")
            continue
        place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.S)
        page = next((page for page in PAGES if place.search(page.read_text())), None)
        if not page:
            sys.exit(f"no page has a place for '{name}'")
        page.write_text(place.sub(lambda found: f"{found[1]}{text}\n{found[2]}", page.read_text(), count=1))


if __name__ == "__main__":
    main()
