#!/usr/bin/env python3
"""Kernels in CUDA C++ and the same in Tegula: how long they take, and how long their compilers do.

    bench/cuda/run.py --tegula=build/release/bin/tegula [NAME...]

builds each twin with nvcc, holds both results against PyTorch's (matmul in float64), times them in turns with the L2
cache emptied before each, and times nvcc and tegula as processes from source to cubin. A table is printed; exit code 0,
3 where nvcc, PyTorch, a device or libtegula is missing, 4 where a result is wrong. PYTHONPATH=python lets it find
tegula_eval, $TEGULA_LIBRARY names libtegula.so where it is not in build/release/lib or build/dev/lib."""

from __future__ import annotations

import argparse
import concurrent.futures
import ctypes
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, NamedTuple

HERE = pathlib.Path(__file__).resolve().parent


class Twin(NamedTuple):
    sizes: dict[str, int]  # in the order in which the twin takes them
    inputs: Callable[[Any, dict[str, int]], list]
    reference: Callable[..., Any]
    scratch: Callable[[dict[str, int]], int] = lambda n: 0  # floats that the twin needs besides
    tolerance: float = 1e-5  # of the norm of the error to that of the result


def normal(*dims: str) -> Callable[[Any, dict[str, int]], Any]:
    return lambda torch, n: torch.randn([n.get(d) or int(d) for d in dims], device="cuda")


def integers(dim: str, below: str) -> Callable[[Any, dict[str, int]], Any]:
    return lambda torch, n: torch.randint(0, n[below], [n[dim]], device="cuda")


def all_of(*makers: Callable) -> Callable[[Any, dict[str, int]], list]:
    return lambda torch, n: [make(torch, n) for make in makers]


def twins(torch: Any) -> dict[str, Twin]:
    f = torch.nn.functional
    return {
        "gelu": Twin({"N": 1 << 25}, all_of(normal("N")), lambda x: f.gelu(x, approximate="tanh")),
        "softmax": Twin({"M": 4096, "N": 4096}, all_of(normal("M", "N")), lambda x: f.softmax(x, 1)),
        "layer_norm": Twin({"M": 4096, "N": 4096}, all_of(normal("M", "N"), normal("N"), normal("N")),
                           lambda x, w, b: f.layer_norm(x, x.shape[1:], w, b)),
        "rms_norm": Twin({"M": 4096, "N": 4096}, all_of(normal("M", "N"), normal("N")),
                         lambda x, w: f.rms_norm(x, x.shape[1:], w, 1e-6)),
        "sum_columns": Twin({"M": 16384, "N": 2048}, all_of(normal("M", "N")), lambda x: x.double().sum(0),
                            lambda n: 64 * n["N"]),
        "transpose": Twin({"M": 8192, "N": 4096}, all_of(normal("M", "N")), lambda x: x.t()),
        "max_pool": Twin({"N": 16, "C": 64, "H": 224, "W": 224}, all_of(normal("N", "C", "H", "W")),
                         lambda x: f.max_pool2d(x, 3, 2, 1)),
        "depthwise_conv": Twin({"N": 16, "C": 128, "H": 128, "W": 128},
                               all_of(normal("N", "C", "H", "W"), normal("C", "3", "3")),
                               lambda x, w: f.conv2d(x.double(), w.double()[:, None], padding=1, groups=x.shape[1])),
        "matmul": Twin({"M": 4096, "N": 4096, "K": 4096}, all_of(normal("M", "K"), normal("K", "N")),
                       lambda a, b: a.double() @ b.double()),
        "embedding": Twin({"L": 32768, "V": 50000, "D": 768}, all_of(integers("L", "V"), normal("V", "D")),
                          lambda ids, table: table[ids]),
        "cumsum": Twin({"M": 4096, "N": 8192}, all_of(normal("M", "N")), lambda x: x.double().cumsum(1)),
        "cross_entropy": Twin({"B": 4096, "C": 32000}, all_of(normal("B", "C"), integers("B", "C")),
                              lambda x, t: f.cross_entropy(x.double(), t), lambda n: n["B"]),
    }


def find_nvcc() -> str:
    for place in (shutil.which("nvcc"), os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", "nvcc")):
        if place and os.access(place, os.X_OK):
            return place
    return ""


def seconds_of(command: list[str], **environment: str) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **environment})
    return time.perf_counter() - start


class Clock:
    """Times of two functions on the device, in turns."""

    def __init__(self, torch: Any):
        self.torch = torch
        self.other = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")

    def once(self, work: Callable[[], Any]) -> float:
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.other.zero_()  # empties the cache, and keeps the device busy while Python queues the rest
        self.other.zero_()
        begin.record()
        work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3

    def both(self, one: Callable, other: Callable, turns: int) -> tuple[float, float, float]:
        """Medians in microseconds, and that of the quotients other / one."""
        pairs = [(self.once(one), self.once(other)) for _ in range(turns + 3)][3:]
        return (statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs),
                statistics.median(b / a for a, b in pairs))


def error_of(torch: Any, result: Any, truth: Any) -> float:
    difference, size = (result.double() - truth.double()).norm(), truth.double().norm()
    return float(difference / size) if math.isfinite(float(difference)) else math.inf


def load_twin(torch: Any, library: pathlib.Path, twin: Twin, inputs: list, like: Any) -> tuple[Callable, Any]:
    call = ctypes.CDLL(str(library)).twin
    output = torch.full_like(like, math.nan, dtype=torch.float32).contiguous()
    outputs = [output, torch.empty(max(twin.scratch(twin.sizes), 1), device="cuda")]
    pointers = [(ctypes.c_void_p * len(one))(*(t.data_ptr() for t in one)) for one in (inputs, outputs)]
    sizes = (ctypes.c_longlong * len(twin.sizes))(*twin.sizes.values())

    def run() -> None:
        code = call(pointers[0], pointers[1], sizes, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        if code:
            raise RuntimeError(f"the twin's launch gives CUDA error {code}")

    run.keeps = (inputs, outputs)  # whose addresses it has
    return run, output


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--tegula", default=str(HERE.parents[1] / "build/release/bin/tegula"))
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--no-compile-times", action="store_true")
    options = parser.parse_args()
    nvcc = find_nvcc()
    if not nvcc:
        print("run.py: there is no nvcc in PATH or $CUDA_HOME/bin", file=sys.stderr)
        return 3
    try:
        import torch
        from tegula_eval.program import runner
        runner.version()
    except (ImportError, OSError) as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 3
    if not torch.cuda.is_available():
        print("run.py: PyTorch finds no CUDA device", file=sys.stderr)
        return 3
    table = twins(torch)
    names = options.names or list(table)
    for name in names:
        if name not in table:
            parser.error(f"there is no twin '{name}'; there are {', '.join(table)}")
    clock, wrong, quotients = Clock(torch), 0, []
    print(f"{'kernel':16}{'sizes':28}{'ours us':>9}{'nvcc us':>9}{'nvcc/ours':>10}{'ours ms':>9}{'nvcc ms':>9}")
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(4) as pool:
        build = [nvcc, "-O3", f"-arch={options.arch}", "-std=c++17"]

        def library(name: str) -> pathlib.Path:
            made = pathlib.Path(folder, name + ".so")
            subprocess.run([*build, "-shared", "-Xcompiler", "-fPIC", "-o", made, HERE / (name + ".cu")], check=True)
            return made

        libraries = dict(zip(names, pool.map(library, names)))
        for name in names:
            twin, program = table[name], HERE / "programs" / (name + ".tgl")
            torch.manual_seed(0)
            inputs = twin.inputs(torch, twin.sizes)
            truth = twin.reference(*inputs)
            kernel = runner.Program(program.read_text(), program.name).compile({}, target="cuda")
            given = [one.name.decode() for one in kernel.arguments if runner.ROLES[one.role] == "in"]
            ours_run = kernel.prepare(dict(zip(given, inputs, strict=True)))
            run, output = load_twin(torch, libraries[name], twin, inputs, truth)
            run()
            ours_run()
            errors = [error_of(torch, next(iter(ours_run.outputs.values())), truth), error_of(torch, output, truth)]
            ours, theirs, quotient = clock.both(ours_run, run, options.turns)
            quotients.append(quotient)
            compile_times = ["", ""]
            if not options.no_compile_times:
                sizes = ",".join(f"{key}={value}" for key, value in twin.sizes.items())
                commands = ([options.tegula, "compile", program, "-d", sizes, f"--target={options.arch}",
                             "--emit=cubin", "-o", os.path.join(folder, "ours.cubin")],
                            [*build, "-cubin", "-o", os.path.join(folder, "nvcc.cubin"), HERE / (name + ".cu")])
                compile_times = [f"{seconds_of(list(map(str, one)), TEGULA_CACHE_DIR='') * 1e3:.0f}"
                                 for one in commands]
            text = " ".join(f"{key}={value}" for key, value in twin.sizes.items())
            print(f"{name:16}{text:28}{ours:9.1f}{theirs:9.1f}{quotient:9.2f}x{compile_times[0]:>9}"
                  f"{compile_times[1]:>9}", flush=True)
            for who, error in zip(("ours", "nvcc"), errors):
                if not error <= twin.tolerance:
                    wrong += 1
                    print(f"  {who}: the error is {error:.2e} of the result", flush=True)
            del inputs, truth, run, output, kernel, ours_run
    print(f"geometric mean over {len(quotients)}: {math.exp(statistics.mean(map(math.log, quotients))):.2f}x")
    return 4 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
