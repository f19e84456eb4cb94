#!/usr/bin/env python3
"""Times sums at places and over ranges that data gives beside torch, at shapes that bench/real has not.

    TEGULA_LIBRARY=build/release/lib/libtegula.so python3 docs/dev/time_scatter.py [--device=cuda|cpu]

Prints a row for each: microseconds (medians of calls in turns, bench/real/timing.py) and the norm of the difference from torch's result in relation
to that result's norm; integers have to be equal. On a CPU sizes are small and nothing is timed. Exit code 1 where a result is wrong.
"""
import argparse
import pathlib
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "python")]

from real import timing  # noqa: E402
from tegula_eval.program import runner  # noqa: E402

COUNT = "kernel count(x: i32[N], K: int) -> (h: i32[K]) { h[x[i]] += 1 }"
WEIGHTED = "kernel weighted(x: i32[N], w: f32[N], K: int) -> (h: f32[K]) { h[x[i]] += w[i] }"
IMAGES = """kernel images(x: u8[B, C, H, W]) -> (h: i32[B, C, 256]) {
  h[b, c, x[b, c, i, j]] += 1 for i in H, j in W
}"""
ROWS = "kernel rows(k: i32[N], v: f32[N, D], K: int) -> (s: f32[K, D]) { s[k[i], d] += v[i, d] }"
CSR = """kernel csr(v: f32[Z], col: i32[Z], start: i32[R + 1], x: f32[C]) -> (y: f32[R]) {
  y[r] = sum(v[z]*x[col[z]] for z in start[r]:start[r + 1])
}"""


class Table:
    def __init__(self, device):
        self.device, self.right = device, True
        self.clock = timing.Clock() if device == "cuda" else None
        print("| case | tegula, us | torch, us | error |\n|---|---|---|---|")

    def row(self, name, text, tensors, torchs, **constants):
        launch = runner.Program(text).compile({key: str(value) for key, value in constants.items()},
                                              target=self.device).prepare(tensors)
        launch()
        launch.wait()
        found, wanted = next(iter(launch.outputs.values())), torchs()
        if found.is_floating_point():
            error = float((found.double() - wanted.double()).norm()/wanted.double().norm().clamp(min=1e-30))
        else:
            error = float(not torch.equal(found, wanted.to(found.dtype)))
        self.right &= error < 1e-5
        times = self.clock.medians({"tegula": launch, "torch": torchs}, 0.15) if self.clock else {}
        told = [f"{times[one]:.1f}" if times else "-" for one in ("tegula", "torch")]
        print(f"| {name} | {' | '.join(told)} | {error:.1e} |", flush=True)


def histograms(table, points):
    device = table.device
    w = torch.randint(-4, 5, (points,), device=device).float()
    for bins in (1, 64, 256, 1024, 10_000, 50_000, 100_000):
        x = torch.randint(0, bins, (points,), device=device, dtype=torch.int32)
        table.row(f"count, {bins} bins", COUNT, dict(x=x), lambda: torch.bincount(x, minlength=bins), K=bins)
        if bins in (1, 256, 10_000, 50_000):
            table.row(f"weighted, {bins} bins", WEIGHTED, dict(x=x, w=w),
                      lambda: torch.zeros(bins, device=device).index_add_(0, x, w), K=bins)
    x = torch.zeros(points, device=device, dtype=torch.int32)
    x[::97] = 200
    for bins in (256, 10_000):
        table.row(f"count, nearly all in one of {bins}", COUNT, dict(x=x), lambda: torch.bincount(x, minlength=bins), K=bins)


def payloads(table, side, count):
    device = table.device
    x = torch.randint(0, 256, (8, 3, side, side), device=device, dtype=torch.uint8)
    table.row("bytes of 8 x 3 channels", IMAGES, dict(x=x), lambda: torch.stack(
        [torch.bincount(one.int(), minlength=256) for one in x.flatten(0, 1).flatten(1)]).view(8, 3, 256))
    k = torch.randint(0, 100, (count,), device=device, dtype=torch.int32)
    v = torch.randint(-4, 5, (count, 64), device=device).float()
    table.row("rows of 64 in 100 sums", ROWS, dict(k=k, v=v), lambda: torch.zeros(100, 64, device=device).index_add_(0, k, v), K=100)


def sparse_rows(table, shapes):
    device = table.device
    for rows, mean, is_skewed in shapes:
        lengths = torch.full((rows,), mean, device=device, dtype=torch.int64)
        if is_skewed:
            lengths = (torch.rand(rows, device=device).clamp(min=1e-3)**-0.7*mean*0.3).long()
        start = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]).int()
        count = int(start[-1])
        col = torch.randint(0, rows, (count,), device=device, dtype=torch.int32)
        v, x = torch.randn(count, device=device), torch.randn(rows, device=device)
        matrix = torch.sparse_csr_tensor(start, col, v, (rows, rows), check_invariants=False)
        table.row(f"csr, {rows} rows of {mean}{', skewed' if is_skewed else ''}", CSR, dict(v=v, col=col, start=start, x=x),
                  lambda: matrix @ x)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    device = parser.parse_args().device
    torch.manual_seed(0)
    table, is_large = Table(device), device == "cuda"
    histograms(table, 1 << (24 if is_large else 12))
    payloads(table, 1024 if is_large else 16, 1 << (18 if is_large else 10))
    large = (1 << 20, 8, False), (1 << 18, 32, False), (1 << 18, 32, True), (1 << 14, 512, False)
    sparse_rows(table, large if is_large else ((1 << 9, 8, False), (1 << 8, 32, True)))
    return 0 if table.right else 1


if __name__ == "__main__":
    sys.exit(main())
