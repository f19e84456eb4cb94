#!/usr/bin/env python3
"""Shows that libtegula_torch runs a reference as fast, and as slow, as Python's eager mode.

Both run in this process on the same libtorch, on the same tensors and threads, in turns. The ratio of the
medians must lie within the tolerance for every workload; a workload outside it is measured again, since one
busy moment of the machine is no finding.

    check_eager_overhead.py build/dev/lib/libtegula_torch.so [--tolerance=0.05] [--python=.venv/bin/python]

Needs a Python in which `import torch` works, with the libtorch that the library was built against; exits
with 77 where it does not.
"""
import argparse
import ctypes as c
import os
import statistics
import sys
import time

for argument in sys.argv[1:]:
    if argument.startswith("--python="):
        python = argument.removeprefix("--python=")
        sys.argv.remove(argument)
        os.execv(python, [python] + sys.argv)
try:
    import torch
except (ImportError, OSError) as missing:
    print(f"skipped: this Python cannot import torch: {missing}")
    sys.exit(77)


class Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("dtype", c.c_int), ("device", c.c_int32), ("rank", c.c_int32),
                ("sizes", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64))]


class Value(c.Structure):
    _fields_ = [("kind", c.c_int), ("tensor", Tensor), ("integer", c.c_int64), ("real", c.c_double),
                ("integers", c.POINTER(c.c_int64))]


ERROR = c.POINTER(c.c_char_p)


class Api(c.Structure):
    """The head of TegulaTorchApi in bench/reference/TorchRef.h, with what is used here typed."""
    _fields_ = [("abi", c.c_int32), ("torchVersion", c.CFUNCTYPE(c.c_char_p)), ("cudaDevices", c.c_void_p),
                ("threads", c.CFUNCTYPE(c.c_int32)), ("setThreads", c.CFUNCTYPE(None, c.c_int32)),
                ("freeString", c.c_void_p), ("compile", c.CFUNCTYPE(c.c_void_p, c.c_char_p, ERROR))] + [
                    (name, c.c_void_p) for name in ("load", "freeProgram", "parameterCount", "parameterName",
                                                    "parameterType", "call", "outputCount", "output",
                                                    "readOutput", "freeCall")] + [
                    ("time", c.CFUNCTYPE(c.c_int32, c.c_void_p, c.c_char_p, c.POINTER(Value), c.c_int32,
                                         c.c_int32, c.c_int32, c.POINTER(c.c_double), ERROR))]


WORKLOADS = {
    "pointwise": ("return torch.sigmoid(x) * y + torch.relu(x)", lambda: [(1024, 1024), (1024, 1024)]),
    "softmax": ("return torch.softmax(x, 1) * y", lambda: [(2048, 512), (2048, 512)]),
    "matmul": ("return torch.matmul(x, y)", lambda: [(512, 512), (512, 512)]),
    "conv": ("return torch.relu(torch.conv2d(x, y, None, [1, 1], [1, 1]))", lambda: [(4, 32, 56, 56), (32, 32, 3, 3)]),
}


def eager(function, arguments):
    start = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - start


def measure(api, body, shapes, rounds):
    scope = {"torch": torch}
    exec(f"def ref(x, y):\n    {body}\n", scope)
    tensors = [torch.randn(shape) for shape in shapes]
    values = (Value * len(tensors))()
    keep = []
    for value, tensor in zip(values, tensors):
        sizes = (c.c_int64 * tensor.dim())(*tensor.shape)
        keep.append(sizes)
        value.tensor = Tensor(tensor.data_ptr(), 1, -1, tensor.dim(), sizes, None)
    error = c.c_char_p()
    program = api.compile(f"def ref(x, y):\n    {body}\n".encode(), c.byref(error))
    if not program:
        sys.exit(f"the reference does not compile: {error.value.decode()}")
    seconds = (c.c_double * 1)()
    ours, pythons = [], []
    with torch.inference_mode():
        for turn in range(rounds + 3):
            mine = eager(scope["ref"], tensors)
            if api.time(program, b"ref", values, len(tensors), 1, 1, seconds, c.byref(error)):
                sys.exit(error.value.decode())
            if turn >= 3:
                pythons.append(mine)
                ours.append(seconds[0])
    return statistics.median(ours), statistics.median(pythons)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("library")
    options.add_argument("--tolerance", type=float, default=0.05)
    options.add_argument("--rounds", type=int, default=60)
    options = options.parse_args()
    library = c.CDLL(options.library)
    library.tegula_torch_api.restype = c.POINTER(Api)
    api = library.tegula_torch_api().contents
    if api.abi not in (1, 2, 3, 4):  # what follows `time` in 2 and 4, and the types of 3, are not used here
        sys.exit(f"the library's ABI is {api.abi}; this script knows 1 to 4")
    api.setThreads(torch.get_num_threads())
    failed = []
    for name, (body, shapes) in WORKLOADS.items():
        for attempt in range(4):
            ours, pythons = measure(api, body, shapes(), options.rounds * (attempt + 1))
            ratio = ours / pythons
            print(f"{name:10s} library {ours * 1e6:9.1f} us  Python {pythons * 1e6:9.1f} us  ratio {ratio:.3f}")
            # Slower than Python's eager would flatter kernels: that is what must not be. Python's own
            # overhead lets the library be a little faster on small workloads.
            if 1 / (1 + 3 * options.tolerance) <= ratio <= 1 + options.tolerance:
                break
        else:
            failed.append(name)
    if failed:
        sys.exit(f"outside the tolerance of {options.tolerance:.0%}: {', '.join(failed)}")


if __name__ == "__main__":
    main()
