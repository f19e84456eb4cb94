#!/usr/bin/env python3
"""What a call from Python costs: small kernels on the CPU, beside the clock around 10,000 calls.

  PYTHONPATH=build/dev/python bench/python_call_overhead.py [--rounds=21]

Prints the median and the least of the rounds in microseconds a call, and torch's own addition for comparison.
"""
import argparse
import statistics
import time

import numpy as np
import torch

import tegula

PROGRAM = """
kernel add(x: f32[N], z: f32[N]) -> (y: f32[N]) { y[i] = x[i] + z[i] }
kernel general(x: T[..., N], z: T[..., N], s: f32, pad: int = 1) -> (y: T[..., N]) {
  y[..., i] = s * x[..., i] + pad * z[..., i]
}
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds
    add, general = tegula.compile(PROGRAM, "add"), tegula.compile(PROGRAM, "general")
    x, z, y = torch.ones(16), torch.ones(16), torch.empty(16)
    square = torch.ones(4, 4)
    a, b = np.ones(16, "f4"), np.ones(16, "f4")
    cases = {
        "torch.add(x, z)": lambda: torch.add(x, z),
        "add(x, z)": lambda: add(x, z),
        "add(x, z, out=y)": lambda: add(x, z, out=y),
        "general(x, z, s=2.0, pad=3), T and ... inferred": lambda: general(square, square, s=2.0, pad=3),
        "add of numpy arrays": lambda: add(a, b),
    }
    calls = 10_000
    for name, call in cases.items():
        call()
        times = []
        for _ in range(rounds):
            begin = time.perf_counter()
            for _ in range(calls):
                call()
            times.append((time.perf_counter() - begin) / calls * 1e6)
        print(f"{name:50} {statistics.median(times):7.2f} us (least {min(times):.2f})")


if __name__ == "__main__":
    main()
