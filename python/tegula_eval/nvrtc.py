"""CUDA C++ from a string, for answers in CUDA: compiled by NVRTC, launched on torch's tensors and current stream.

    lib = nvrtc.compile(SOURCE)                               # every kernel is `extern "C" __global__`
    lib.add_rows((blocks,), (256,), x, y, n, 0.5, shared=0)   # grid, block, the kernel's arguments

Needs neither a CUDA toolkit nor a C++ compiler: the wheels of torch bring NVRTC and headers such as cuda_fp16.h, and
docs/design/dependencies.md names the packages that mma.h, cooperative_groups.h and CUB need. The driver says how large each parameter
is, so that Python's numbers take its size: an int becomes int or long long, a float float or double. A number that does not fit
is an error.
"""
from __future__ import annotations

import ctypes as c
import functools
import math
import os
import sysconfig
from pathlib import Path

import torch

MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
MOST_EXTENT = (1 << 31) - 1
ALLOWED_SHARED_BYTES = 48 << 10  # without that attribute


class CudaError(RuntimeError):
    """NVRTC's log, or what the driver says of a launch."""


def compile(source: str, *options: str) -> "Kernels":
    """The kernels of a text. It is compiled when the first of them is launched or looked up; `options` are nvcc's names that
    NVRTC knows, such as --use_fast_math. The same text is compiled once in a process."""
    return Kernels(source, options)


class Kernels:
    def __init__(self, source: str, options: tuple[str, ...]):
        self._source, self._options, self._found = source, options, {}

    def __getattr__(self, name: str) -> "Kernel":
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._found:
            self._found[name] = Kernel(_module(self._source, self._options, _architecture()), name)
        return self._found[name]


class Kernel:
    def __init__(self, module: c.c_void_p, name: str):
        self.name, self._function, self._shared = name, c.c_void_p(), ALLOWED_SHARED_BYTES
        try:
            _check(_driver().cuModuleGetFunction(c.byref(self._function), module, name.encode()))
        except CudaError as error:
            raise CudaError(f'there is no kernel {name}: is it `extern "C" __global__`? ({error})') from None
        self._sizes = self._parameter_sizes()

    def _parameter_sizes(self) -> list[int]:
        sizes: list[int] = []
        offset, size = c.c_size_t(), c.c_size_t()
        while _driver().cuFuncGetParamInfo(self._function, c.c_size_t(len(sizes)), c.byref(offset), c.byref(size)) == 0:
            sizes.append(size.value)
        return sizes

    def __call__(self, grid, block, *arguments, shared: int = 0, cooperative: bool = False) -> None:
        """`grid` and `block`: an int, or up to three; `shared`: bytes of dynamic shared memory; `cooperative`: all blocks
        are resident, so that the grid can wait for itself. Does not wait for the kernel. Raises CudaError."""
        held = pack(self.name, self._sizes, arguments)
        blocks, threads = extents(self.name, "grid", grid), extents(self.name, "block", block)
        if not 0 <= shared < 1 << 31:
            raise CudaError(f"{self.name}: shared is {shared}, not a number of bytes")
        pointers = (c.c_void_p * max(len(held), 1))(*[c.cast(c.pointer(one), c.c_void_p) for one in held])
        if shared > self._shared:
            _check(_driver().cuFuncSetAttribute(self._function, MAX_DYNAMIC_SHARED, shared))
            self._shared = shared
        launch = _driver().cuLaunchCooperativeKernel if cooperative else _driver().cuLaunchKernel
        rest = () if cooperative else (None,)
        _check(launch(self._function, *blocks, *threads, shared,
                      c.c_void_p(torch.cuda.current_stream().cuda_stream), pointers, *rest), f"{self.name}: ")


def extents(name: str, what: str, given) -> tuple[int, int, int]:
    """A grid or block. Raises CudaError where an extent is no positive number of 31 bits: the driver would take its lowest
    bits."""
    one = (given,) if isinstance(given, (int, float)) else tuple(given)
    for extent in one:
        if not 0 < extent <= MOST_EXTENT or extent != int(extent):
            one = ()
    if not 1 <= len(one) <= 3:
        raise CudaError(f"{name}: the {what} has one to three extents, whole numbers from 1 to {MOST_EXTENT}; got {given!r}")
    return tuple(map(int, one)) + (1,) * (3 - len(one))


def pack(name: str, sizes: list[int], arguments: tuple) -> list:
    """The arguments as values of C of the parameters' sizes. Raises CudaError."""
    if len(arguments) != len(sizes):
        raise CudaError(f"{name} has {len(sizes)} parameters, {len(arguments)} arguments were given")
    held = []
    for one, size in zip(arguments, sizes):
        try:
            held.append(_value(one, size))
        except CudaError as error:
            raise CudaError(f"{name}: argument {len(held)} is {error}") from None
    return held


INTEGERS = {1: c.c_int8, 2: c.c_int16, 4: c.c_int32, 8: c.c_int64}
FLOATS = {4: c.c_float, 8: c.c_double}
POINTER = {8: c.c_void_p}


def _value(one, size: int):
    """Raises CudaError: what the argument is, and why a parameter of `size` bytes does not take it."""
    kinds = POINTER if one is None or isinstance(one, torch.Tensor) else \
        INTEGERS if isinstance(one, int) else FLOATS if isinstance(one, float) else {}
    if size not in kinds:
        raise CudaError(f"{type(one).__name__}, its parameter has {size} bytes")
    if isinstance(one, torch.Tensor):
        if one.device.type != "cuda":
            raise CudaError(f"a tensor on {one.device}, not on the GPU")
        one = one.data_ptr()
    elif kinds is INTEGERS and not -1 << 8 * size - 1 <= one < 1 << 8 * size:  # the driver does not tell whether it has a sign
        raise CudaError(f"{one}, which an integer of {size} bytes does not hold")
    held = kinds[size](one)
    if kinds is FLOATS and math.isinf(held.value) and not math.isinf(one):
        raise CudaError(f"{one}, which a float of {size} bytes does not hold")
    return held


@functools.cache
def _driver() -> c.CDLL:
    return c.CDLL("libcuda.so.1")


def _check(status: int, what: str = "") -> None:
    if status:
        text = c.c_char_p()
        _driver().cuGetErrorString(status, c.byref(text))
        raise CudaError(f"{what}{(text.value or b'error %d' % status).decode()}")


@functools.cache
def _architecture() -> str:
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}" + "a" * (major >= 9)


@functools.cache
def _module(source: str, options: tuple[str, ...], architecture: str) -> c.c_void_p:
    torch.cuda.current_stream()  # torch's context is the one that kernels are loaded into
    torch.empty(1, device="cuda")
    image, module = cubin(source, architecture, options), c.c_void_p()
    _check(_driver().cuModuleLoadData(c.byref(module), image))
    return module


def _packages() -> list[Path]:
    """Folders of NVIDIA's Python packages, and the toolkit's, where there is one."""
    roots = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")} | {Path(torch.__file__).parent.parent}
    found = [folder for root in sorted(roots) for folder in sorted(root.glob("nvidia/*")) if folder.is_dir()]
    return found + [Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda")]


def include_folders() -> list[Path]:
    """Of cuda_fp16.h, mma.h and the like, and of CUB and libcu++, where they are installed."""
    folders = [folder / "include" for folder in _packages()]
    return [one for folder in folders for one in (folder, folder / "cccl") if one.is_dir()]


@functools.cache
def _compiler() -> c.CDLL:
    major = (torch.version.cuda or "13").partition(".")[0]
    name = f"libnvrtc.so.{major}"
    for path in [name, *(str(folder / lib / name) for folder in _packages() for lib in ("lib", "lib64"))]:
        try:
            return c.CDLL(path)
        except OSError:
            continue
    raise CudaError(f"{name} is not there: it comes with torch for CUDA")


def cubin(source: str, architecture: str, options: tuple[str, ...] = ()) -> bytes:
    """Machine code for an architecture such as sm_90a; no GPU is needed. Raises CudaError with the compiler's log."""
    library, program, size = _compiler(), c.c_void_p(), c.c_size_t()
    given = [f"--gpu-architecture={architecture}", "--std=c++17", "--device-as-default-execution-space",
             *(f"--include-path={folder}" for folder in include_folders()), *options]
    status = library.nvrtcCreateProgram(c.byref(program), source.encode(), b"answer.cu", 0, None, None)
    if status:
        raise CudaError(f"NVRTC does not start: error {status}")
    try:
        status = library.nvrtcCompileProgram(program, len(given), (c.c_char_p * len(given))(*map(str.encode, given)))
        if status:
            library.nvrtcGetProgramLogSize(program, c.byref(size))
            log = c.create_string_buffer(size.value)
            library.nvrtcGetProgramLog(program, log)
            raise CudaError("the source does not compile:\n" + log.value.decode(errors="replace"))
        library.nvrtcGetCUBINSize(program, c.byref(size))
        image = c.create_string_buffer(size.value)
        library.nvrtcGetCUBIN(program, image)
        return image.raw
    finally:
        library.nvrtcDestroyProgram(c.byref(program))
