#!/usr/bin/env python3
"""libtegula and PyTorch, each with an LLVM of its own, in one process.

  torch_process.py --library=libtegula.so [--target=cpu|cuda]

Imports torch first, lets its LLVM work (a fused TorchScript function), then compiles Tegula kernels and runs
them on the memory of torch's tensors: on the CPU, or on the current device on a stream of torch's, with a
workspace from torch's allocator. Exit code 0 where results agree, 77 where torch, or the device, is absent.
"""
import argparse
import ctypes
import sys
import threading

try:
    import torch
except (ImportError, OSError) as error:
    print("skipped: no torch:", error)
    sys.exit(77)

SOURCE = b"""
kernel fused_linear(x: T[M, K], w: T[N, K], b: f32[N], scale: f32) -> (y: f32[M, N]) {
  h[i, j] = sum(x[i, k] * w[j, k] for k) + b[j]
  y[i, j] = scale * softmax(gelu(h[i, j]), over=j)
}

kernel gather(t: f32[V, D], ids: i64[N]) -> (y: f32[N, D]) {
  y[i, d] = t[ids[i], d]
}
"""
WRONG_CALL, WRONG_RESULT = 2, 4


class Setting(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class ContextOptions(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("num_threads", ctypes.c_uint), ("device", ctypes.c_int)]


class CompileOptions(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("kernel", ctypes.c_char_p), ("target", ctypes.c_char_p),
                ("settings", ctypes.POINTER(Setting)), ("num_settings", ctypes.c_size_t),
                ("ellipsis_rank", ctypes.c_uint), ("optionals", ctypes.c_void_p),
                ("num_optionals", ctypes.c_size_t), ("checked", ctypes.c_int), ("stages", ctypes.c_void_p),
                ("num_stages", ctypes.c_size_t)]


class LaunchOptions(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("stream", ctypes.c_void_p),
                ("workspace", ctypes.c_void_p), ("workspace_bytes", ctypes.c_size_t)]


class Value(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("rank", ctypes.c_size_t),
                ("dtype", ctypes.c_int), ("number", ctypes.c_double), ("integer", ctypes.c_int64)]


DTYPES = {torch.float64: 0, torch.float32: 1, torch.float16: 2, torch.bfloat16: 3, torch.int64: 6}
NAMES = {torch.float32: b"f32", torch.float16: b"f16", torch.bfloat16: b"bf16"}


def value(argument):
    if isinstance(argument, float):
        return Value(number=argument)
    rank = argument.dim()
    sizes = ctypes.c_int64 * max(rank, 1)
    return Value(data=argument.data_ptr(), shape=sizes(*argument.shape), strides=sizes(*argument.stride()),
                 rank=rank, dtype=DTYPES[argument.dtype])


class Tegula:
    def __init__(self, library, target):
        self.lib = ctypes.CDLL(library)
        self.lib.tegula_message_json.restype = ctypes.c_char_p
        self.target = target
        self.context = ctypes.c_void_p()
        options = ContextOptions(ctypes.sizeof(ContextOptions), 0,
                                 torch.cuda.current_device() if target == "cuda" else 0)
        self.must(self.lib.tegula_context_create, ctypes.byref(options), ctypes.byref(self.context))
        self.program = ctypes.c_void_p()
        self.must(self.lib.tegula_parse, SOURCE, ctypes.c_size_t(len(SOURCE)), b"test.tgl",
                  ctypes.byref(self.program))

    def call(self, function, *arguments):
        message = ctypes.c_void_p()
        status = function(*arguments, ctypes.byref(message))
        text = self.lib.tegula_message_json(message).decode()
        self.lib.tegula_message_free(message)
        return status, text

    def must(self, function, *arguments):
        status, text = self.call(function, *arguments)
        assert status == 0, f"status {status}: {text}"

    def compile(self, name, settings=()):
        array = (Setting * max(len(settings), 1))(*[Setting(*one) for one in settings])
        options = CompileOptions(struct_bytes=ctypes.sizeof(CompileOptions), kernel=name,
                                 target=self.target.encode(), settings=array, num_settings=len(settings))
        kernel = ctypes.c_void_p()
        self.must(self.lib.tegula_compile, self.context, self.program, ctypes.byref(options),
                  ctypes.byref(kernel))
        return kernel

    def launch(self, kernel, *arguments):
        values = (Value * len(arguments))(*[value(one) for one in arguments])
        count = ctypes.c_size_t(len(arguments))
        options = LaunchOptions(struct_bytes=ctypes.sizeof(LaunchOptions))
        device = [one.device for one in arguments if isinstance(one, torch.Tensor)][0]
        wanted = ctypes.c_size_t()
        status, text = self.call(self.lib.tegula_infer, kernel, values, count, None, ctypes.byref(wanted))
        if status:
            return status, text
        workspace = torch.empty(wanted.value + 256, dtype=torch.uint8, device=device)
        options.workspace = (workspace.data_ptr() + 255) // 256 * 256
        options.workspace_bytes = wanted.value
        if self.target == "cuda":
            options.stream = torch.cuda.current_stream().cuda_stream
        return self.call(self.lib.tegula_launch, kernel, values, count, ctypes.byref(options))

    def synchronize(self, kernel):
        stream = torch.cuda.current_stream().cuda_stream if self.target == "cuda" else None
        return self.call(self.lib.tegula_synchronize, kernel, ctypes.c_void_p(stream))


def reference(x, w, b, scale):
    return scale * torch.softmax(torch.nn.functional.gelu(x.double() @ w.double().T + b.double()), 1)


def compare(tegula, device, dtype, m, n, k):
    x = torch.randn(m, k, device=device).to(dtype)
    w = torch.randn(n, k, device=device).to(dtype)
    b = torch.randn(n, device=device)
    y = torch.full((m, n), float("nan"), device=device)
    kernel = tegula.compile(b"fused_linear", [(b"T", NAMES[dtype])])
    for _ in range(3):
        status, text = tegula.launch(kernel, x, w, b, y, 0.5)
        assert status == 0, text
    status, text = tegula.synchronize(kernel)
    assert status == 0, text
    error = (y.double() - reference(x, w, b, 0.5)).abs().max().item()
    assert error < 1e-5, f"{dtype} at {m}, {n}, {k}: error {error}"
    if m > 1 and k > 1:
        status, text = tegula.launch(kernel, x.T.contiguous().T, w, b, y, 0.5)
        assert status == WRONG_CALL and "not contiguous" in text, text
    tegula.lib.tegula_free(kernel)


def gather(tegula, device):
    table = torch.randn(10, 4, device=device)
    ids = torch.tensor([1, 9, 3], device=device)
    y = torch.empty(3, 4, device=device)
    kernel = tegula.compile(b"gather")
    status, text = tegula.launch(kernel, table, ids, y)
    assert status == 0, text
    assert tegula.synchronize(kernel)[0] == 0
    assert torch.equal(y, table[ids])
    ids[1] = 77
    status, text = tegula.launch(kernel, table, ids, y)
    if tegula.target == "cuda":
        assert status == 0, text
        status, text = tegula.synchronize(kernel)
    assert status == WRONG_RESULT and "77" in text, text
    assert torch.equal(y[1], torch.zeros(4, device=device))
    assert tegula.synchronize(kernel)[0] == 0
    tegula.lib.tegula_free(kernel)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--target", default="cpu", choices=["cpu", "cuda"])
    args = parser.parse_args()
    if args.target == "cuda" and not torch.cuda.is_available():
        print("skipped: torch sees no CUDA device")
        sys.exit(77)
    device = torch.device(args.target)

    # torch's own compiler first, so that whatever it sets up is there.
    fused = torch.jit.trace(lambda a: torch.sigmoid(a) * a + 1, torch.randn(32, 32, device=device))
    sample = torch.randn(32, 32, device=device)
    for _ in range(3):
        before = fused(sample)

    tegula = Tegula(args.library, args.target)
    dtypes = [torch.float32, torch.float16, torch.bfloat16]

    def work(dtype):
        stream = torch.cuda.Stream() if args.target == "cuda" else None
        with torch.cuda.stream(stream):
            for m, n, k in ((1, 1, 1), (7, 13, 129), (64, 96, 32)):
                compare(tegula, device, dtype, m, n, k)
            gather(tegula, device)

    failures = []

    def guarded(dtype):
        try:
            work(dtype)
        except BaseException as error:  # reported below, on the main thread
            failures.append(error)

    work(torch.float32)
    threads = [threading.Thread(target=guarded, args=(dtype,)) for dtype in dtypes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    assert torch.equal(fused(sample), before)
    if args.target == "cuda":
        assert torch.cuda.current_device() == 0
    print(f"torch {torch.__version__} and Tegula agree on {args.target}")


if __name__ == "__main__":
    main()
