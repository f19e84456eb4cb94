"""Compiles and runs programs: the seam between the evaluation and the compiler.

All that the evaluation needs is here: `Program`, `Kernel`, `Refused`. It is libtegula through ctypes; tensors of
torch are handed over by address, on the CPU or on the current CUDA device and stream.
"""
from __future__ import annotations

import ctypes as c
import functools
import json
from dataclasses import dataclass, field

import torch

from .library import library_path, package_path

STATUS = {1: "wrong program", 2: "wrong call", 3: "missing", 4: "wrong result", 70: "internal"}
ROLES = ("in", "inout", "out", "scalar", "constant")
_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2,
           torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, None, None, torch.bool,
           torch.uint16, torch.uint32, torch.uint64)
_NUMBER = {dtype: number for number, dtype in enumerate(_DTYPES) if dtype is not None}
_NAMES = ("f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u8", "i4", "u4", "bool",
          "u16", "u32", "u64")
DTYPE_NAMES = {dtype: name for dtype, name in zip(_DTYPES, _NAMES) if dtype is not None}


class Refused(Exception):
    """The compiler did not take a program or a call: status, and diagnostics as records."""

    def __init__(self, status: int, records: list[dict]):
        self.status, self.records = status, records
        errors = [one for one in records if one.get("severity") == "error"] or records
        super().__init__("; ".join(one.get("message", "") for one in errors[:3]) or STATUS.get(status, "?"))

    @property
    def kind(self) -> str:
        return STATUS.get(self.status, "internal")

    @property
    def codes(self) -> list[str]:
        return list(dict.fromkeys(one["code"] for one in self.records
                                  if one.get("severity") == "error" and one.get("code")))


@dataclass(frozen=True)
class Parameter:
    name: str
    role: str  # in, inout, out, scalar, constant
    type: str
    dims: tuple[str, ...] = ()
    default: str | None = None


class _Info(c.Structure):
    _fields_ = [("name", c.c_char_p), ("role", c.c_int), ("type", c.c_char_p), ("rank", c.c_size_t),
                ("default", c.c_char_p)]


class _Argument(c.Structure):
    _fields_ = [("name", c.c_char_p), ("role", c.c_int), ("dtype", c.c_int), ("rank", c.c_size_t)]


class _Setting(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", c.c_char_p)]


class _ContextOptions(c.Structure):
    _fields_ = [("struct_bytes", c.c_size_t), ("num_threads", c.c_uint), ("device", c.c_int)]


class _CompileOptions(c.Structure):
    _fields_ = [("struct_bytes", c.c_size_t), ("kernel", c.c_char_p), ("target", c.c_char_p),
                ("settings", c.POINTER(_Setting)), ("num_settings", c.c_size_t), ("ellipsis_rank", c.c_uint),
                ("optionals", c.POINTER(c.c_char_p)), ("num_optionals", c.c_size_t), ("checked", c.c_int),
                ("stages", c.c_void_p), ("num_stages", c.c_size_t), ("any_sizes", c.c_int),
                ("dependent_launches", c.c_int), ("tuned", c.c_int), ("precision", c.c_char_p)]


class _LaunchOptions(c.Structure):
    _fields_ = [("struct_bytes", c.c_size_t), ("stream", c.c_void_p), ("workspace", c.c_void_p),
                ("workspace_bytes", c.c_size_t)]


class _Value(c.Structure):
    _fields_ = [("data", c.c_void_p), ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)),
                ("rank", c.c_size_t), ("dtype", c.c_int), ("number", c.c_double), ("integer", c.c_int64)]


@functools.cache
def _library() -> c.CDLL:
    library = c.CDLL(str(library_path()))
    pointer = c.c_void_p
    for name, result, arguments in (
            ("version", c.c_char_p, []), ("message_json", c.c_char_p, [pointer]), ("message_free", None, [pointer]),
            ("num_kernels", c.c_size_t, [pointer]), ("num_parameters", c.c_size_t, [pointer, c.c_size_t]),
            ("parameter", _Info, [pointer, c.c_size_t, c.c_size_t]),
            ("parameter_dim", c.c_char_p, [pointer, c.c_size_t, c.c_size_t, c.c_size_t]),
            ("num_arguments", c.c_size_t, [pointer]), ("argument", _Argument, [pointer, c.c_size_t]),
            ("describe", c.c_char_p, [pointer]), ("llvm_version", c.c_char_p, []),
            ("stage", c.c_char_p, [pointer, c.c_char_p]), ("program_free", None, [pointer]), ("free", None, [pointer])):
        function = getattr(library, f"tegula_{name}")
        function.restype, function.argtypes = result, arguments
    return library


def version() -> str:
    return _library().tegula_version().decode()


def llvm_version() -> str:
    return _library().tegula_llvm_version().decode()


def _call(function, *arguments) -> list[dict]:
    message = c.c_void_p()
    status = function(*arguments, c.byref(message))
    text = _library().tegula_message_json(message)
    _library().tegula_message_free(message)
    records = [json.loads(line) for line in (text or b"").decode(errors="replace").splitlines() if line.strip()]
    if status:
        raise Refused(status, records)
    return records


@functools.cache
def _context(threads: int, device: int) -> c.c_void_p:
    context = c.c_void_p()
    options = _ContextOptions(c.sizeof(_ContextOptions), threads, device)
    _call(_library().tegula_context_create, c.byref(options), c.byref(context))
    return context


class Program:
    """A parsed text. Raises Refused where it is no program."""

    def __init__(self, text: str, name: str = "program.tgl"):
        self._handle = c.c_void_p()
        data = text.encode()
        _call(_library().tegula_parse, data, c.c_size_t(len(data)), name.encode(), c.byref(self._handle))
        self.parameters = self._parameters()

    def __del__(self):
        _library().tegula_program_free(self._handle)

    def _parameters(self) -> list[Parameter]:
        library = _library()
        kernels = library.tegula_num_kernels(self._handle)
        if not kernels:
            raise Refused(1, [{"severity": "error", "message": "the program has no kernel"}])
        entry, found = kernels - 1, []
        for place in range(library.tegula_num_parameters(self._handle, entry)):
            info = library.tegula_parameter(self._handle, entry, place)
            role = ROLES[info.role]
            dims = () if role in ("scalar", "constant") else tuple(
                library.tegula_parameter_dim(self._handle, entry, place, dim).decode() for dim in range(info.rank))
            found.append(Parameter(info.name.decode(), role, info.type.decode(), dims,
                                   info.default.decode() if info.default is not None else None))
        return found

    def check(self) -> None:
        """Raises Refused with everything that `tegula check` finds wrong."""
        _call(_library().tegula_check, self._handle, None)

    def compile(self, settings: dict[str, str], optionals: list[str] = (), ellipsis_rank: int = 0,
                target: str = "cpu", threads: int = 0, checked: bool = False,
                stages: tuple[str, ...] = (), precision: str | None = None) -> "Kernel":
        """The last kernel; `stages`: whose text Kernel.stage shall give; `precision`: f32, tf32, conv_tf32 or bf16, for a kernel
        that does not say. Raises Refused."""
        pairs = (_Setting * max(len(settings), 1))(
            *[_Setting(name.encode(), value.encode()) for name, value in settings.items()])
        names = (c.c_char_p * max(len(optionals), 1))(*[name.encode() for name in optionals])
        options = _CompileOptions(
            struct_bytes=c.sizeof(_CompileOptions), target=target.encode(), settings=pairs,
            num_settings=len(settings), ellipsis_rank=ellipsis_rank, optionals=names,
            num_optionals=len(optionals), checked=int(checked), num_stages=len(stages),
            precision=precision.encode() if precision else None,
            stages=c.cast((c.c_char_p * max(len(stages), 1))(*[name.encode() for name in stages]), c.c_void_p))
        handle = c.c_void_p()
        device = torch.cuda.current_device() if target == "cuda" else 0
        _call(_library().tegula_compile, _context(threads, device), self._handle, c.byref(options),
              c.byref(handle))
        return Kernel(handle, target)


@dataclass
class Launch:
    """A call made ready: nothing but the launch itself is left to do, so that it can be timed."""
    kernel: "Kernel"
    values: object
    options: _LaunchOptions
    outputs: dict[str, torch.Tensor]
    kept: list = field(default_factory=list)

    def __call__(self) -> None:
        if self.kernel.target == "cuda":
            self.options.stream = torch.cuda.current_stream().cuda_stream
        status = _library().tegula_launch(self.kernel.handle, self.values, c.c_size_t(len(self.values)),
                                          c.byref(self.options), None)
        if status:
            _call(_library().tegula_launch, self.kernel.handle, self.values, c.c_size_t(len(self.values)),
                  c.byref(self.options))

    def wait(self) -> None:
        """Raises Refused where a subscript left its tensor."""
        stream = torch.cuda.current_stream().cuda_stream if self.kernel.target == "cuda" else None
        _call(_library().tegula_synchronize, self.kernel.handle, c.c_void_p(stream))


class Kernel:
    def __init__(self, handle: c.c_void_p, target: str):
        self.handle, self.target = handle, target
        library = _library()
        self.arguments = [library.tegula_argument(handle, place)
                          for place in range(library.tegula_num_arguments(handle))]

    def __del__(self):
        _library().tegula_free(self.handle)

    def stage(self, name: str) -> str | None:
        """The text of a stage of the compilation that was asked for; `ptx` is kept for every device."""
        text = _library().tegula_stage(self.handle, name.encode())
        return None if text is None else text.decode()

    def describe(self) -> dict:
        return json.loads(_library().tegula_describe(self.handle))

    def prepare(self, tensors: dict[str, torch.Tensor], scalars: dict[str, float] = {}) -> Launch:
        """Checks shapes, makes outputs (filled with NaN, or a number that stands out) and the workspace. Raises
        Refused."""
        count = len(self.arguments)
        values, kept = (_Value * max(count, 1))(), []
        for value, argument in zip(values, self.arguments):
            name, role = argument.name.decode(), ROLES[argument.role]
            value.dtype = argument.dtype
            if role == "scalar":
                given = scalars[name]
                if argument.dtype <= _NUMBER[torch.float8_e5m2]:
                    value.number = float(given)
                else:
                    low, high = (0, 1 << 64) if argument.dtype == _NUMBER[torch.uint64] else (-1 << 63, 1 << 63)
                    if not low <= given < high or given != int(given):  # infinities have no int
                        raise Refused(2, [{"message": f"the scalar '{name}' is an integer, got {given}"}])
                    value.integer = c.c_int64(int(given)).value  # narrower types are checked by the call
            elif role != "out":
                _fill(value, tensors[name], kept)
        ranks = [one.rank for one in self.arguments if ROLES[one.role] == "out"]
        shapes, wanted = (c.c_int64 * max(sum(ranks), 1))(), c.c_size_t()
        _call(_library().tegula_infer, self.handle, values, c.c_size_t(count), shapes, c.byref(wanted))
        device, start, outputs = torch.device(self.target), 0, {}
        for value, argument in zip(values, self.arguments):
            if ROLES[argument.role] == "out":
                shape = list(shapes[start:start + argument.rank])
                start += argument.rank
                output = torch.empty(shape, dtype=_DTYPES[argument.dtype], device=device)
                poison(output)
                _fill(value, output, kept)
                outputs[argument.name.decode()] = output
        options = _LaunchOptions(struct_bytes=c.sizeof(_LaunchOptions))
        if wanted.value:
            workspace = torch.empty(wanted.value + 256, dtype=torch.uint8, device=device)
            options.workspace = (workspace.data_ptr() + 255) // 256 * 256
            options.workspace_bytes = wanted.value
            kept.append(workspace)
        return Launch(self, values, options, outputs, kept)


def poison(tensor: torch.Tensor) -> None:
    """So that an element that was not written, or was there before, shows."""
    if tensor.is_floating_point():
        tensor.fill_(float("nan"))
    else:
        (tensor.view(torch.uint8) if tensor.dtype == torch.bool else tensor).fill_(99)


def _fill(value: _Value, tensor: torch.Tensor, kept: list) -> None:
    if not tensor.is_contiguous():
        raise ValueError("tensors must be contiguous")
    sizes = (c.c_int64 * max(tensor.dim(), 1))(*tensor.shape)
    value.data, value.shape, value.rank = tensor.data_ptr(), sizes, tensor.dim()
    value.dtype = _NUMBER.get(tensor.dtype, -1)
    kept += [tensor, sizes]
