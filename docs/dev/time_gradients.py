#!/usr/bin/env python3
"""Times backward passes that `tegula grad` writes beside autograd's own, and prints a table.

    PYTHONPATH=build/release/python python3 docs/dev/time_gradients.py build/release/bin/tegula [--device=cuda|cpu] [--only=rope,...]

Each case has a program, its tensors, and the same function of PyTorch. Times are medians of up to 60 calls by CUDA events, autograd's those of
its backward pass alone over a graph that has been built; errors are norms in relation to autograd's result in float32. On a CPU sizes are small
and nothing is timed. Exit code 1 where an error is more than 3 times autograd's and 1e-5.
"""
import argparse
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F

import tegula

ATTENTION = """kernel attention(q: T[B, H, S, D], k: T[B, H, S, D], v: T[B, H, S, D]) -> (o: T[B, H, S, D]) {
  s[b, h, i, j] = where(MASK, rsqrt(D)*sum(q[b, h, i, d]*k[b, h, j, d] for d), -inf)
  p[b, h, i, j] = softmax(s[b, h, i, j], over=j)
  o[b, h, i, d] = sum(T(p[b, h, i, j])*v[b, h, j, d] for j)
}"""
PROGRAMS = {
    "rms_norm": """kernel rms_norm(x: T[M, N], w: T[N]) -> (y: T[M, N]) {
  r[i] = rsqrt(mean(x[i, j]*x[i, j] for j) + 1e-6)
  y[i, j] = x[i, j]*r[i]*w[j]
}""",
    "layer_norm": """kernel layer_norm(x: T[M, N], w: T[N], b: T[N]) -> (y: T[M, N]) {
  mu[i] = mean(x[i, j] for j)
  r[i] = rsqrt(var(x[i, j] for j) + 1e-5)
  y[i, j] = (x[i, j] - mu[i])*r[i]*w[j] + b[j]
}""",
    "swiglu": "kernel swiglu(a: T[M, N], b: T[M, N]) -> (y: T[M, N]) { y[i, j] = silu(a[i, j])*b[i, j] }",
    "cross_entropy": """kernel cross_entropy(x: T[M, V], t: i64[M]) -> (y: f32) {
  lse[i] = logsumexp(x[i, v] for v)
  y = mean(lse[i] - x[i, clamp(t[i], min=0, max=V - 1)] for i)
}""",
    "rope": """kernel rope(x: T[B, H, S, D], c: f32[S, R], s: f32[S, R]) -> (y: T[B, H, S, D]) {
  y[b, h, i, r in R] = x[b, h, i, r]*c[i, r] - x[b, h, i, r + R]*s[i, r]
  y[b, h, i, R + r] = x[b, h, i, R + r]*c[i, r] + x[b, h, i, r]*s[i, r] for r in D - R
}""",
    "embedding": "kernel embedding(t: i64[M], table: T[V, D]) -> (y: T[M, D]) {"
                 " y[i, d] = table[clamp(t[i], min=0, max=V - 1), d] }",
    "batch_norm": """kernel batch_norm(x: T[N, C, H, W], w: T[C], b: T[C]) -> (y: T[N, C, H, W]) {
  mu[c] = mean(x[n, c, h, q] for n, h, q)
  r[c] = rsqrt(var(x[n, c, h, q] for n, h, q) + 1e-5)
  y[n, c, h, q] = (x[n, c, h, q] - mu[c])*r[c]*w[c] + b[c]
}""",
    "conv2d": "kernel conv2d(x: T[N, C, H, W], w: T[O, C, 3, 3]) -> (y: T[N, O, H, W]) {"
              " y[n, o, p, q] = sum(x[n, c, p + r - 1, q + s - 1, fill=0]*w[o, c, r, s] for c, r in 3, s in 3) }",
    "attention_causal": ATTENTION.replace("MASK", "j <= i"),
    "attention": ATTENTION.replace("MASK", "j < S"),
}


def rotated(x, c, s):
    low, high = x.float().chunk(2, -1)
    return torch.cat([low*c - high*s, high*c + low*s], -1).to(x.dtype)


class Cases:
    """Tensors, PyTorch's function, and the tensors that have gradients, of each program."""

    def __init__(self, device):
        self.device, self.small = device, device == "cpu"
        self.rows, self.columns, self.words = self.of(8192, 32), self.of(4096, 64), self.of(32000, 80)

    def of(self, large, small):
        return small if self.small else large

    def normal(self, *shape, dtype=torch.bfloat16, scale=1.0):
        return (torch.randn(*shape, device=self.device)*scale).to(dtype)

    def places(self):
        return torch.randint(0, self.words, (self.rows,), device=self.device)

    def rms_norm(self):
        tensors = dict(x=self.normal(self.rows, self.columns), w=self.normal(self.columns))
        return tensors, lambda x, w: F.rms_norm(x, w.shape, w, 1e-6), "x,w"

    def layer_norm(self):
        tensors = dict(x=self.normal(self.rows, self.columns), w=self.normal(self.columns), b=self.normal(self.columns))
        return tensors, lambda x, w, b: F.layer_norm(x, w.shape, w, b), "x,w,b"

    def swiglu(self):
        shape = self.rows, self.of(14336, 96)
        return dict(a=self.normal(*shape), b=self.normal(*shape)), lambda a, b: F.silu(a)*b, "a,b"

    def cross_entropy(self):
        tensors = dict(x=self.normal(self.rows, self.words), t=self.places())
        return tensors, lambda x, t: F.cross_entropy(x.float(), t), "x"

    def rope(self):
        length, half = self.of(2048, 16), self.of(64, 8)
        angles = torch.arange(length, device=self.device)[:, None]*torch.pow(
            10000.0, -torch.arange(half, device=self.device)/half)
        tensors = dict(x=self.normal(self.of(4, 2), self.of(32, 2), length, 2*half), c=angles.cos(), s=angles.sin())
        return tensors, rotated, "x"

    def embedding(self):
        return dict(t=self.places(), table=self.normal(self.words, self.columns)), F.embedding, "table"

    def batch_norm(self):
        channels = self.of(256, 3)
        tensors = dict(x=self.normal(self.of(64, 4), channels, self.of(56, 5), self.of(56, 5), dtype=torch.float32),
                       w=self.normal(channels, dtype=torch.float32), b=self.normal(channels, dtype=torch.float32))
        return tensors, lambda x, w, b: F.batch_norm(x, None, None, w, b, True), "x,w,b"

    def conv2d(self):
        channels, side = self.of(128, 4), self.of(56, 6)
        tensors = dict(x=self.normal(self.of(32, 2), channels, side, side), w=self.normal(channels, channels, 3, 3, scale=0.1))
        return tensors, lambda x, w: F.conv2d(x, w, padding=1), "x,w"

    def attention(self, causal=False):
        shape = self.of(4, 2), self.of(16, 2), self.of(2048, 16), self.of(128, 16)
        tensors = {name: self.normal(*shape) for name in "qkv"}
        return tensors, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal), "q,k,v"

    def attention_causal(self):
        return self.attention(causal=True)

    def microseconds(self, call, seconds=0.6):
        if self.small:
            return None
        for _ in range(2):
            call()
        times, start = [], time.monotonic()
        while len(times) < 5 or (len(times) < 60 and time.monotonic() - start < seconds):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            call()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end)*1e3)
        return statistics.median(times)


def gradients(function, tensors, wanted, gradient, wide=False):
    """A call that gives PyTorch's gradients, and the function's result."""
    def leaf(name, one):
        one = one.detach().float() if wide and one.is_floating_point() else one.detach()
        return one.requires_grad_(name in wanted)
    leaves = {name: leaf(name, one) for name, one in tensors.items()}
    result = function(*leaves.values())
    given = torch.randn_like(result) if gradient is None else gradient.to(result.dtype)
    return lambda: torch.autograd.grad(result, [leaves[name] for name in wanted], given, retain_graph=True), result, given


def measure(command, cases, name):
    """Microseconds and errors, ours and autograd's."""
    tensors, function, wrt = getattr(cases, name)()
    done = subprocess.run([command, "grad", "-", f"--wrt={wrt}"], input=PROGRAMS[name], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr}")
    kernel, wanted = tegula.compile(done.stdout), wrt.split(",")
    theirs, result, gradient = gradients(function, tensors, wanted, None)
    exact = [one.clone() for one in gradients(function, tensors, wanted, gradient, wide=True)[0]()]
    known = {**tensors, "y": result.detach(), "o": result.detach(), "grad_y": gradient, "grad_o": gradient}
    given = {one.name: known[one.name].contiguous() for one in kernel.parameters if one.role != "out"}

    def ours():
        found = kernel(**given)
        return found if isinstance(found, tuple) else (found,)

    def error(found):
        return max(float((one.float() - right).norm()/right.norm()) for one, right in zip(found, exact))
    errors = error(ours()), error(theirs())
    del exact
    return cases.microseconds(ours), cases.microseconds(theirs), *errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tegula")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--only", default=",".join(PROGRAMS))
    options = parser.parse_args()
    cases, right = Cases(options.device), True
    print("| backward of | tegula, us | autograd, us | autograd / tegula | error | autograd's |\n|---|---|---|---|---|---|")
    for name in options.only.split(","):
        torch.manual_seed(0)
        ours, theirs, error, usual = measure(options.tegula, cases, name)
        times = f"{ours:,.0f} | {theirs:,.0f} | {theirs/ours:.2f}" if ours else "- | - | -"
        print(f"| {name} | {times} | {error:.1e} | {usual:.1e} |", flush=True)
        right &= error <= max(3*usual, 1e-5)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
