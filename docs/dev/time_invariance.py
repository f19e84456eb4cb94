#!/usr/bin/env python3
"""Times what `invariant` costs: twelve operators with and without it, in turns, and holds pieces of the batch against all of it.

    TEGULA_LIBRARY=build/release/lib/libtegula.so python3 docs/dev/time_invariance.py [--device=cuda|cpu] [--rows=1,16,256,4096]

Prints a row for each operator and number of rows: microseconds (medians of calls in turns, bench/real/timing.py), their ratio,
whether pieces that are cut at random places, and small ones, got the bits of the whole, and the norm of the difference from
PyTorch's result in float64 in relation to that result's norm. On a CPU sizes are small and nothing is timed. Exit code 1 where bits differ or a
result is wrong; with --limit=1.1 also where the geometric mean of an operator's ratios is above that.
"""
import argparse
import math
import pathlib
import random
import sys

import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "python")]

from real import timing  # noqa: E402
from tegula_eval.program import runner  # noqa: E402

# Name, what stands between the head and `}`, inputs over the batch, and those that all rows share.
OPERATORS = [
    ("linear_bf16", "x: bf16[M, K], w: bf16[N, K]", "y: bf16[M, N]",
     "y[m, n] = sum(x[m, k]*w[n, k] for k)"),
    ("linear_f16_gelu", "x: f16[M, K], w: f16[K, N], b: f32[N]", "y: f16[M, N]",
     "y[m, n] = gelu(sum(x[m, k]*w[k, n] for k) + b[n])"),
    ("linear_f32", "x: f32[M, K], w: f32[K, N]", "y: f32[M, N]", "y[m, n] = sum(x[m, k]*w[k, n] for k)"),
    ("swiglu", "x: bf16[M, K], w: bf16[N, K], v: bf16[N, K]", "y: bf16[M, N]",
     "y[m, n] = silu(sum(x[m, k]*w[n, k] for k))*sum(x[m, k]*v[n, k] for k)"),
    ("rms_norm", "x: bf16[M, K], g: bf16[K]", "y: bf16[M, K]",
     "s[m] = rsqrt(mean(x[m, k]*x[m, k] for k) + 1e-6)  y[m, k] = x[m, k]*s[m]*g[k]"),
    ("layer_norm", "x: f32[M, K], g: f32[K], b: f32[K]", "y: f32[M, K]",
     "a[m] = mean(x[m, k] for k)  v[m] = var(x[m, k] for k)  y[m, k] = (x[m, k] - a[m])*rsqrt(v[m] + 1e-5)*g[k] + b[k]"),
    ("softmax", "x: f32[M, K]", "y: f32[M, K]", "y[m, k] = softmax(x[m, k], over=k)"),
    ("logsumexp", "x: f32[M, K]", "y: f32[M]", "y[m] = logsumexp(x[m, k] for k)"),
    ("cumsum", "x: f32[M, K]", "y: f32[M, K]", "y[m, k] = cumsum(x[m, k], over=k)"),
    ("silu_mul", "x: bf16[M, K], z: bf16[M, K]", "y: bf16[M, K]", "y[m, k] = silu(x[m, k])*z[m, k]"),
    ("attention", "q: bf16[M, H, S, D], k: bf16[M, H, S, D], v: bf16[M, H, S, D]", "o: bf16[M, H, S, D]",
     "s[m, h, i, j] = sum(q[m, h, i, e]*k[m, h, j, e] for e)*rsqrt(D)  p[m, h, i, j] = softmax(s[m, h, i, j], over=j)  "
     "o[m, h, i, d] = sum(bf16(p[m, h, i, j])*v[m, h, j, d] for j)"),
    ("decode", "q: bf16[M, H, D], k: bf16[M, T, D], v: bf16[M, T, D]", "o: bf16[M, H, D]",
     "s[m, h, j] = sum(q[m, h, e]*k[m, j, e] for e)*rsqrt(D)  p[m, h, j] = softmax(s[m, h, j], over=j)  "
     "o[m, h, d] = sum(bf16(p[m, h, j])*v[m, j, d] for j)"),
]
EXACT = {
    "linear_bf16": lambda x, w: x @ w.T,
    "linear_f16_gelu": lambda x, w, b: F.gelu(x @ w + b),
    "linear_f32": lambda x, w: x @ w,
    "swiglu": lambda x, w, v: F.silu(x @ w.T)*(x @ v.T),
    "rms_norm": lambda x, g: F.rms_norm(x, g.shape, g, 1e-6),
    "layer_norm": lambda x, g, b: F.layer_norm(x, g.shape, g, b),
    "softmax": lambda x: x.softmax(-1),
    "logsumexp": lambda x: x.logsumexp(-1),
    "cumsum": lambda x: x.cumsum(-1),
    "silu_mul": lambda x, z: F.silu(x)*z,
    "attention": F.scaled_dot_product_attention,
    "decode": F.scaled_dot_product_attention,  # heads are rows that share keys
}
LARGEST_ERROR = 5e-3  # results and probabilities are rounded to bf16
SIZES = {"cuda": dict(K=4096, N=4096, H=8, S=1024, D=128, T=4096), "cpu": dict(K=96, N=80, H=2, S=32, D=16, T=64)}
TYPES = dict(f32=torch.float32, f16=torch.float16, bf16=torch.bfloat16)


def tensors_of(parameters, sizes, device):
    made = {}
    for parameter in parameters.split("], "):
        name, kind = parameter.rstrip("]").split(": ")
        kind, dims = kind.split("[")
        shape = [sizes[dim] for dim in dims.split(", ")]
        made[name] = torch.randn(shape, device=device).to(TYPES[kind])
    return made


def launch_of(name, parameters, outputs, body, opening, tensors, device):
    text = f"kernel {name}({parameters}) -> ({outputs}) {{\n  {opening}\n  {body}\n}}\n"
    return runner.Program(text).compile({}, target=device).prepare(tensors)


def run(launch):
    launch()
    launch.wait()
    return next(iter(launch.outputs.values())).clone()


def error_of(name, tensors, found):
    exact = EXACT[name](*(tensor.double() for tensor in tensors.values()))
    return float((found.double() - exact).norm()/exact.norm())


def pieces_agree(operator, tensors, shared, rows, device, whole, seed):
    few = {min(rows, cut) for cut in (3, 43)}  # pieces of 3 and 40 rows, which have other tiles
    cuts = sorted({0, rows} | few | {random.Random(seed).randrange(rows + 1) for _ in range(2)})
    for begin, end in zip(cuts, cuts[1:]):
        part = {name: tensor if name in shared else tensor[begin:end].clone() for name, tensor in tensors.items()}
        found = run(launch_of(*operator, "invariant M", part, device))
        if not torch.equal(found.view(torch.uint8), whole[begin:end].contiguous().view(torch.uint8)):
            return False
    return True


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options.add_argument("--rows", default="")
    options.add_argument("--limit", type=float, default=math.inf)
    options = options.parse_args()
    isTimed = options.device == "cuda"
    clock = timing.Clock() if isTimed else None
    rows_of = [int(one) for one in (options.rows or ("1,16,256,4096" if isTimed else "5")).split(",")]
    print("| operator | rows | free, us | invariant, us | ratio | same bits | error |\n|---|---|---|---|---|---|---|")
    good = True
    for operator in OPERATORS:
        name, parameters, outputs, body = operator
        shared = [one.split(":")[0] for one in parameters.split("], ") if "[M" not in one]
        ratios = []
        for rows in rows_of:
            if name == "attention":  # a batch of sequences
                rows = max(1, rows // 64)
            sizes = dict(SIZES[options.device], M=rows)
            tensors = tensors_of(parameters, sizes, options.device)
            ways = {opening or "free": launch_of(*operator, opening, tensors, options.device)
                    for opening in ("", "invariant M")}
            whole = run(ways["invariant M"])
            isSame = pieces_agree(operator, tensors, shared, rows, options.device, whole, seed=rows)
            error = error_of(name, tensors, whole)
            good &= isSame and error < LARGEST_ERROR
            told = ["-"]*3
            if clock:
                times = clock.medians(ways, 0.15)
                ratios.append(times["invariant M"]/times["free"])
                told = [f"{times['free']:.1f}", f"{times['invariant M']:.1f}", f"{ratios[-1]:.2f}"]
            print(f"| {name} | {rows} | {' | '.join(told)} | {'yes' if isSame else 'NO'} | {error:.1e} |", flush=True)
        if ratios:
            mean = math.exp(sum(map(math.log, ratios))/len(ratios))
            good &= mean <= options.limit
            print(f"| {name}, geometric mean | | | | {mean:.2f} | | |", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
