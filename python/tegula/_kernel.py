"""Kernels as callables: what a call specialises on, what is cached, and what can be asked."""

from __future__ import annotations

import ast
import atexit
import ctypes
import glob
import inspect
import json
import keyword
import os
import re
import sys
import threading
import warnings
import weakref
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional, Sequence, Union

from . import _errors, _observe, _tegula

DTYPES = frozenset("f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 i4 u64 u32 u16 u8 u4 bool".split())
_WORD = re.compile(r"[^\W\d]\w*")
PRECISIONS = ("f32", "tf32", "conv_tf32", "bf16")
STAGES = ("tgl", "scheduled", "llvm", "asm", "ptx")
CPU = -1


class Parameter(NamedTuple):
    """A parameter or output as declared. `role`: "in", "inout", "out", "scalar" or "constant". `type`: a
    dtype, the name of a generic type, or "int", "float", "bool". `dims` and `default` are as written."""

    name: str
    role: str
    type: str
    dims: tuple[str, ...]
    default: Optional[str]

    @property
    def is_tensor(self) -> bool:
        return self.role in ("in", "inout", "out")

    @property
    def is_generic(self) -> bool:
        return self.is_tensor and self.type not in DTYPES

    def __str__(self) -> str:
        text = f"{self.name}: {'inout ' if self.role == 'inout' else ''}{self.type}"
        text += f"[{', '.join(self.dims)}]" if self.dims else ""
        return text if self.default is None else f"{text} = {self.default}"


class Guard(NamedTuple):
    """A condition on sizes that every call checks before anything runs, and what is wrong where it fails."""

    condition: str
    message: str


@dataclass(frozen=True)
class Compiled:
    """A kernel compiled for one target, dtypes, ranks and constants."""

    _handle: Any
    target: str
    stages: tuple[str, ...]

    @property
    def description(self) -> dict[str, Any]:
        """Everything known, in the schema `tegula.kernel` (docs/c-api.md): arguments, sizes, constants,
        guards, temporaries, milliseconds of each phase."""
        return json.loads(self._handle.describe())

    @property
    def guards(self) -> list[Guard]:
        return [Guard(one["condition"], one["message"]) for one in self.description["guards"]]

    @property
    def constants(self) -> dict[str, Any]:
        return {one["name"]: one["value"] for one in self.description["constants"]}

    def stage(self, name: str) -> str:
        """The text of a stage that was kept. Raises ValueError where there is none."""
        text = self._handle.stage(name)
        if text is None:
            raise ValueError(f"the kernel for {self.target} has no stage '{name}', or it was not kept")
        return text


def literal(text: str) -> Any:
    """The value of a default, or None where it is more than a literal."""
    try:
        return ast.literal_eval({"true": "True", "false": "False"}.get(text, text))
    except (ValueError, SyntaxError):
        return None


def _text_of(value: Any) -> str:
    """A setting as the compiler reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(_text_of(one) for one in value)})"
    return str(value)


def constant_text(value: Any) -> str:
    """A constant of an operator's call as the compiler reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(constant_text, value))})"
    # A symbolic int becomes the number that it has here: a kernel is compiled for its constants.
    return repr(float(value)) if isinstance(value, float) else str(int(value))


def _python_signature(parameters: tuple[Parameter, ...]) -> Optional[inspect.Signature]:
    """A call as Python's tools show it; defaults that are more than a literal are None. None where a parameter
    has the name of a keyword: it can only go by position, or by `**`."""
    shown, has_default = [], False
    for one in parameters:
        if one.role == "out":
            continue
        if keyword.iskeyword(one.name):
            return None
        has_default |= one.default is not None
        default = None if one.is_tensor or one.default is None else literal(one.default)
        shown.append(inspect.Parameter(one.name, inspect.Parameter.POSITIONAL_OR_KEYWORD,
                                       default=default if has_default else inspect.Parameter.empty))
    if not any(one.name == "out" for one in shown):
        shown.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None))
    return inspect.Signature(shown)


# Emptied when the interpreter ends: what torch.compile traced may be kept for good, and this module with it.
_contexts: dict[int, Any] = {}
atexit.register(_contexts.clear)
_lock = threading.Lock()
_kernels: weakref.WeakSet = weakref.WeakSet()


def _after_fork() -> None:
    """Locks that another thread held when this process was forked have nobody to release them."""
    global _lock
    _lock = threading.Lock()
    for one in list(_kernels):
        one._lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def _context(device: int) -> Any:
    with _lock:
        if device not in _contexts:
            if device != CPU:
                _offer_assembler()
            _contexts[device] = _tegula.make_context(device)
        return _contexts[device]


def _offer_assembler() -> None:
    """Loads nvJitLink from the packages that PyTorch brings, where the compiler would not look: it finds a
    library that the process has already loaded."""
    if os.environ.get("TEGULA_NVJITLINK"):
        return
    for folder in sys.path:
        for path in sorted(glob.glob(os.path.join(folder, "nvidia", "*", "lib", "libnvJitLink.so.1[23]"))):
            try:
                ctypes.CDLL(path)
                return
            except OSError:
                continue


class Kernel:
    """A kernel as a callable on torch tensors, numpy arrays and objects with `__dlpack__`.

    Made by `tegula.compile` and `tegula.load`; `help(kernel)` and `kernel.signature` show what it takes.

    kernel(*arguments, out=None)
        Tensors, scalars and constants go by position, in the order of the declaration, or by name. None, or
        leaving out, means the default. Tensors of any one device: CPU, or a CUDA device, on whose current
        stream of torch the kernel is queued. Shapes are in elements and must fit the declaration.

        Inputs that are not contiguous are copied first; what is written (inout, out=) must be contiguous.
        `out`: the output, or a tuple of all; otherwise they are made: torch tensors where an input is one,
        else numpy arrays. No gradient is recorded (see `tegula.library`).

        Returns the output, a tuple of them where there are several, None where there is none.

        The first call with new dtypes, ranks of `...`, constants, optional tensors or device compiles, which
        takes some 10 to 150 ms; later ones find the kernel.

        Raises LaunchError for wrong arguments, before anything runs, or where a data-dependent subscript left
        its tensor (on a CUDA device: by `synchronize`); ProgramError where the program does not compile for
        these arguments; MissingError where memory, a device or an assembler is missing.
    """

    def __copy__(self) -> Kernel:
        return self  # nothing of it changes

    def __deepcopy__(self, memo: dict[int, Any]) -> Kernel:
        return self

    def __reduce__(self) -> Any:
        """Its text goes along; machine code is made by the first call there."""
        options = {"checked": self._checked, "tuned": self._tuned, "precision": self._precision,
                   "observer": self._observer}
        return _restored, (self._text, self.name, self._file_name, options, self._settings)

    def __init__(self, program: Any, index: int, settings: dict[str, Any],
                 checked: _observe.Checked = False, tuned: bool = False, precision: Optional[str] = None,
                 observer: Optional[_observe.Observer] = None):
        if precision not in (None, *PRECISIONS):
            raise ValueError(f"expected a precision {', '.join(PRECISIONS)}, got {precision!r}")
        if checked not in _observe.CHECKED:
            raise ValueError(f"expected checked True, False, 'nan' or 'finite', got {checked!r}")
        self._program = program
        self._settings = {name: _text_of(value) for name, value in settings.items()}
        self._checked = checked
        self._observer = observer
        self._tuned = tuned
        self._precision = precision
        self._compiled: dict[Any, Compiled] = {}
        self._warned: set = set()
        self._lock = threading.RLock()
        _kernels.add(self)
        self.name: str = _tegula.kernels_of(program)[index]
        self.__name__ = self.__qualname__ = self.name
        self.parameters: tuple[Parameter, ...] = tuple(
            Parameter(*one) for one in _tegula.parameters_of(program, index)
        )
        self._refuse_unknown()
        self.__signature__ = _python_signature(tuple(map(self._settled, self.parameters)))
        self._inputs = {one.name: one for one in self.parameters if one.role != "out"}
        self.__doc__ = f"{self.signature}\n\n{Kernel.__doc__}"
        lines, _ = _tegula.check(program, self.name)
        _errors.warn(lines, self._warned)
        self._call = _tegula.Caller(program, index, self._specialise)
        if checked:
            points = _observe.POINTS if observer is None else _observe.ALL_POINTS
            self._call.observe(_observe.teller(observer), points)
        for one in self._settings:
            self._call.settle(one)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._call(*arguments, **named)

    def __repr__(self) -> str:
        return f"<tegula kernel {self.signature}>"

    @property
    def outputs(self) -> tuple[Parameter, ...]:
        return tuple(one for one in self.parameters if one.role == "out")

    @property
    def signature(self) -> str:
        """The declaration as text: "scale(x: f32[M, N], s: f32) -> (y: f32[M, N])"."""
        text = f"{self.name}({', '.join(map(str, self._inputs.values()))})"
        return f"{text} -> ({', '.join(map(str, self.outputs))})" if self.outputs else text

    @property
    def guards(self) -> list[Guard]:
        """Conditions on sizes, of the kernel last compiled; where there is none, of one with defaults."""
        return self._any().guards

    @property
    def constants(self) -> dict[str, Any]:
        """Constants and their values, of the kernel last compiled; where there is none, the defaults."""
        return self._any().constants

    def ptx(self, target: str = "sm_90a", **settings: Any) -> str:
        """The PTX for a target, on any machine. See `compiled` for the settings."""
        return self.compiled(target, **settings).stage("ptx")

    def stage(self, name: str, target: str = "cpu", **settings: Any) -> str:
        """The text of a stage: "tgl", "scheduled", "llvm", "asm" (CPU), "ptx" (others)."""
        return self.compiled(target, stages=(name,), **settings).stage(name)

    def compiled(self, target: str = "cpu", *, ellipsis_rank: int = 0, optionals: tuple[str, ...] = (),
                 stages: tuple[str, ...] = (), **settings: Any) -> Compiled:
        """Compiles without a call.

        `target`: "cpu", "cuda" (the first device), or "sm_90a" and the like. `ellipsis_rank`: how many dims `...`
        stands for. `optionals`: names of the optional tensors and scalars that are given. `settings`: constants, dtypes
        of generic types (T="f16") and sizes to specialise for (N=1024). Raises ProgramError, LaunchError for
        a setting that the kernel does not have, ValueError for a stage that does not exist."""
        for stage in stages:
            if stage not in STAGES:
                raise ValueError(f"expected a stage {', '.join(STAGES)}, got '{stage}'")
        texts = {name: _text_of(value) for name, value in settings.items()}
        return self._compile(target, CPU if target != "cuda" else 0, texts, ellipsis_rank,
                             tuple(optionals), tuple(stages))

    def grad(self, wrt: Union[None, str, Sequence[str]] = None, *, left_out: Sequence[str] = (),
             ellipsis_rank: Optional[int] = None, save: Optional[bool] = None, **settings: Any) -> Kernel:
        """The kernel of the gradients, which `tegula grad` writes (docs/grad.md): NAME_grad, that takes, by name, what it
        needs of this kernel's parameters and `grad_Y` for an output `Y`, and gives `grad_X` for tensors `X`.

        `wrt`: the tensors `X`; None: all of floats. `settings`: constants and generic types, beside this kernel's
        own; a constant without one has its default. `left_out`: optional tensors and scalars that calls leave out; all others are
        parameters of the gradient. `ellipsis_rank`: how many dims `...` stands for; None: any number, where the gradient allows
        it. `save`: whether outputs of this kernel that the gradient needs are its parameters, or computed again; None: parameters
        where an element is a reduction.
        `kernel.grad().text` is the program.

        Raises ProgramError, E0913, where something has no rule."""
        names = [wrt] if isinstance(wrt, str) else list(wrt or ())
        own = {one.name for one in self.parameters if one.role == "constant"}
        own.update(one.type for one in self.parameters if one.is_generic)
        texts = {**self._settings, **{name: _text_of(value) for name, value in settings.items()}}
        unknown = [name for name in settings if name not in own]
        if unknown:
            raise _errors.wrong_call(f"kernel '{self.name}' has no constant or type '{unknown[0]}'")
        program = _tegula.gradient(self._program, self.name, names,
                                   [(name, value) for name, value in texts.items() if name in own],
                                   list(left_out), ellipsis_rank, save)
        made = Kernel(program, 0, {}, self._checked, self._tuned, self._precision, self._observer)
        made._text, made._file_name = _tegula.text_of(program), f"gradient of {self._file_name}"
        made._set({name: value for name, value in texts.items() if name not in own})
        return made

    @property
    def text(self) -> str:
        """The program that the kernel was made from."""
        return self._text

    def synchronize(self) -> None:
        """Waits for the current stream of each CUDA device that this kernel ran on. Raises LaunchError where
        a data-dependent subscript left its tensor since the last call."""
        for (target, device, *_), one in list(self._compiled.items()):
            if target == "cuda":
                one._handle.synchronize(device)

    def _settled(self, one: Parameter) -> Parameter:
        """A parameter with the kernel's own setting as its default."""
        if one.role != "constant" or one.name not in self._settings:
            return one
        return one._replace(default=self._settings[one.name])

    def _words(self) -> set[str]:
        return {word for one in self.parameters for text in (one.name, one.type, *one.dims)
                for word in _WORD.findall(text)}

    def _refuse_unknown(self) -> None:
        roles = {one.name: one.role for one in self.parameters}
        for name in self._settings:
            if roles.get(name, "constant") != "constant":
                what = "scalar" if roles[name] == "scalar" else "tensor"
                raise _errors.wrong_call(f"'{name}' is a {what}: give it at each call")
            if name not in roles and name not in self._words():
                raise _errors.wrong_call(f"kernel '{self.name}' has no constant, type or size '{name}'")

    def _set(self, settings: dict[str, Any]) -> None:
        """Takes those of another kernel's settings that this one has too."""
        known = self._words()
        taken = {name: _text_of(value) for name, value in settings.items() if name in known}
        self._settings.update(taken)
        for one in taken:
            self._call.settle(one)

    def _any(self) -> Compiled:
        if self._compiled:
            return next(reversed(self._compiled.values()))
        return self.compiled()

    def _compile(self, target: str, device: int, settings: dict[str, str], rank: int,
                 optionals: tuple[str, ...], stages: tuple[str, ...] = ()) -> Compiled:
        settings = {**self._settings, **settings}
        key = (target, device, tuple(sorted(settings.items())), rank, optionals, stages)
        with self._lock:
            if key not in self._compiled:
                handle, lines, _ = _tegula.compile(
                    _context(device), self._program, self.name, target, list(settings.items()), rank,
                    list(optionals), bool(self._checked) and target == "cpu", list(stages), self._tuned,
                    self._precision, _observe.CHECKED[self._checked] if target == "cpu" else 0)
                _errors.warn(lines, self._warned)
                self._compiled[key] = Compiled(handle, target, stages)
            return self._compiled[key]

    def _specialise(self, device: int, given: tuple, constants: dict[str, str]) -> Any:
        """The kernel for what a call gives: called by the module where it is not cached."""
        return self._for(device, given, constants)._handle

    def _for(self, device: int, given: tuple, constants: dict[str, str]) -> Compiled:
        settings, ranks, optionals = dict(constants), 0, []
        has_ellipsis = False
        for name, dtype, rank in given:
            parameter = self._inputs[name]
            if parameter.is_generic and parameter.type not in self._settings:
                settings.setdefault(parameter.type, dtype)
            if "..." in parameter.dims and not has_ellipsis:
                has_ellipsis, ranks = True, rank - (len(parameter.dims) - 1)
                if ranks < 0:
                    raise _errors.wrong_call(
                        f"'{name}' has rank {rank}, expected {parameter} with at least {len(parameter.dims) - 1}")
            if parameter.default is not None:
                optionals.append(name)
        return self._compile("cpu" if device == CPU else "cuda", device, settings, ranks, tuple(optionals))


def compile(text: str, kernel: Optional[str] = None, *, file_name: str = "<input>",
            checked: _observe.Checked = False, tuned: bool = False, precision: Optional[str] = None,
            observer: Optional[_observe.Observer] = None, **settings: Any) -> Kernel:
    """The kernel of a program's text as a callable.

    `kernel`: its name; None: the last one. `settings`: constants (`pad=1`, `stride=(2, 1)`), dtypes of
    generic types (`T="f16"`) and sizes to specialise for (`N=1024`), for all calls; a call that gives a constant
    itself has that one. `checked`: verify every access while running on the CPU, and observe what `print` and `assert` of the
    program say: AssertionFailed is raised after a call in which an assertion does not hold; with "nan" or "finite" also where an
    equation makes a NaN, or anything that is not finite. `observer` gets an Observation for each point of each `print`; None: they
    are lines on standard output, 20 for each statement. `tuned`: on a CUDA device
    with the schedules that `tegula tune` has kept. `precision`: what products of f32 on a CUDA device may be
    rounded to where the kernel has no statement `precision`: "f32" (None: the same), "tf32", "conv_tf32",
    which is tf32 in convolutions alone, as PyTorch does by default, or "bf16". `file_name` is for messages.

    Raises ProgramError for a wrong program, LaunchError for a kernel or setting that it does not have, ValueError for
    another precision. Warnings are TegulaWarning. Machine code is made by the first call."""
    program = _tegula.parse(text, file_name)
    names = _tegula.kernels_of(program)
    if kernel is None and not names:
        raise _errors.wrong_call("the program has no kernel")
    if kernel is not None and kernel not in names:
        raise _errors.wrong_call(f"the program has no kernel '{kernel}', but {', '.join(names) or 'none'}")
    index = len(names) - 1 if kernel is None else names.index(kernel)
    made = Kernel(program, index, settings, checked, tuned, precision, observer)
    made._text, made._file_name = text, file_name
    return made


def _restored(text: str, kernel: str, file_name: str, options: dict[str, Any], settings: dict[str, Any]) -> Kernel:
    program = _tegula.parse(text, file_name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", _errors.TegulaWarning)  # told where the kernel was made
        made = Kernel(program, _tegula.kernels_of(program).index(kernel), settings, **options)
    made._text, made._file_name = text, file_name
    return made


def load(path: Union[str, os.PathLike], kernel: Optional[str] = None, *, checked: _observe.Checked = False,
         tuned: bool = False, precision: Optional[str] = None, observer: Optional[_observe.Observer] = None,
         **settings: Any) -> Kernel:
    """`compile` for the text of a file. Raises OSError where it cannot be read."""
    with open(path, encoding="utf-8") as file:
        return compile(file.read(), kernel, file_name=os.fspath(path), checked=checked, tuned=tuned,
                       precision=precision, observer=observer, **settings)
