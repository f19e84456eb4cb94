#!/usr/bin/env python3
"""Measures tables of docs/performance.md on a machine with a CUDA device and prints them as Markdown.

    TEGULA_TORCH=libtegula_torch.so bench/gpu_figures.py [--tegula=PATH] [--rows=TEXT] [--seconds=0.2]
                                                         [--only=products,f32,tf32,accuracy,attention,equations,grouped,
                                                                 memory,small,compile]

Kernel and torch's call take turns in this process (TEGULA_LIBRARY, PYTHONPATH=python), the L2 cache emptied before each, medians
of ten; results are checked. --rows takes those rows alone whose name has the text in it.

products   bf16 and f16 beside torch.matmul (cuBLAS); f8 and i8 beside torch._scaled_mm (scales of 1, a result of bf16) and
           torch._int_mm; errors in relation to the norm of the result in float64. From 2048 on also the rates of either
           side alone in a loop of half a second, after another one: what the device's power allows
f32        the same, at f32's accuracy beside cuBLAS's f32 (TF32 off)
tf32       the same, `precision tf32` beside cuBLAS's TF32
accuracy   f32 products of several kinds of data beside cuBLAS's f32: errors of the whole in relation to the norm of the result in
           float64, and of the worst element in relation to the sum of its terms' absolute values
attention  beside scaled_dot_product_attention by cuDNN and by flash attention, or, which alone takes head dims beyond 256, its
           memory-efficient backend; the ratio is to the fastest, the difference to cuDNN's result, or that, in relation to its norm
equations  f32 attention as the library's function, without tiles, beside scaled_dot_product_attention's memory-efficient
           backend (TF32 off); errors in relation to the norm of the result in float64
grouped    rows times the matrices that data chooses for them, beside torch._grouped_mm with the sort that it needs, without it,
           and a loop over the matrices
memory     sums of columns, scans and places of the largest elements of many shapes beside torch.sum, cumsum and argmax; a call
           is made twice, and has to give the same bits
small      `tegula bench` of calls captured in CUDA graphs, on both sides (--tegula, TEGULA_TORCH, --seconds each; docs/bench.md)
compile    source to cubin as a process, and by the C interface in this one, nothing cached, medians of 9

A row that is wrong, or ends in an error, says so and makes the exit code 4.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
KERNELS = ROOT / "dsl" / "kernels"
MATMUL = "linear/matmul.tgl"


def products():
    """(type, batch, rows, columns, terms) of each row; batch None: matrices."""
    for T in "bf16", "f16":
        for size in 2048, 4096, 8192:
            yield T, None, size, size, size
    for m, n, k in (8205, 5921, 2949), (256, 256, 131072), (16, 4096, 4096), (128, 4096, 4096):
        yield "bf16", None, m, n, k
    yield "bf16", 128, 512, 1024, 2048
    for T in "f8", "i8":
        for size in 2048, 4096, 8192:
            yield T, None, size, size, size


def f32():
    for size in 256, 512, 1024, 2048, 4096, 8192:
        yield "f32", None, size, size, size
    yield "f32", None, 256, 256, 524288


def tf32():
    for size in 2048, 4096:
        yield "tf32", None, size, size, size


def accuracy():
    """(kind of data, rows, columns, terms) of each row."""
    for kind in "signed", "positive", "wide range", "cancelling", "other units", "large beside zeros":
        for m, n, k in (1024, 1024, 1024), (2048, 2048, 4096), (256, 256, 65536), (256, 256, 524288):
            yield kind, m, n, k


def attention():
    for T in "bf16", "f16":
        for D, H in (64, 16), (128, 16), (256, 8), (512, 8), (1024, 4):
            for B, S in (8, 1024), (2, 4096), (1, 16384):
                yield (f"{T} {D} {B}x{S}", "attention/online_attention.tgl",
                       f"B={B},H={H},G={H},S={S},S2={S},D={D}")
                yield f"{T} {D} {B}x{S} causal", "attention/causal_attention.tgl", f"B={B},H={H},S={S},D={D}"


def equations():
    """(head dim, heads, batch, length, causal) of each row."""
    return [(64, 16, 8, 1024, False), (64, 16, 2, 4096, True), (96, 8, 16, 512, True), (32, 4, 2, 16384, False), (64, 8, 4, 1000, False),
            (128, 8, 8, 1024, False)]


def grouped():
    """(type, rows, terms, columns, matrices, how rows are spread) of each row."""
    return [("bf16", 8192, 2048, 4096, 8, "even"), ("bf16", 8192, 2048, 4096, 8, "uneven"), ("bf16", 8192, 2048, 4096, 8, "one"),
            ("bf16", 4096, 1024, 1024, 64, "even"), ("bf16", 512, 2048, 4096, 8, "even"), ("bf16", 16384, 4096, 1536, 128, "even"),
            ("f16", 8192, 2048, 4096, 8, "even"), ("f32", 8192, 2048, 4096, 8, "even")]


def memory():
    """(program, torch's, shapes) of each kind; the input is x."""
    yield ("sum over dim 0", "kernel sums(x: f32[M, N]) -> (y: f32[N]) { y[j] = sum(x[i, j] for i) }",
           lambda torch, x: torch.sum(x, 0), 1,
           [(16384, 2048), (4096, 4096), (65536, 1024), (1000000, 64), (100000, 512), (16000, 512), (1024, 65536), (8192, 8192),
            (16384, 2047), (10007, 2048), (512, 4096), (128, 1000000)])
    yield ("cumsum over dim 1", "kernel rows(x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = cumsum(x[i, j], over=j) }",
           lambda torch, x: torch.cumsum(x, 1), 2,
           [(1, 100000000), (1, 1000000), (1, 65536), (8, 4194304), (64, 1048576), (256, 65536), (300, 100003), (4096, 8192)])
    yield ("cumsum over dim 0", "kernel columns(x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = cumsum(x[i, j], over=i) }",
           lambda torch, x: torch.cumsum(x, 0), 2,
           [(100000, 64), (16384, 2048), (1000000, 16), (1024, 65536), (4096, 131072), (4099, 1023)])
    yield ("argmax over dim 1", "kernel places(x: f32[M, N]) -> (y: i64[M]) { y[i] = argmax(x[i, j] for j) }",
           lambda torch, x: torch.argmax(x, 1), 1, [(1, 100000000), (4, 8000000), (64, 1000003), (4096, 65536)])


def small():
    for file, sizes in [("softmax/softmax.tgl", "M=256,N=1024"), ("softmax/softmax.tgl", "M=1024,N=512"),
                        ("norm/layer_norm.tgl", "M=512,N=768"), ("norm/rms_norm.tgl", "M=512,N=1024"),
                        ("pointwise/gelu_tanh.tgl", "...=(256, 512)"), ("scan/cumsum.tgl", "M=128,N=1024"),
                        ("loss/cross_entropy.tgl", "B=128,C=1000"), ("reduce/sum_columns.tgl", "M=512,N=512"),
                        ("linear/linear_gelu.tgl", "M=64,K=512,N=512"), (MATMUL, "M=256,N=256,K=256")]:
        yield f"{pathlib.Path(file).stem} {sizes}", file, sizes


def bench(options, file, sizes):
    """The case of `tegula bench` with CUDA graphs, a dict with "time" and "libtorchTime", or what went wrong, a string."""
    command = [options.tegula, "bench", "--target=cuda", "--json", "--deadline=100", f"--seconds={options.seconds}", "--graph=30",
               KERNELS / file, "-d", sizes]
    done = subprocess.run(command, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("event") == "case":
            return event if event.get("passed") and event.get("timed") else json.dumps(event)[:300]
    return f"exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-200:]}"


class Peers:
    """What TorchScript has no name for, microseconds a call: scaled_dot_product_attention by one backend at a time, and
    products of bytes."""

    def __init__(self):
        import torch
        self.torch = torch
        self.flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")

    def attention(self, file, T, B, H, S, D, causal):
        """Microseconds of the kernel, of cuDNN, flash and memory-efficient attention (None where a backend does not serve the sizes),
        in turns on the same tensors, and by how much the kernel's result differs from cuDNN's, or flash attention's, in
        relation to it."""
        torch = self.torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from tegula_eval import runner
        dtype = {"bf16": torch.bfloat16, "f16": torch.float16}[T]
        q, k, v = (torch.randn(B, H, S, D, device="cuda", dtype=dtype) for _ in range(3))
        text = (KERNELS / file).read_text().replace(": T[", f": {T}[").replace("T(p)", f"{T}(p)")
        launch = runner.Program(text, file).compile({}, target="cuda").prepare({"q": q, "k": k, "v": v})
        results = {}

        def peer(backend):
            def call():
                with sdpa_kernel(getattr(SDPBackend, backend)):
                    results[backend] = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
            try:
                call()
            except RuntimeError:
                return None
            return call

        calls = [launch, peer("CUDNN_ATTENTION"), peer("FLASH_ATTENTION"), peer("EFFICIENT_ATTENTION") if D > 256 else None]
        taken = self.medians(calls)
        launch.wait()
        ours = launch.outputs["o"].float()
        theirs = next(iter(results.values()), ours).float()
        return taken, ((ours - theirs).norm() / theirs.norm()).item()

    def by_equations(self, D, H, B, S, causal):
        """Microseconds of the library's function in f32 and of PyTorch's memory-efficient attention, and both errors."""
        torch = self.torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from tegula_eval import runner
        torch.backends.cuda.matmul.allow_tf32 = False
        q, k, v = (torch.randn(B, H, S, D, device="cuda") for _ in range(3))
        text = ("kernel attention(q: f32[B, H, S, D], k: f32[B, H, T, D], v: f32[B, H, T, D]) -> (o: f32[B, H, S, D]) {\n"
                f"  o = scaled_dot_product_attention(q, k, v{', is_causal=true' if causal else ''})\n}}\n")
        launch = runner.Program(text).compile({}, target="cuda").prepare({"q": q, "k": k, "v": v})
        results = {}

        def theirs():
            with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
                results["o"] = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        taken = self.medians([launch, theirs])
        launch.wait()
        rows = min(S, 1024)  # of one head
        scores = q[0, 0, :rows].double() @ k[0, 0].double().T * D ** -0.5
        if causal:
            later = torch.ones(rows, S, device="cuda", dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        wanted = torch.softmax(scores, -1) @ v[0, 0].double()
        error = [((o[0, 0, :rows] - wanted).norm() / wanted.norm()).item() for o in (launch.outputs["o"], results["o"])]
        return taken, error

    def grouped(self, T, N, K, M, E, spread):
        """Microseconds of the kernel, of torch._grouped_mm with and without a sort before it (bf16 alone), and of a loop over
        the matrices, and the kernel's error in relation to the norm of the result in float64."""
        torch = self.torch
        from tegula_eval import runner
        dtype = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}[T]
        torch.backends.cuda.matmul.allow_tf32 = False
        x = torch.randn(N, K, device="cuda").to(dtype)
        w = (torch.randn(E, K, M, device="cuda") / K ** 0.5).to(dtype)
        e = torch.randint(0, E, (N,), device="cuda", dtype=torch.int32)
        if spread == "uneven":
            e = torch.where(torch.rand(N, device="cuda") < 0.7, 1, e).to(torch.int32)
        elif spread == "one":
            e = torch.full_like(e, E - 1)
        text = (KERNELS / "moe/grouped_linear.tgl").read_text().replace(": T[", f": {T}[")
        launch = runner.Program(text).compile({}, target="cuda").prepare({"x": x, "w": w, "e": e})

        def loop():
            y = torch.empty(N, M, device="cuda", dtype=dtype)
            for matrix in range(E):
                rows = (e == matrix).nonzero().squeeze(1)
                y.index_copy_(0, rows, x.index_select(0, rows) @ w[matrix])

        def sort():
            order = torch.argsort(e, stable=True)
            return order, x[order], torch.bincount(e, minlength=E).cumsum(0).to(torch.int32)

        def with_sort():
            order, rows, ends = sort()
            y = torch.empty(N, M, device="cuda", dtype=dtype)
            y[order] = torch._grouped_mm(rows, w, offs=ends)
        calls = [launch, None, None, loop]
        if T == "bf16":
            _, rows, ends = sort()
            calls[1:3] = with_sort, lambda: torch._grouped_mm(rows, w, offs=ends)
        taken = self.medians(calls)
        launch.wait()
        error, size = 0.0, 0.0
        for matrix in range(E):
            wanted = x[e == matrix].double() @ w[matrix].double()
            error += (launch.outputs["y"][e == matrix] - wanted).square().sum().item()
            size += wanted.square().sum().item()
        return taken, (error / size) ** 0.5

    def along(self, text, theirs, shape):
        """Microseconds of the program on x and of torch's call, the largest error in relation to the largest result, and
        whether another call gives the same bits."""
        torch = self.torch
        from tegula_eval import runner
        x = torch.randn(*shape, device="cuda")
        launch = runner.Program(text).compile({}, target="cuda").prepare({"x": x})
        launch()
        launch.wait()
        first, wanted = launch.outputs["y"].clone(), theirs(torch, x.double())
        error = ((first - wanted).abs().max() / wanted.abs().max()).item()
        del wanted
        taken = self.medians([launch, lambda: theirs(torch, x)])
        launch.wait()
        return taken, error, torch.equal(first, launch.outputs["y"])

    def product(self, T, B, M, N, K):
        """Microseconds of the kernel and of torch's call, the errors of both, and microseconds of each alone for a while."""
        torch = self.torch
        from tegula_eval import runner
        torch.backends.cuda.matmul.allow_tf32 = T == "tf32"
        scalars, file = {}, KERNELS / {"f8": "linear/f8_matmul.tgl", "i8": "linear/int8_matmul.tgl"}.get(T, "linear/matmul.tgl")
        if T == "i8":
            a, b = (torch.randint(-128, 128, (lines, K), device="cuda", dtype=torch.int8) for lines in (M, N))
            text = "kernel product(a: i8[M, K], b: i8[N, K]) -> (c: i32[M, N]) { c[i, j] = sum(a[i, k] * b[j, k] for k) }"
            right, theirs = b.t(), lambda: torch._int_mm(a, b.t())
        elif T == "f8":
            a, b = (torch.randn(lines, K, device="cuda").to(torch.float8_e4m3fn) for lines in (M, N))
            one = torch.ones((), device="cuda")
            text, scalars = file.read_text(), {"scale_a": 1.0, "scale_b": 1.0}
            right, theirs = b.t(), lambda: torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16)
        else:
            dtype = {"bf16": torch.bfloat16, "f16": torch.float16}.get(T, torch.float32)
            text = file.read_text().replace(": T[", f": {'f32' if T == 'tf32' else T}[")
            shapes = [(M, K), (K, N)] if B is None else [(B, M, K), (B, K, N)]
            a, b = (torch.randn(*shape, device="cuda").to(dtype) for shape in shapes)
            if B is not None:
                text = text.replace("[M, K]", "[B, M, K]").replace("[K, N]", "[B, K, N]").replace("[M, N]", "[B, M, N]")
                text = text.replace("[i, j]", "[z, i, j]").replace("[i, k]", "[z, i, k]").replace("[k, j]", "[z, k, j]")
            right, theirs = b, lambda: torch.matmul(a, b)
        program = runner.Program(text, file.name)
        launch = program.compile({}, target="cuda", precision="tf32" if T == "tf32" else None).prepare({"a": a, "b": b}, scalars)
        taken = self.medians([launch, theirs])
        launch.wait()
        wanted = torch.matmul(a.double(), right.double())
        errors = [((result.double() - wanted).norm() / wanted.norm()).item() for result in (*launch.outputs.values(), theirs())]
        del wanted
        alone = [self.sustained(call) for call in (launch, theirs)] if min(M, N, K) >= 2048 else None
        return taken, errors, alone

    def accuracy(self, kind, M, N, K):
        """The errors of the kernel and of torch.matmul without TF32, each of the whole and of the worst element."""
        torch = self.torch
        from tegula_eval import runner
        torch.backends.cuda.matmul.allow_tf32 = False
        a, b = torch.randn(M, K, device="cuda"), torch.randn(K, N, device="cuda")
        if kind == "positive":
            a, b = a.abs(), b.abs()
        elif kind == "wide range":
            a, b = (x * torch.exp2(torch.empty_like(x).uniform_(-15, 15)) for x in (a, b))
        elif kind == "cancelling":  # the second half of the terms is the first half's, negated, and a thousandth more
            a[:, K // 2:] = -a[:, :K // 2] * (1 + 1e-3 * torch.rand(M, K // 2, device="cuda"))
            b[K // 2:] = b[:K // 2]
        elif kind == "other units":  # columns of one, which rows of the other take out again
            units = torch.exp2(torch.empty(K, device="cuda").uniform_(-20, 20))
            a, b = a * units, b / units[:, None]
        elif kind == "large beside zeros":
            a[:, ::16], b[::16] = 1e20, 0
        text = (KERNELS / "linear/matmul.tgl").read_text().replace(": T[", ": f32[")
        launch = runner.Program(text).compile({}, target="cuda").prepare({"a": a, "b": b})
        launch()
        launch.wait()
        wanted = a.double() @ b.double()
        terms = a.double().abs() @ b.double().abs()
        shown = []
        for result in (*launch.outputs.values(), a @ b):
            difference = result.double() - wanted
            shown.append(((difference.norm() / wanted.norm()).item(), (difference.abs() / terms).max().item()))
        return shown

    def sustained(self, call, seconds=0.5):
        """Microseconds of a call among calls without a pause, of the second half of twice so many seconds."""
        torch = self.torch
        for _ in range(2):
            torch.cuda.synchronize()
            start, calls = time.perf_counter(), 0
            while time.perf_counter() - start < seconds:
                for _ in range(8):
                    call()
                calls += 8
                torch.cuda.synchronize()
            taken = (time.perf_counter() - start) / calls * 1e6
        return taken

    def medians(self, calls):
        """Of ten calls of each, in turns, in microseconds."""
        torch, taken = self.torch, [[] for _ in calls]
        for turn in range(13):
            for call, times in zip(calls, taken):
                if call is None:
                    continue
                self.flush.fill_(turn)
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                call()
                end.record()
                end.synchronize()
                times.append(begin.elapsed_time(end) * 1e3)
        return [statistics.median(times[3:]) if times else None for times in taken]


def compile_rows(options):
    from tegula_eval import runner
    os.environ["TEGULA_CACHE_DIR"] = ""
    print("| program | a process, ms | by the library, ms |\n|---|---|---|")
    for file in (MATMUL, "linear/linear_gelu.tgl", "conv/conv2d_relu.tgl", "attention/online_attention.tgl",
                 "attention/causal_attention.tgl", "softmax/softmax.tgl", "norm/layer_norm.tgl"):
        taken, inside = [], []
        for _ in range(9):
            with tempfile.TemporaryDirectory() as folder:
                begin = time.perf_counter()
                subprocess.run([options.tegula, "compile", "--target=sm_90a", "--emit=cubin", KERNELS / file, "-o",
                                f"{folder}/out.cubin"], check=True, capture_output=True)
                taken.append((time.perf_counter() - begin) * 1e3)
            begin = time.perf_counter()
            runner.Program((KERNELS / file).read_text()).compile({}, target="cuda")
            inside.append((time.perf_counter() - begin) * 1e3)
        print(f"| {pathlib.Path(file).stem} | {statistics.median(taken):.0f} | {statistics.median(inside):.0f} |", flush=True)


def print_attention(peers, name, file, sizes):
    """Whether the results agree."""
    T, D, rest, *causal = name.split()
    given = dict(pair.split("=") for pair in sizes.split(","))
    B, H, S, D = (int(given[size]) for size in "BHSD")
    (ours, *theirs), difference = peers.attention(file, T, B, H, S, D, bool(causal))
    best = min((taken for taken in theirs if taken), default=None)
    shown = " | ".join(f"{taken:.0f}" if taken else "" for taken in theirs)
    ratio = f"{best / ours:.2f}" if best else ""
    rate = 4 * B * H * S * S * D / ours / 1e6
    print(f"| {name} | {ours:.0f} | {shown} | {rate:.0f} | {ratio} | {difference:.1e} |", flush=True)
    return difference < {"bf16": 1e-2, "f16": 2e-3}[T]


def print_products(rows, options, peers):
    """Whether no error is larger than it may be."""
    right = True
    print("| product | ours, us | torch, us | TFLOP/s | ratio | alone, TFLOP/s | ratio | error, torch's |\n|---|---|---|---|---|---|---|---|")
    for T, B, M, N, K in rows:
        sizes = f"{M}x{N}x{K}" if len({M, N, K}) > 1 else f"{M}"
        name = f"{T} {sizes}" if B is None else f"{T} {B} of {sizes}"
        if options.rows not in name:
            continue
        (ours, theirs), (error, other), alone = peers.product(T, B, M, N, K)
        work = 2 * (B or 1) * M * N * K / 1e6
        shown = f"{work / alone[0]:.0f}, {work / alone[1]:.0f} | {alone[1] / alone[0]:.2f}" if alone else "|"
        print(f"| {name} | {ours:.1f} | {theirs:.1f} | {work / ours:.0f} | {theirs / ours:.2f} | {shown} | {error:.1e}, {other:.1e} |",
              flush=True)
        right &= error <= max(1.1 * other, 4e-7 if T == "f32" else 0)
    return right


def print_accuracy(options, peers):
    """Whether no error is larger than torch's."""
    right = True
    print("| data | product | error, torch's | worst element, torch's |\n|---|---|---|---|")
    for kind, M, N, K in accuracy():
        if options.rows not in f"{kind} {M}x{N}x{K}":
            continue
        (whole, worst), (other, otherWorst) = peers.accuracy(kind, M, N, K)
        print(f"| {kind} | {M}x{N}x{K} | {whole:.1e}, {other:.1e} | {worst:.1e}, {otherWorst:.1e} |", flush=True)
        right &= whole <= max(1.1 * other, 4e-7) and worst <= max(1.1 * otherWorst, 4e-7)
    return right


def print_equations(options, peers):
    """Whether no error is larger than PyTorch's."""
    right = True
    print("| case | ours, us | efficient, us | TFLOP/s | ratio | error, PyTorch's |\n|---|---|---|---|---|---|")
    for D, H, B, S, causal in equations():
        name = f"f32 {D} {B}x{S}{' causal' if causal else ''}, {H} heads"
        if options.rows not in name:
            continue
        (ours, theirs), (error, other) = peers.by_equations(D, H, B, S, causal)
        rate = 4 * B * H * S * S * D / ours / 1e6
        print(f"| {name} | {ours:.0f} | {theirs:.0f} | {rate:.0f} | {theirs / ours:.2f} | {error:.1e}, {other:.1e} |", flush=True)
        right &= error <= 1.1 * other
    return right


def print_grouped(options, peers):
    """Whether the results are right."""
    right = True
    print("| case | ours, us | _grouped_mm with sort, us | without, us | loop, us | TFLOP/s | ratio | error |\n"
          "|---|---|---|---|---|---|---|---|")
    for T, N, K, M, E, spread in grouped():
        name = f"{T} {N}x{K}x{M}, {E} matrices, {spread}"
        if options.rows not in name:
            continue
        (ours, *theirs), error = peers.grouped(T, N, K, M, E, spread)
        shown = " | ".join(f"{taken:.0f}" if taken else "" for taken in theirs)
        best = theirs[0] or theirs[2]
        print(f"| {name} | {ours:.0f} | {shown} | {2 * N * K * M / ours / 1e6:.0f} | {best / ours:.2f} | {error:.1e} |", flush=True)
        right &= error < {"bf16": 1e-2, "f16": 2e-3, "f32": 1e-6}[T]
    return right


def print_memory(options, peers):
    """Whether all results are right, and the same twice."""
    right = True
    print("| case | ours, us | torch, us | ratio | of 4.1 TB/s | error |\n|---|---|---|---|---|---|")
    for kind, text, theirs, passes, shapes in memory():
        for shape in shapes:
            name = f"{kind} {shape[0]}x{shape[1]}"
            if options.rows not in name:
                continue
            (ours, other), error, same = peers.along(text, theirs, shape)
            share = passes * 4 * shape[0] * shape[1] / ours / 4.1e6
            print(f"| {name} | {ours:.1f} | {other:.1f} | {other / ours:.2f} | {share:.2f} | {error:.1e}"
                  f"{'' if same else ', not the same twice'} |", flush=True)
            right &= same and error < 1e-4
    return right


def print_small(options):
    """Whether all are right."""
    right = True
    print("| case | ours, us | libtorch, us | ratio | error, libtorch's |\n|---|---|---|---|---|")
    for name, file, sizes in small():
        if options.rows not in name:
            continue
        case = bench(options, file, sizes)
        if isinstance(case, str):
            print(f"| {name} | {case} |", flush=True)
            right = False
            continue
        ours, theirs = (case[key]["median"] * 1e6 for key in ("time", "libtorchTime"))
        output = case["outputs"][0]
        print(f"| {name} | {ours:.3g} | {theirs:.3g} | {case['speedup']:.2f} | {output['kernel']['norm']:.1e}, "
              f"{output['libtorch']['norm']:.1e} |", flush=True)
    return right


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tegula", default=ROOT / "build/release/bin/tegula")
    parser.add_argument("--only", default="products,f32,tf32,accuracy,attention,equations,grouped,memory,small,compile")
    parser.add_argument("--rows", default="")
    parser.add_argument("--seconds", default="0.2")
    options = parser.parse_args()
    failed, peers = False, None
    for section in options.only.split(","):
        print(f"\n### {section}\n")
        if section == "compile":
            compile_rows(options)
            continue
        peers = peers or Peers()
        if section in ("products", "f32", "tf32"):
            rows = {"products": products, "f32": f32, "tf32": tf32}[section]()
            failed |= not print_products(rows, options, peers)
        elif section == "attention":
            print("| attention | ours, us | cuDNN, us | flash, us | efficient, us | TFLOP/s | ratio | differs by |\n|---|---|---|---|---|---|---|---|")
            for name, file, sizes in attention():
                if options.rows in name:
                    failed |= not print_attention(peers, name, file, sizes)
        elif section == "small":
            failed |= not print_small(options)
        else:
            show = {"memory": print_memory, "equations": print_equations, "grouped": print_grouped, "accuracy": print_accuracy}
            failed |= not show[section](options, peers)
    return 4 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
