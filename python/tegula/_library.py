"""Kernels as operators of PyTorch: schema, fake kernel, autograd."""

from __future__ import annotations

import functools
import math
import os
import re
from typing import Any, Callable, Optional, Sequence, Union

from . import _tegula
from ._errors import wrong_call
from ._gradient import register_gradient
from ._kernel import CPU, Kernel, Parameter, compile, constant_text, literal
from ._operators import put

_WORD = re.compile(r"[^\W\d]\w*")


def _number_type(parameter: Parameter) -> str:
    """The type of a scalar or constant in PyTorch's schema language."""
    type_name = {"float": "float", "bool": "bool"}.get(parameter.type)
    if type_name is None:
        type_name = "float" if parameter.type in ("f64", "f32", "f16", "bf16") else "int"
    if type_name == "int" and parameter.role == "scalar":
        type_name = "SymInt"  # a value of each call, for which torch.compile need not compile again
    return type_name + (f"[{parameter.dims[0]}]" if parameter.dims else "")


def _declare(parameter: Parameter, letter: str, must_default: bool) -> str:
    """A parameter in PyTorch's schema language. `must_default`: one before it has a default, so that this one
    needs one as well; a call without it is refused by the kernel."""
    name, default = parameter.name, parameter.default
    if parameter.is_tensor:
        if parameter.role == "inout":
            return f"Tensor({letter}!) {name}" if not must_default else f"Tensor({letter}!)? {name}=None"
        return f"Tensor {name}" if default is None and not must_default else f"Tensor? {name}=None"
    type_name = _number_type(parameter)
    if default is None and not must_default:
        return f"{type_name} {name}"
    value = None if default is None else literal(default)
    if value is None:  # known to the compiler alone, as in `stride: int[2] = kernel_size`
        return f"{type_name}? {name}=None"
    if isinstance(value, tuple):
        value = list(value)
    if type_name == "float":
        value = float(value)
    return f"{type_name} {name}={value}"


def _inputs(kernel: Kernel) -> list[Parameter]:
    """What the operator takes; the kernel's settings are the defaults of constants."""
    return [one._replace(default=kernel._settings.get(one.name, one.default)) if one.role == "constant" else one
            for one in kernel.parameters if one.role != "out"]


def _schema(kernel: Kernel) -> str:
    inputs = _inputs(kernel)
    if not any(one.is_tensor and (one.role == "inout" or one.default is None) for one in inputs):
        raise ValueError(f"kernel '{kernel.name}' has no tensor that every call gives: PyTorch could not tell "
                         "the device")
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    declared, has_default = [], False
    for one in inputs:
        declared.append(_declare(one, next(letters) if one.role == "inout" else "", has_default))
        has_default |= one.default is not None
    results = ["Tensor"] * len(kernel.outputs)
    return f"({', '.join(declared)}) -> {results[0] if len(results) == 1 else '(' + ', '.join(results) + ')'}"


def _dtypes() -> dict[str, Any]:
    import torch

    names = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn",
             "f8e5m2": "float8_e5m2", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8",
             "i4": "uint8", "u4": "uint8", "bool": "bool",
             "u16": "uint16", "u32": "uint32", "u64": "uint64"}
    return {name: getattr(torch, theirs) for name, theirs in names.items()}


def _extreme(name: str) -> Callable:
    def extreme(*values: Any) -> Any:
        import torch

        return functools.reduce(getattr(torch, name), values)

    return extreme


# What an expression of sizes calls; a function of floats gives a number, for which torch.compile compiles again.
_FUNCTIONS = {
    "max": _extreme("sym_max"), "min": _extreme("sym_min"), "where": lambda holds, yes, no: yes if holds else no,
    "maximum": max, "minimum": min, "int": int, "abs": abs, "floor": math.floor, "ceil": math.ceil, "round": round,
    "trunc": math.trunc, "sqrt": math.sqrt, "exp": math.exp, "exp2": lambda value: 2.0 ** value, "log": math.log,
    "log2": math.log2,
}


def _evaluate(text: str, names: dict[str, Any]) -> Any:
    """An expression of sizes, with Python's meaning."""
    return eval(text, {"__builtins__": {}, **_FUNCTIONS}, names)  # noqa: S307: the compiler's own text


def _needed(description: dict) -> set[str]:
    """The sizes that dims of arguments name, and those that these are made of."""
    needed = {word for one in description["arguments"] for dim in one["dims"] for word in _WORD.findall(dim)}
    for size in reversed(description["sizes"]):
        if size["name"] in needed:
            needed.update(_WORD.findall(size.get("definition", "")))
    return needed


def _sizes(description: dict, shapes: list) -> dict[str, Any]:
    """The sizes by name; those of `shapes`, by argument, may be symbolic. Raises LaunchError where a shape does
    not fit, and tells torch what symbols are equal."""
    import torch

    names: dict[str, Any] = {}
    given = [(one, shape) for one, shape in zip(description["arguments"], shapes) if shape is not None]
    for argument, shape in given:
        if len(shape) != len(argument["dims"]):
            raise wrong_call(f"'{argument['name']}' has dims {_dims(argument['dims'])}, the argument has shape "
                             f"{_dims(shape)}")
    needed = _needed(description)
    for size in description["sizes"]:
        if size["name"] not in needed:
            continue
        bound = size.get("bound_by")
        names[size["name"]] = (shapes[bound["argument"]][bound["dim"]] if bound
                               else _evaluate(size["definition"], names))
    for argument, shape in given:
        wanted = [_evaluate(dim, names) for dim in argument["dims"]]
        text = (f"'{argument['name']}' has dims {_dims(argument['dims'])} = {_dims(wanted)}, the argument has shape "
                f"{_dims(shape)}")
        for one, other in zip(shape, wanted):
            if isinstance(one, int) and isinstance(other, int):
                if one != other:
                    raise wrong_call(text)
            else:
                torch._check(one == other, lambda: text)
    return names


def _dims(dims: Sequence[Any]) -> str:
    return f"[{', '.join(map(str, dims))}]"


def _fake(kernel: Kernel) -> Callable:
    """What the operator does to shapes and dtypes alone."""
    dtypes = _dtypes()
    names = {theirs: name for name, theirs in reversed(list(dtypes.items())) if name not in ("i4", "u4")}
    inputs = _inputs(kernel)

    def fake(*arguments: Any) -> Any:
        import torch

        given = {one.name: value for one, value in zip(inputs, arguments) if value is not None}
        device, specialised, constants, shapes = None, [], {}, {}
        for one in inputs:
            if one.name not in given:
                if one.default is None:  # the schema gives it one where another stands before it
                    raise wrong_call(f"kernel '{kernel.name}' needs '{one.name}'")
                continue
            value = given[one.name]
            if one.is_tensor:
                packed = one.type in ("i4", "u4")
                shape = list(value.shape)
                shapes[one.name] = shape[:-1] + [2 * shape[-1]] if packed else shape
                if value.dtype not in names:
                    raise wrong_call(f"'{one.name}' has the dtype {value.dtype}, which Tegula does not know")
                specialised.append((one.name, one.type if packed else names[value.dtype], value.dim()))
                device = device or value.device
            elif one.role == "scalar":
                specialised.append((one.name, one.type, 0))
            else:
                constants[one.name] = constant_text(value)
        on_device = device.type == "cuda" and torch.cuda.is_available()
        compiled = kernel._for((device.index or 0) if on_device else CPU, tuple(specialised), constants)
        description = compiled.description
        expected = {one["name"]: one["dtype"] for one in description["arguments"]}
        for name, dtype, _ in specialised:
            if name in shapes and dtype != expected[name]:
                raise wrong_call(f"'{name}' is {expected[name]}, the argument is {dtype}")
        sizes = _sizes(description, [shapes.get(one["name"]) for one in description["arguments"]])
        made = []
        for one in description["arguments"]:
            if one["role"] != "out":
                continue
            shape = [_evaluate(dim, sizes) for dim in one["dims"]]
            if one["dtype"] in ("i4", "u4") and shape:
                shape[-1] = (shape[-1] + 1) // 2
            made.append(torch.empty(shape, dtype=dtypes[one["dtype"]], device=device))
        return made[0] if len(made) == 1 else tuple(made) if made else None

    return fake


def _register(kernel: Kernel, name: str) -> Any:
    import torch

    torch.library.define(name, _schema(kernel), tags=(torch.Tag.pt2_compliant_tag,))
    torch.library.impl(name, ("CPU", "CUDA"), put(name, "kernel", kernel._call))
    torch.library.register_fake(name, put(name, "fake", _fake(kernel)))
    namespace, operator = name.split("::")
    return getattr(getattr(torch.ops, namespace), operator)


def _check_backward(forward: Kernel, backward: Kernel) -> None:
    inputs = {one.name: one for one in forward.parameters if one.role != "out"}
    outputs = {one.name for one in forward.outputs}
    known = set(inputs) | outputs | {f"grad_{one}" for one in outputs}
    for one in backward.parameters:
        if one.role == "out":
            source = inputs.get(one.name.removeprefix("grad_"))
            if not one.name.startswith("grad_") or source is None or not source.is_tensor:
                raise ValueError(f"the output '{one.name}' of the backward kernel '{backward.name}' is not "
                                 f"grad_X of a tensor X that '{forward.name}' takes")
        elif one.role == "inout":
            raise ValueError(f"the backward kernel '{backward.name}' has an inout '{one.name}'")
        elif one.name not in known and one.default is None:
            raise ValueError(f"the backward kernel '{backward.name}' takes '{one.name}', which is neither a "
                             f"parameter or output of '{forward.name}' nor grad_Y of an output Y")


def _refuse_second_gradient(name: str) -> None:
    """Without it PyTorch warns, and leaves the operator out of gradients of gradients."""
    import torch

    def backward(ctx: Any, *gradients: Any) -> Any:
        raise RuntimeError(f"operator {name}, a backward kernel, has no gradient: gradients of gradients (create_graph=True) "
                           "need PyTorch's own operators")

    torch.library.register_autograd(name, put(name, "backward", backward))


def _register_autograd(forward: Kernel, name: str, kernels: Sequence[Kernel]) -> None:
    import torch

    given: dict[str, str] = {}
    for kernel in kernels:
        _check_backward(forward, kernel)
        for one in kernel.outputs:
            if given.setdefault(one.name, kernel.name) != kernel.name:
                raise ValueError(f"the backward kernels '{given[one.name]}' and '{kernel.name}' both give '{one.name}'")
    if any(one.role == "inout" for one in forward.parameters):
        raise ValueError(f"kernel '{forward.name}' updates a tensor in place: it can have no backward kernel")
    operators = [_register(kernel, f"{name}_backward_{kernel.name}") for kernel in kernels]
    for kernel in kernels:
        _refuse_second_gradient(f"{name}_backward_{kernel.name}")
    inputs = [one for one in forward.parameters if one.role != "out"]
    outputs = [one.name for one in forward.outputs]
    takes = {one.name for kernel in kernels for one in kernel.parameters if one.role != "out"}
    saved = [one.name for one in forward.parameters if one.is_tensor and one.name in takes]

    def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
        values = dict(zip((one.name for one in forward.parameters if one.role != "out"), inputs))
        values.update(zip(outputs, (output,) if len(outputs) == 1 else output))
        ctx.save_for_backward(*(values[one] for one in saved))
        ctx.numbers = {one: value for one, value in values.items() if one in takes and one not in saved}

    def backward(ctx: Any, *gradients: Any) -> Any:
        values = {**ctx.numbers, **dict(zip(saved, ctx.saved_tensors))}
        values.update({f"grad_{one}": gradient for one, gradient in zip(outputs, gradients)})
        needed = {f"grad_{one.name}" for one, is_needed in zip(inputs, ctx.needs_input_grad) if is_needed}
        found: dict[str, Any] = {}
        for kernel, operator in zip(kernels, operators):
            names = [one.name for one in kernel.outputs]
            if not needed.intersection(names):
                continue
            arguments = {one.name: values[one.name] for one in kernel.parameters
                         if one.role != "out" and one.name in values}
            result = operator(**arguments)
            found.update(zip(names, (result,) if len(names) == 1 else result))
        results = tuple(found.get(f"grad_{one.name}") if f"grad_{one.name}" in needed else None
                        for one in inputs)
        return results if len(results) > 1 else results[0]

    torch.library.register_autograd(name, put(name, "backward", backward),
                                    setup_context=put(name, "setup_context", setup_context))


def library(source: Union[str, os.PathLike], name: str, *, kernel: Optional[str] = None,
            backward: Union[None, str, Sequence[str]] = None, checked: bool = False, tuned: bool = False,
            precision: Optional[str] = None, **settings: Any) -> Any:
    """Registers a kernel of a file as the operator `name` ("namespace::operator") of PyTorch and returns it
    (`torch.ops.namespace.operator`).

    `kernel`: its name in the file; None: the last one that is not a backward kernel. `checked`, `tuned`, `precision`
    and `settings`: as for `tegula.compile`, the first three for backward kernels too. The operator takes the kernel's parameters in order, on CPU and CUDA tensors; it has a
    fake kernel, so torch.compile, torch.export and CUDA graphs work with it.

    `backward`: the name of a kernel of the same file, or several, that compute gradients. They take, by name,
    any parameters and outputs of the kernel and the gradients of outputs, `grad_Y` for an output `Y`, and give
    `grad_X` for tensors `X`; other tensors get no gradient. Each becomes an operator of its own,
    "NAME_backward_KERNEL". With "auto", where no kernel of the file has that name, the program that `tegula grad` writes
    (docs/grad.md) computes the gradients of all tensors of floats, for the constants and optional tensors of each call, and
    gradients of these gradients. Without `backward` the operator has no gradient.

    Raises ProgramError for a wrong program, and with backward="auto" where a form has no rule (E0913), ValueError for a backward kernel that does not fit or a kernel
    that no tensor is given to, and what torch raises where the name is taken."""
    with open(source, encoding="utf-8") as file:
        text = file.read()
    names = [] if backward is None else [backward] if isinstance(backward, str) else list(backward)
    auto = backward == "auto" and "auto" not in _tegula.kernels_of(_tegula.parse(text, os.fspath(source)))
    operator, _, _ = register(text, name, file_name=os.fspath(source), kernel=kernel, backward=[] if auto else names,
                              auto=auto, checked=checked, tuned=tuned, precision=precision, **settings)
    return operator


def register(text: str, name: str, *, file_name: str, kernel: Optional[str] = None, backward: Sequence[str] = (),
             auto: bool = False, checked: bool = False, tuned: bool = False, precision: Optional[str] = None,
             **settings: Any) -> tuple[Any, Kernel, list[Kernel]]:
    """`library` for a program's text: the operator, its kernel, and its backward kernels. `auto`: backward="auto"."""
    how = {"file_name": file_name, "checked": checked, "tuned": tuned, "precision": precision}
    gradients = [compile(text, one, **how) for one in backward]
    for one in gradients:
        one._set(settings)
    if kernel is None and backward:
        others = [one for one in _tegula.kernels_of(_tegula.parse(text, file_name)) if one not in backward]
        kernel = others[-1] if others else None
    forward = compile(text, kernel, **how, **settings)
    operator = _register(forward, name)
    if gradients:
        _register_autograd(forward, name, gradients)
    elif auto:
        register_gradient(forward, name, [(one.name, _number_type(one)) for one in _inputs(forward) if not one.is_tensor])
    return operator, forward, gradients
