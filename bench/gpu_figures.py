#!/usr/bin/env python3
"""Measures tables of docs/performance.md on a machine with a CUDA device and prints them as Markdown.

    TEGULA_TORCH=libtegula_torch.so bench/gpu_figures.py [--tegula=PATH] [--rows=TEXT] [--seconds=0.2]
                                                         [--only=products,f32,tf32,attention,equations,grouped,memory,
                                                                 small,compile]

Each row but those of attention, equations, grouped and memory is `tegula bench` on a program of dsl/kernels: kernel and libtorch in turns in one process,
medians, results checked (docs/bench.md). --rows takes those rows alone whose name has the text in it.

products   bf16 and f16 beside cuBLAS; f8 and i8 beside torch._scaled_mm (scales of 1, a result of bf16) and
           torch._int_mm, which Python times here, with the same emptied cache before each call
f32        at f32's accuracy beside cuBLAS's f32 (TF32 off)
tf32       `precision tf32` beside cuBLAS's TF32
attention  beside scaled_dot_product_attention by cuDNN and by flash attention, in turns in this process (TEGULA_LIBRARY,
           PYTHONPATH=python), with an emptied cache before each call; the ratio is to the faster one, the difference
           to cuDNN's result in relation to its norm
equations  f32 attention as the library's function, without tiles, beside scaled_dot_product_attention's memory-efficient
           backend (TF32 off), in the same way; errors in relation to the norm of the result in float64
grouped    rows times the matrices that data chooses for them, beside torch._grouped_mm with the sort that it needs, without it,
           and a loop over the matrices, in the same way
memory     sums of columns, scans and places of the largest elements of many shapes beside torch.sum, cumsum and argmax, in turns in
           this process as well; a call is made twice, and has to give the same bits
small      calls captured in CUDA graphs, on both sides
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


def matmul(m, n, k, *flags):
    return MATMUL, f"M={m},N={n},K={k}", list(flags)


def products():
    """(name, file, sizes, flags) of each row."""
    for T in "bf16", "f16":
        for size in 2048, 4096, 8192:
            yield f"{T} {size}", *matmul(size, size, size, f"--type=T={T}")
    for m, n, k in (8205, 5921, 2949), (256, 256, 131072), (16, 4096, 4096), (128, 4096, 4096):
        yield f"bf16 {m}x{n}x{k}", *matmul(m, n, k, "--type=T=bf16")
    yield ("bf16 128x(512x1024x2048)", ROOT / "test/e2e/std/linear.tgl", "...=(128),M=512,N=1024,K=2048",
           ["--type=T=bf16", "--kernel=t_matmul"])
    for size in 4096, 8192:
        sizes = f"M={size},N={size},K={size}"
        yield f"f8 {size}", "linear/f8_matmul.tgl", sizes, ["-p", "scale_a=1", "-p", "scale_b=1"]
        yield f"i8 {size}", "linear/int8_matmul.tgl", sizes, []


def f32():
    for size in 256, 512, 1024, 2048, 4096, 8192:
        yield f"f32 {size}", *matmul(size, size, size)
    yield "f32 256x256x524288", *matmul(256, 256, 524288)


def tf32():
    for size in 2048, 4096:
        yield f"tf32 {size}", *matmul(size, size, size, "--precision=tf32")


def attention():
    for T in "bf16", "f16":
        for D, H in (64, 16), (128, 16), (256, 8):
            for B, S in (8, 1024), (2, 4096), (1, 16384):
                yield (f"{T} {D} {B}x{S}", "attention/online_attention.tgl",
                       f"B={B},H={H},G={H},S={S},S2={S},D={D}", [f"--type=T={T}"])
                yield (f"{T} {D} {B}x{S} causal", "attention/causal_attention.tgl", f"B={B},H={H},S={S},D={D}",
                       [f"--type=T={T}"])


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
        yield f"{pathlib.Path(file).stem} {sizes}", file, sizes, ["--graph=30"]


def bench(options, file, sizes, flags, environment):
    """The case of `tegula bench`, a dict with "time" and "libtorchTime", or what went wrong, a string."""
    command = [options.tegula, "bench", "--target=cuda", "--json", "--deadline=100", f"--seconds={options.seconds}",
               KERNELS / file, "-d", sizes, *flags]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)
    for line in done.stdout.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("event") == "case":
            return event if event.get("passed") and event.get("timed") else json.dumps(event)[:300]
    return f"exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-200:]}"


def errors(case):
    """The norms of the first output's error, ours and libtorch's."""
    output = case["outputs"][0]
    return f"{output['kernel']['norm']:.1e}, {output['libtorch']['norm']:.1e}"


class Peers:
    """What TorchScript has no name for, microseconds a call: scaled_dot_product_attention by one backend at a time, and
    products of bytes."""

    def __init__(self):
        import torch
        self.torch = torch
        self.flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")

    def attention(self, file, T, B, H, S, D, causal):
        """Microseconds of the kernel, of cuDNN and of flash attention (None where a backend does not serve the sizes),
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

        calls = [launch, peer("CUDNN_ATTENTION"), peer("FLASH_ATTENTION")]
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

    def product(self, T, M, N, K):
        torch = self.torch
        if T == "f8":
            a, b = (torch.randn(rows, K, device="cuda").to(torch.float8_e4m3fn) for rows in (M, N))
            one = torch.ones((), device="cuda")
            return self.median(lambda: torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16))
        a, b = (torch.randint(-128, 128, (rows, K), device="cuda", dtype=torch.int8) for rows in (M, N))
        return self.median(lambda: torch._int_mm(a, b.t()))

    def median(self, call):
        return self.medians([call])[0]

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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tegula", default=ROOT / "build/release/bin/tegula")
    parser.add_argument("--only", default="products,f32,tf32,attention,equations,grouped,memory,small,compile")
    parser.add_argument("--rows", default="")
    parser.add_argument("--seconds", default="0.2")
    options = parser.parse_args()
    failed, peers = False, None
    for section in options.only.split(","):
        print(f"\n### {section}\n")
        if section == "compile":
            compile_rows(options)
            continue
        alone = {"memory": print_memory, "equations": print_equations, "grouped": print_grouped}
        if section in alone:
            peers = peers or Peers()
            failed |= not alone[section](options, peers)
            continue
        rows = {"products": products, "f32": f32, "tf32": tf32, "attention": attention, "small": small}[section]()
        print("| case | ours, us | libtorch, us | TFLOP/s | ratio | error, libtorch's |" if section != "attention" else
              "| case | ours, us | cuDNN, us | flash, us | TFLOP/s | ratio | differs by |")
        print("|---|---|---|---|---|---|" + ("---|" if section == "attention" else ""))
        for name, file, sizes, flags in rows:
            if options.rows not in name:
                continue
            if section == "attention":
                peers = peers or Peers()
                failed |= not print_attention(peers, name, file, sizes)
                continue
            case = bench(options, file, sizes, flags,
                         {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"} if section == "tf32" else {})
            if isinstance(case, str):
                failed = True
                print(f"| {name} | {case} |", flush=True)
                continue
            ours = case["time"]["median"] * 1e6
            rate = f"{case['gigaflopsPerSecond'] / 1e3:.0f}" if case.get("gigaflopsPerSecond") else ""
            if name.startswith(("f8 ", "i8 ")):
                peers = peers or Peers()
                given = dict(pair.split("=") for pair in sizes.split(","))
                theirs = peers.product(name.split()[0], *(int(given[size]) for size in "MNK"))
                print(f"| {name} | {ours:.3g} | {theirs:.3g} | {rate} | {theirs / ours:.2f} | "
                      f"{case['outputs'][0]['kernel']['norm']:.1e} |", flush=True)
            else:
                theirs = case["libtorchTime"]["median"] * 1e6
                print(f"| {name} | {ours:.3g} | {theirs:.3g} | {rate} | {case['speedup']:.2f} | {errors(case)} |",
                      flush=True)
    return 4 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
