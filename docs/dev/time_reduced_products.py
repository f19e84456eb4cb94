#!/usr/bin/env python3
"""Times products whose columns are reduced at once beside PyTorch's product and reduction.

    TEGULA_LIBRARY=build/release/lib/libtegula.so python3 docs/dev/time_reduced_products.py [--device=cuda|cpu]

Prints a row for each: microseconds (medians of calls in turns, bench/real/timing.py), the rate of the product, and the norm of the
difference from PyTorch's result in relation to that result's norm. On a CPU sizes are small and nothing is timed. Exit code 1 where a
result is wrong.
"""
import argparse
import pathlib
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "python")]

from real import timing  # noqa: E402
from tegula_eval.program import runner  # noqa: E402

REDUCTIONS = {"max": lambda z: z.amax(1).float(), "logsumexp": lambda z: z.float().logsumexp(1)}
SHAPES = {"cuda": [(8192, 8192, 4096), (4096, 32768, 4096), (8192, 65536, 256), (16384, 16384, 128)], "cpu": [(33, 70, 40)]}
LARGEST_ERROR = 1e-2  # PyTorch rounds the product to bf16


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    device = options.parse_args().device
    clock = timing.Clock() if device == "cuda" else None
    print("| reduction | M, K, D | tegula, us | torch, us | TFLOP/s | error |\n|---|---|---|---|---|---|")
    good = True
    for rows, columns, depth in SHAPES[device]:
        x, c = (torch.randn(count, depth, device=device).bfloat16()/depth**0.25 for count in (rows, columns))
        for name, reduce in REDUCTIONS.items():
            text = (f"kernel reduced(x: bf16[M, D], c: bf16[K, D]) -> (a: f32[M]) "
                    f"{{ a[i] = {name}(sum(x[i, d]*c[k, d] for d) for k) }}")
            launch = runner.Program(text).compile({}, target=device).prepare({"x": x, "c": c})
            launch()
            launch.wait()
            [found], wanted = launch.outputs.values(), reduce(x @ c.T)
            error = float((found - wanted).norm()/wanted.norm())
            good &= error < LARGEST_ERROR
            told = ["-"]*3
            if clock:
                times = clock.medians({"tegula": launch, "torch": lambda: reduce(x @ c.T)}, 0.3)
                told = [f"{times['tegula']:.0f}", f"{times['torch']:.0f}", f"{2e-6*rows*columns*depth/times['tegula']:.0f}"]
            print(f"| {name} | {rows}, {columns}, {depth} | {' | '.join(told)} | {error:.1e} |", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
