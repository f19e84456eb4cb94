#!/usr/bin/env python3
"""Times products whose columns are reduced at once beside PyTorch's product, and its product and reduction.

    TEGULA_LIBRARY=build/release/lib/libtegula.so python3 docs/dev/time_reduced_products.py [--device=cuda|cpu]

Prints a row for each: microseconds (medians of calls in turns, bench/real/timing.py), the rate of the product, and the error: of
values the norm of the difference from PyTorch's in relation to that result's norm, of places the largest score that is missed,
in relation to the largest score. On a CPU sizes are small and nothing is timed. Exit code 1 where a result is wrong.
"""
import argparse
import pathlib
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "python")]

from real import timing  # noqa: E402
from tegula_eval.program import runner  # noqa: E402

PRODUCT = "s[i, k] = sum(x[i, d]*c[k, d] for d)"
# What the kernel writes, and the same of PyTorch's product.
REDUCTIONS = {
    "max": ("best[i] = max(s[i, k] for k)", lambda z: z.amax(1)),
    "logsumexp": ("best[i] = logsumexp(s[i, k] for k)", lambda z: z.float().logsumexp(1)),
    "argmax": ("place[i] = argmax(s[i, k] for k)", lambda z: z.argmax(1)),
    "max and argmax": ("best[i] = max(s[i, k] for k)\n  place[i] = argmax(s[i, k] for k)", lambda z: z.max(1)),
}
TYPES = {"best": "f32[M]", "place": "i64[M]"}
SHAPES = {"cuda": [(8192, 8192, 4096), (8192, 32768, 4096), (8192, 128256, 4096), (8192, 65536, 256), (16384, 16384, 128),
                   (65536, 16384, 64), (4096, 262144, 128)],
          "cpu": [(33, 70, 40)]}
LARGEST_ERROR = 1e-2  # PyTorch rounds the product to bf16


def program(statements):
    outputs = ", ".join(f"{name}: {type}" for name, type in TYPES.items() if f"{name}[i]" in statements)
    return f"kernel reduced(x: bf16[M, D], c: bf16[K, D]) -> ({outputs}) {{\n  {PRODUCT}\n  {statements}\n}}"


def error_of(outputs, x, c, reduce):
    """Of the results, row blocks at a time: a product of many columns has no room in f32."""
    worst = 0.0
    for first in range(0, len(x), 512):
        rows = slice(first, first + 512)
        scores = (x[rows] @ c.T).float()
        largest = scores.amax(1)
        if "best" in outputs:
            wanted = reduce(scores)
            wanted = wanted if torch.is_tensor(wanted) else wanted.values
            worst = max(worst, float((outputs["best"][rows] - wanted).norm()/wanted.norm()))
        if "place" in outputs:
            taken = scores.gather(1, outputs["place"][rows, None])[:, 0]
            worst = max(worst, float((largest - taken).max()/largest.max()))
    return worst


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    device = options.parse_args().device
    clock = timing.Clock() if device == "cuda" else None
    print("| reduction | M, K, D | tegula, us | torch, us | its product, us | TFLOP/s | error |\n|---|---|---|---|---|---|---|")
    good = True
    for rows, columns, depth in SHAPES[device]:
        x, c = (torch.randn(count, depth, device=device).bfloat16()/depth**0.25 for count in (rows, columns))
        for name, (statements, reduce) in REDUCTIONS.items():
            launch = runner.Program(program(statements)).compile({}, target=device).prepare({"x": x, "c": c})
            launch()
            launch.wait()
            error = error_of(launch.outputs, x, c, reduce)
            good &= error < LARGEST_ERROR
            told = ["-"]*4
            if clock:
                times = clock.medians({"tegula": launch, "torch": lambda: reduce(x @ c.T), "product": lambda: x @ c.T}, 0.3)
                told = [f"{times[of]:.0f}" for of in ("tegula", "torch", "product")]
                told.append(f"{2e-6*rows*columns*depth/times['tegula']:.0f}")
            print(f"| {name} | {rows}, {columns}, {depth} | {' | '.join(told)} | {error:.1e} |", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
