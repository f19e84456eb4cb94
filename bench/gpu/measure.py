"""What rows of bench/gpu_figures.py hold: microseconds of ours and of others in turns, and errors."""
import functools
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ROOT / "dsl" / "kernels"


def text_of(file, T):
    """A kernel's text with its type parameter given; nothing else in it is called T."""
    return (KERNELS / file).read_text().replace(": T[", f": {T}[").replace("T(p)", f"{T}(p)")


class Measure:
    """Each method measures one row on the device. Times are medians of ten calls, in turns, the L2 cache emptied before each.
    Errors are of the whole: the norm of the difference from the result in float64 in relation to that result's norm."""

    def __init__(self, tegula, seconds, device="cuda"):
        import torch
        self.torch, self.tegula, self.seconds, self.device = torch, tegula, seconds, device

    @functools.cached_property
    def flush(self):
        return self.torch.empty(256 << 20, dtype=self.torch.uint8, device=self.device)

    def normal(self, *shape):
        return self.torch.randn(*shape, device=self.device)

    def launch(self, text, tensors, scalars={}, precision=None):
        """The program's call on the tensors."""
        from tegula_eval.program import runner
        return runner.Program(text).compile({}, target=self.device, precision=precision).prepare(tensors, scalars)

    def use_tf32(self, allowed):
        self.torch.backends.cuda.matmul.allow_tf32 = allowed

    def medians(self, calls):
        """Of ten calls of each, in turns, in microseconds."""
        taken = [[] for _ in calls]
        for turn in range(13):
            for call, times in zip(calls, taken):
                if call is not None:
                    self.flush.fill_(turn)
                    times.append(self.microseconds(call))
        return [statistics.median(times[3:]) if times else None for times in taken]

    def microseconds(self, call):
        if self.device == "cpu":
            begin = time.perf_counter()
            call()
            return (time.perf_counter() - begin) * 1e6
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3

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

    def product(self, T, B, M, N, K):
        """Microseconds of the kernel and of torch's call, the errors of both, and microseconds of each alone for a while."""
        torch = self.torch
        self.use_tf32(T == "tf32")
        scalars = {}
        if T == "i8":
            a, b = (torch.randint(-128, 128, (lines, K), device=self.device, dtype=torch.int8) for lines in (M, N))
            text = "kernel product(a: i8[M, K], b: i8[N, K]) -> (c: i32[M, N]) { c[i, j] = sum(a[i, k] * b[j, k] for k) }"
            right, theirs = b.t(), lambda: torch._int_mm(a, b.t())
        elif T == "f8":
            a, b = (self.normal(lines, K).to(torch.float8_e4m3fn) for lines in (M, N))
            one = torch.ones((), device=self.device)
            text, scalars = (KERNELS / "linear/f8_matmul.tgl").read_text(), {"scale_a": 1.0, "scale_b": 1.0}
            right, theirs = b.t(), lambda: torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16)
        else:
            dtype = {"bf16": torch.bfloat16, "f16": torch.float16}.get(T, torch.float32)
            text = text_of("linear/matmul.tgl", "f32" if T == "tf32" else T)
            shapes = [(M, K), (K, N)] if B is None else [(B, M, K), (B, K, N)]
            a, b = (self.normal(*shape).to(dtype) for shape in shapes)
            if B is not None:
                text = text.replace("[M, K]", "[B, M, K]").replace("[K, N]", "[B, K, N]").replace("[M, N]", "[B, M, N]")
                text = text.replace("[i, j]", "[z, i, j]").replace("[i, k]", "[z, i, k]").replace("[k, j]", "[z, k, j]")
            right, theirs = b, lambda: torch.matmul(a, b)
        launch = self.launch(text, {"a": a, "b": b}, scalars, "tf32" if T == "tf32" else None)
        taken = self.medians([launch, theirs])
        launch.wait()
        wanted = torch.matmul(a.double(), right.double())
        errors = [self.error(result, wanted) for result in (*launch.outputs.values(), theirs())]
        del wanted
        alone = [self.sustained(call) for call in (launch, theirs)] if min(M, N, K) >= 2048 else None
        return taken, errors, alone

    def error(self, result, wanted):
        return ((result.double() - wanted).norm() / wanted.norm()).item()

    def operands(self, kind, M, N, K):
        """Of an f32 product."""
        torch = self.torch
        a, b = self.normal(M, K), self.normal(K, N)
        if kind == "positive":
            a, b = a.abs(), b.abs()
        elif kind == "wide range":
            a, b = (x * torch.exp2(torch.empty_like(x).uniform_(-15, 15)) for x in (a, b))
        elif kind == "cancelling":  # the second half of the terms is the first half's, negated, and a thousandth more
            a[:, K // 2:] = -a[:, :K // 2] * (1 + 1e-3 * torch.rand(M, K // 2, device=self.device))
            b[K // 2:] = b[:K // 2]
        elif kind == "other units":  # columns of one, which rows of the other take out again
            units = torch.exp2(torch.empty(K, device=self.device).uniform_(-20, 20))
            a, b = a * units, b / units[:, None]
        elif kind == "large beside zeros":
            a[:, ::16], b[::16] = 1e20, 0
        return a, b

    def f32_product(self, kind, M, N, K, timed):
        """Microseconds, if asked for, of the kernel and of torch.matmul without TF32 on data of a kind, and for each the error of
        the whole and of the worst element, that in relation to the sum of its terms' absolute values."""
        self.use_tf32(False)
        a, b = self.operands(kind, M, N, K)
        launch, theirs = self.launch(text_of("linear/matmul.tgl", "f32"), {"a": a, "b": b}), lambda: a @ b
        taken = self.medians([launch, theirs]) if timed else None
        launch()
        launch.wait()
        wanted, terms = a.double() @ b.double(), a.double().abs() @ b.double().abs()
        return taken, [(self.error(result, wanted), ((result.double() - wanted).abs() / terms).max().item())
                       for result in (*launch.outputs.values(), theirs())]

    def attention_by(self, backend, results, q, k, v, causal):
        """PyTorch's attention by one backend, its result put into `results`; None where the backend does not serve the sizes."""
        from torch.nn.attention import SDPBackend, sdpa_kernel

        def call():
            with sdpa_kernel(getattr(SDPBackend, backend)):
                results[backend] = self.torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        try:
            call()
        except RuntimeError:
            return None
        return call

    def attention(self, file, T, B, H, S, D, causal):
        """Microseconds of the kernel, of cuDNN, flash and memory-efficient attention (None where a backend does not serve the sizes),
        on the same tensors, and by how much the kernel's result differs from the first of these, in relation to it."""
        torch = self.torch
        dtype = {"bf16": torch.bfloat16, "f16": torch.float16}[T]
        q, k, v = (self.normal(B, H, S, D).to(dtype) for _ in range(3))
        launch, results = self.launch(text_of(file, T), {"q": q, "k": k, "v": v}), {}
        peers = ["CUDNN_ATTENTION", "FLASH_ATTENTION"] + (["EFFICIENT_ATTENTION"] if D > 256 else [])
        calls = [launch, *(self.attention_by(peer, results, q, k, v, causal) for peer in peers)]
        taken = self.medians(calls + [None] * (4 - len(calls)))
        launch.wait()
        ours = launch.outputs["o"].float()
        theirs = next(iter(results.values()), ours).float()
        return taken, ((ours - theirs).norm() / theirs.norm()).item()

    def f32_attention(self, text, backends, B, H, S, D, causal):
        """Microseconds of the program in f32 and of PyTorch's attention by each of the backends, without TF32 (None where one does
        not serve the sizes), and their errors in some rows."""
        self.use_tf32(False)
        q, k, v = (self.normal(B, H, S, D) for _ in range(3))
        launch, results = self.launch(text, {"q": q, "k": k, "v": v}), {}
        taken = self.medians([launch, *(self.attention_by(backend, results, q, k, v, causal) for backend in backends)])
        launch.wait()
        found = [launch.outputs["o"], *(results.get(backend) for backend in backends)]
        return taken, self.attention_errors(found, q, k, v, causal)

    def attention_errors(self, results, q, k, v, causal):
        """In up to 1024 rows, drawn at random, of the first head and of the last one together."""
        torch = self.torch
        off, size = [0.0] * len(results), 0.0
        for head in (0, 0), (-1, -1):
            rows = torch.randperm(q.shape[2], device=self.device)[:1024]
            scores = q[head][rows].double() @ k[head].double().T * q.shape[3] ** -0.5
            if causal:
                scores = scores.masked_fill(torch.arange(k.shape[2], device=self.device) > rows[:, None], float("-inf"))
            wanted = torch.softmax(scores, -1) @ v[head].double()
            size += wanted.square().sum().item()
            for place, result in enumerate(results):
                if result is not None:
                    off[place] += (result[head][rows] - wanted).square().sum().item()
        return [None if result is None else (one / size) ** 0.5 for result, one in zip(results, off)]

    def grouped(self, T, N, K, M, E, spread):
        """Microseconds of the kernel, of torch._grouped_mm with and without a sort before it (bf16 alone), and of a loop over
        the matrices, and the kernel's error."""
        torch = self.torch
        dtype = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}[T]
        self.use_tf32(False)
        x = self.normal(N, K).to(dtype)
        w = (self.normal(E, K, M) / K ** 0.5).to(dtype)
        e = torch.randint(0, E, (N,), device=self.device, dtype=torch.int32)
        if spread == "uneven":
            e = torch.where(torch.rand(N, device=self.device) < 0.7, 1, e).to(torch.int32)
        elif spread == "one":
            e = torch.full_like(e, E - 1)
        launch = self.launch(text_of("moe/grouped_linear.tgl", T), {"x": x, "w": w, "e": e})

        def loop():
            y = torch.empty(N, M, device=self.device, dtype=dtype)
            for matrix in range(E):
                rows = (e == matrix).nonzero().squeeze(1)
                y.index_copy_(0, rows, x.index_select(0, rows) @ w[matrix])

        def sort():
            order = torch.argsort(e, stable=True)
            return order, x[order], torch.bincount(e, minlength=E).cumsum(0).to(torch.int32)

        def with_sort():
            order, rows, ends = sort()
            y = torch.empty(N, M, device=self.device, dtype=dtype)
            y[order] = torch._grouped_mm(rows, w, offs=ends)
        calls = [launch, None, None, loop]
        if T == "bf16":
            _, rows, ends = sort()
            calls[1:3] = with_sort, lambda: torch._grouped_mm(rows, w, offs=ends)
        taken = self.medians(calls)
        launch.wait()
        off, size = 0.0, 0.0
        for matrix in range(E):
            wanted = x[e == matrix].double() @ w[matrix].double()
            off += (launch.outputs["y"][e == matrix] - wanted).square().sum().item()
            size += wanted.square().sum().item()
        return taken, (off / size) ** 0.5

    def along(self, text, theirs, shape):
        """Microseconds of the program on x and of torch's call, the largest error in relation to the largest result, and
        whether another call gives the same bits."""
        torch = self.torch
        x = self.normal(*shape)
        launch = self.launch(text, {"x": x})
        launch()
        launch.wait()
        first, wanted = launch.outputs["y"].clone(), theirs(torch, x.double())
        error = ((first - wanted).abs().max() / wanted.abs().max()).item()
        del wanted
        taken = self.medians([launch, lambda: theirs(torch, x)])
        launch.wait()
        return taken, error, torch.equal(first, launch.outputs["y"])

    def graphs(self, file, sizes):
        """The case of `tegula bench` with CUDA graphs: microseconds and errors of both sides, and the ratio."""
        command = [self.tegula, "bench", "--target=cuda", "--json", "--deadline=100", f"--seconds={self.seconds}", "--graph=30",
                   KERNELS / file, "-d", sizes]
        done = subprocess.run(command, capture_output=True, text=True)
        for line in done.stdout.splitlines():
            case = json.loads(line) if line.startswith("{") else {}
            if case.get("event") != "case":
                continue
            if not case.get("passed") or not case.get("timed"):
                raise RuntimeError(json.dumps(case))
            output = case["outputs"][0]
            return ([case[key]["median"] * 1e6 for key in ("time", "libtorchTime")],
                    [output[side]["norm"] for side in ("kernel", "libtorch")], case["speedup"])
        raise RuntimeError(f"exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-200:]}")

    def compile_times(self, file):
        """Milliseconds from source to cubin, as a process and by the C interface in this one, nothing cached, medians of 9."""
        from tegula_eval.program import runner
        os.environ["TEGULA_CACHE_DIR"] = ""
        taken, inside = [], []
        for _ in range(9):
            with tempfile.TemporaryDirectory() as folder:
                begin = time.perf_counter()
                subprocess.run([self.tegula, "compile", "--target=sm_90a", "--emit=cubin", KERNELS / file, "-o",
                                f"{folder}/out.cubin"], check=True, capture_output=True)
                taken.append((time.perf_counter() - begin) * 1e3)
            begin = time.perf_counter()
            runner.Program((KERNELS / file).read_text()).compile({}, target=self.device)
            inside.append((time.perf_counter() - begin) * 1e3)
        return statistics.median(taken), statistics.median(inside)
