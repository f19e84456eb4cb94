"""Definitions and workloads, which FlashInfer-Bench and SOL-ExecBench write as JSON, as modules in KernelBench's form.

A definition has axes (`const`, `var`, `expr`), inputs and outputs with shapes over them, and a reference: text that
defines `run(inputs...)`. A workload gives the var axes, and each input as `random`, `scalar`, `safetensors` or `custom`.
"""
from __future__ import annotations

import ast
import base64
import json
import keyword
import zlib
from dataclasses import dataclass
from pathlib import Path

from ..rule.tasks import TaskError
from . import safetensors
from .suite import inside

FLOATS = ("float64", "float32", "float16", "bfloat16")
NARROW = ("float8_e4m3fn", "float8_e5m2")
# What FlashInfer-Bench draws `random` integers from, lower bound and number beyond the upper one.
INTEGERS = {"int8": (-128, 128), "int16": (-1024, 1024), "int32": (-1024, 1024), "int64": (-1024, 1024),
            "uint8": (0, 256)}
MAX_STORED = 8 << 20  # bytes of a tensor that a workload brings: it goes into the task's text
ARITHMETIC = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Name, ast.Load, ast.Constant, ast.Add, ast.Sub, ast.Mult,
              ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.UAdd, ast.USub)

WHOLE = ("def _whole(value):", "    if value != int(value):", '        raise ValueError(f"an axis is {value}")',
         "    return int(value)", "")


@dataclass(frozen=True)
class Definition:
    name: str
    op_type: str
    axes: dict
    inputs: dict
    outputs: dict
    reference: str
    entry: str = "run"
    custom: str | None = None
    constraints: tuple = ()


def load_json(text: str, what: object) -> dict:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise TaskError(f"{what} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise TaskError(f"{what} is no JSON object")
    return found


def lines_of(text: str, what: object) -> list[dict]:
    return [load_json(line, f"{what}:{number}") for number, line in enumerate(text.splitlines(), 1) if line.strip()]


def definition_of(record: dict, what: object) -> Definition:
    """Raises TaskError."""
    try:
        found = Definition(record["name"], record.get("op_type") or "", dict(record["axes"]), dict(record["inputs"]),
                           dict(record["outputs"]), record["reference"],
                           custom=record.get("custom_inputs_entrypoint"), constraints=tuple(record.get("constraints") or ()))
        for name, axis in found.axes.items():
            check_name(name)
            if axis["type"] not in ("const", "var", "expr"):
                raise TaskError(f"{what}: the axis '{name}' is '{axis['type']}', expected const, var or expr")
            if axis["type"] == "const" and not isinstance(axis["value"], int):
                raise TaskError(f"{what}: the axis '{name}' has the value {axis['value']!r}")
            if axis["type"] == "expr":
                arithmetic(axis["expression"], found.axes)
        for name, one in [*found.inputs.items(), *found.outputs.items()]:
            check_name(name)
            for axis in one["shape"] or []:
                if axis not in found.axes:
                    raise TaskError(f"{what}: '{name}' has the axis '{axis}', which is not defined")
        if not isinstance(found.name, str) or not isinstance(found.reference, str):
            raise TaskError(f"{what}: name and reference must be text")
        return found
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise TaskError(f"{what} is no definition: {error!r}") from error


def check_name(name: str) -> None:
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise TaskError(f"'{name}' is no name of an axis or tensor")


def arithmetic(text: str, names) -> str:
    """The expression, of numbers and these names alone: it is written into a text that is run. Raises TaskError."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError) as error:
        raise TaskError(f"'{text}' is no expression") from error
    for node in ast.walk(tree):
        if not isinstance(node, ARITHMETIC) or isinstance(node, ast.Constant) and not isinstance(node.value, (int, float)) \
                or isinstance(node, ast.Name) and node.id not in names:
            raise TaskError(f"'{text}' is no arithmetic of {', '.join(names)}")
    return ast.unparse(tree)


def value_of(text: str, values: dict[str, int]) -> float:
    """What such an expression gives."""
    try:
        return eval(compile(ast.Expression(ast.parse(arithmetic(text, values), mode="eval").body), "size", "eval"),
                    {"__builtins__": {}}, dict(values))
    except ArithmeticError as error:
        raise TaskError(f"'{text}': {error}") from error


def sizes(definition: Definition, axes: dict) -> dict[str, int]:
    """Every axis. Raises TaskError where the workload leaves one out, or has one that is none."""
    values: dict[str, int] = {}
    for name, axis in definition.axes.items():
        if axis["type"] == "const":
            values[name] = axis["value"]
        elif axis["type"] == "var":
            if not isinstance(axes.get(name), int) or isinstance(axes[name], bool) or axes[name] < 0:
                raise TaskError(f"the workload gives the axis '{name}' as {axes.get(name)!r}")
            values[name] = axes[name]
    for name, axis in definition.axes.items():
        if axis["type"] == "expr":
            value = value_of(axis["expression"], values)
            if value != int(value):
                raise TaskError(f"the axis '{name}' is {value}")
            values[name] = int(value)
    unknown = sorted(set(axes) - set(definition.axes))
    if unknown:
        raise TaskError(f"the workload gives axes that the definition lacks: {', '.join(unknown)}")
    return values


def module_text(definition: Definition, workload: dict, root: Path) -> str:
    """The workload as a module. Its axes can be made smaller (rule/variants.py) where no input depends on them but by
    its shape. Raises TaskError."""
    inputs = workload.get("inputs") or {}
    unknown = sorted(set(inputs) - set(definition.inputs))
    if unknown:
        raise TaskError(f"the workload gives inputs that the definition lacks: {', '.join(unknown)}")
    values = sizes(definition, workload.get("axes") or {})
    kinds = {name: (inputs.get(name) or {}).get("type", "random") for name in definition.inputs}
    fixed = any(kind == "safetensors" for kind in kinds.values())
    lines = [f'"""{definition.name}, workload {workload.get("uuid", "")}."""', "import torch", "",
             f"REFERENCE = {quoted(definition.reference)}", "_space = {}",
             'exec(compile(REFERENCE, "reference.py", "exec"), _space)', ""]
    written = [f"{name} = {_axis(definition, name, values, fixed)}" for name in values]
    if any("_whole(" in one for one in written):
        lines += [*WHOLE, ""]
    lines += ["def _axes():", *(f"    {one}" for one in written),
              f"    return {{{', '.join(f'{name!r}: {name}' for name in values)}}}"] if fixed else written
    names = list(definition.inputs)
    lines += ["", "", f"OUTPUTS = {list(definition.outputs)!r}", "", "", "class Model(torch.nn.Module):",
              f"    def forward({', '.join(['self', *names])}):",
              f"        found = _space[{definition.entry!r}]({', '.join(names)})",
              "        return [found[name] for name in OUTPUTS] if isinstance(found, dict) else found", "", "",
              "def get_inputs():"]
    if fixed:
        lines.append(f"    {', '.join(values)}, = _axes().values()")
    lines += _drawn(definition, inputs, kinds, values, root)
    lines += [f"    return [{', '.join(names)}]", "", "", "def get_init_inputs():", "    return []", ""]
    return "\n".join(lines)


def _axis(definition: Definition, name: str, values: dict[str, int], fixed: bool) -> str:
    axis = definition.axes[name]
    if axis["type"] != "expr" or fixed:
        return str(values[name])
    # N / 2 is a float.
    return axis["expression"] if isinstance(value_of(axis["expression"], values), int) else f"_whole({axis['expression']})"


def _drawn(definition: Definition, inputs: dict, kinds: dict, values: dict[str, int], root: Path) -> list[str]:
    lines = []
    if "custom" in kinds.values():
        if not definition.custom:
            raise TaskError("the workload has a `custom` input, but the definition no custom_inputs_entrypoint")
        scalars = {name: inputs[name]["value"] for name, kind in kinds.items() if kind == "scalar"}
        both = ", ".join([*(f"{name!r}: {name}" for name in values), *(f"{name!r}: {one!r}" for name, one in scalars.items())])
        lines.append(f"    _made = _space[{definition.custom!r}]({{{both}}}, torch.get_default_device())")
    for name, one in definition.inputs.items():
        kind, told = kinds[name], inputs.get(name) or {}
        if kind == "scalar":
            if not isinstance(told.get("value"), (int, float)):
                raise TaskError(f"the scalar '{name}' is {told.get('value')!r}")
            text = repr(told["value"])
        elif kind == "custom":
            text = f"_made[{name!r}]"
        elif kind == "safetensors":
            text = _stored(name, one, told, values, root)
        elif kind == "random":
            text = _random(name, one)
            if definition.op_type == "sampling" and name == "probs":
                text = f"torch.softmax({text}, dim=-1)"
        else:
            raise TaskError(f"the input '{name}' is of type '{kind}', expected random, scalar, safetensors or custom")
        lines.append(f"    {name} = {text}")
    return lines


def _random(name: str, one: dict) -> str:
    dtype, shape = one["dtype"], one["shape"]
    sizes_ = f"({', '.join(shape or [])}{',' if shape else ''})"
    if dtype in FLOATS:
        text = f"torch.randn({sizes_}, dtype=torch.{dtype})"
    elif dtype in NARROW:
        text = f"torch.randn({sizes_}).clamp_(-2, 2).to(torch.{dtype})"
    elif dtype == "bool":
        text = f"torch.randint(0, 2, {sizes_}).to(torch.bool)"
    elif dtype in INTEGERS:
        low, high = INTEGERS[dtype]
        text = f"torch.randint({low}, {high}, {sizes_}).to(torch.{dtype})"
    else:
        raise TaskError(f"'{name}' is {dtype}, which is not supported here")
    return f"{text}.item()" if shape is None else text


def _stored(name: str, one: dict, told: dict, values: dict[str, int], root: Path) -> str:
    path = inside(root / str(told.get("path", "")), root)
    found = safetensors.read(path, str(told.get("tensor_key", name)))
    shape = [values[axis] for axis in one["shape"] or []]
    if found.shape != shape or found.dtype != one["dtype"]:
        raise TaskError(f"'{name}' in {told['path']} is {found.dtype} {found.shape}, the definition says {one['dtype']} {shape}")
    if len(found.data) > MAX_STORED:
        raise TaskError(f"'{name}' has {len(found.data)} bytes, more than {MAX_STORED} that a workload may bring")
    packed = base64.b85encode(zlib.compress(found.data, 9)).decode()
    return (f"torch.frombuffer(bytearray(__import__('zlib').decompress(__import__('base64').b85decode({packed!r}))), "
            f"dtype=torch.{found.dtype}).reshape({tuple(shape)!r}).clone()") if found.data else \
        f"torch.empty({tuple(shape)!r}, dtype=torch.{found.dtype})"


def quoted(text: str) -> str:
    return repr(text) if "'''" in text or "\\" in text or text.endswith("'") else f"r'''\n{text}\n'''"


def files_for(name: str) -> tuple[str, ...]:
    """The names of programs that may stand for a definition: its own, then that without its last parts, one after the
    other: `gqa_paged_decode_h32_kv8_d128_ps1` may be gqa_paged_decode."""
    parts = name.split("_")
    return tuple("_".join(parts[:count]) for count in range(len(parts), 0, -1))
