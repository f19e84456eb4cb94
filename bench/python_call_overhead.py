#!/usr/bin/env python3
"""What a call from Python costs: thousands of calls of kernels that have next to nothing to do.

  PYTHONPATH=build/dev/python bench/python_call_overhead.py [--rounds=21] [--device=cpu|cuda]

Prints the median and the least of the rounds in microseconds a call, and torch's own addition for comparison.
On a CUDA device calls are queued, and the clock stops when all have been.
"""
import argparse
import pathlib
import statistics
import tempfile
import time

import numpy as np
import torch

import tegula

PROGRAM = """
kernel add(x: f32[N], z: f32[N]) -> (y: f32[N]) { y[i] = x[i] + z[i] }
kernel many(a: f32[B, H, W, C], b: f32[C], c: f32[C], d: f32[C], e: f32[C], eps: f32) -> (y: f32[B, H, W, C]) {
  y[n, h, w, k] = (a[n, h, w, k] - b[k]) * rsqrt(c[k] + eps) * d[k] + e[k]
}
kernel general(x: T[..., N], z: T[..., N], s: f32, pad: int = 1) -> (y: T[..., N]) {
  y[..., i] = s * x[..., i] + pad * z[..., i]
}
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    device = args.device
    add, general = tegula.compile(PROGRAM, "add"), tegula.compile(PROGRAM, "general")
    x, z, y = (torch.ones(16, device=device) for _ in range(3))
    square = torch.ones(4, 4, device=device)
    a, b = np.ones(16, "f4"), np.ones(16, "f4")
    cases = {
        "torch.add(x, z)": lambda: torch.add(x, z),
        "add(x, z)": lambda: add(x, z),
        "add(x, z, out=y)": lambda: add(x, z, out=y),
        "general(x, z, s=2.0, pad=3), T and ... inferred": lambda: general(square, square, s=2.0, pad=3),
    }
    if args.device == "cpu":
        cases["add of numpy arrays"] = lambda: add(a, b)
    many = tegula.compile(PROGRAM, "many")
    image, channels = torch.ones(1, 2, 2, 4, device=device), [torch.ones(4, device=device) for _ in range(4)]
    cases["many(a, b, c, d, e, 1e-5): 5 tensors, 4 dims"] = lambda: many(image, *channels, 1e-5)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "add.tgl"
        path.write_text(PROGRAM)
        op = tegula.library(path, "tegula_bench::add", kernel="add")
    cases["torch.ops.tegula_bench.add(x, z)"] = lambda: op(x, z)
    for name, call in cases.items():
        show(name, call, args)
    # Under a default device every use of a tensor passes through a function in Python, but not ours.
    torch.set_default_device(device)
    show("add(x, z) under torch.set_default_device", cases["add(x, z)"], args)


def show(name, call, args):
    # The queue of a device holds some thousand launches: it must not be full while the clock runs.
    calls = 10_000 if args.device == "cpu" else 500
    call()
    times = []
    for _ in range(args.rounds):
        if args.device == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - begin) / calls * 1e6)
    print(f"{name:50} {statistics.median(times):7.2f} us (least {min(times):.2f})")


if __name__ == "__main__":
    main()
