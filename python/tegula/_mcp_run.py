"""Runs one kernel for `tegula.mcp`: a request on standard input, a result on standard output, both JSON."""

from __future__ import annotations

import ast
import json
import math
import operator
import sys
import traceback
import warnings
from typing import Any

import numpy as np

from . import _errors, _kernel

LARGE = 4096  # elements that are told in full
MOST_RANDOM = 1 << 30  # elements of random tensors: 8 GiB as they are drawn
NUMPY = {"f64": "f8", "f32": "f4", "f16": "f2", "i64": "i8", "i32": "i4", "i16": "i2", "i8": "i1", "u8": "u1",
         "u16": "u2", "u32": "u4", "u64": "u8",
         "bool": "?"}


def _told(array: Any) -> dict[str, Any]:
    values = (array.ravel()[:LARGE] if array.size > LARGE else array).tolist()
    result = {"dtype": array.dtype.name, "shape": list(array.shape),
              "values": _numbers(values, 17 if array.dtype == np.float64 else 9)}
    return {**result, "left_out": int(array.size - LARGE)} if array.size > LARGE else result


def _numbers(values: Any, digits: int) -> Any:
    """With the digits that tell them apart; what JSON has no number for as text."""
    if isinstance(values, list):
        return [_numbers(one, digits) for one in values]
    if isinstance(values, float):
        return float(f"{values:.{digits}g}") if math.isfinite(values) else str(values)
    return values


def _array(name: str, value: Any, dtype: str) -> Any:
    if dtype not in NUMPY:
        raise _errors.wrong_call(f"'{name}' is {dtype}, of which no lists are taken here: try the type f32")
    try:
        return np.array(value, NUMPY[dtype])
    except (ValueError, TypeError, OverflowError) as error:
        raise _errors.wrong_call(f"'{name}' is no array of {dtype}: {error}") from None


_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
              ast.Div: operator.floordiv}


def _extent(dim: str, sizes: dict[str, int]) -> int:
    """The value of a dim as written: numbers, sizes, + - * // and /. Raises KeyError for a size without a value,
    ValueError for another form."""
    def value(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name):
            return sizes[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        raise ValueError(dim)

    return value(ast.parse(dim, mode="eval").body)


def _random(parameter: _kernel.Parameter, dtype: str, sizes: dict[str, int], generator: Any) -> Any:
    shape = []
    for dim in parameter.dims:
        try:
            extent = _extent(dim, sizes)
        except (KeyError, ValueError, ZeroDivisionError) as error:
            lacking = error.args[0] if isinstance(error, KeyError) else dim
            raise _errors.wrong_call(f"'{parameter.name}' is not given, and 'sizes' does not say {lacking}: give "
                                     f"'inputs' or 'sizes' for {parameter}") from None
        if extent < 0:
            raise _errors.wrong_call(f"the size {dim} is {extent}")
        shape.append(extent)
    if math.prod(shape) > MOST_RANDOM:
        raise _errors.wrong_call(f"'{parameter.name}' would have {math.prod(shape)} elements, for which there is not enough "
                                 f"memory: {MOST_RANDOM} are drawn at most")
    if dtype.startswith("f") and dtype in NUMPY:
        return generator.standard_normal(shape).astype(NUMPY[dtype])
    return _array(parameter.name, generator.integers(0, 2 if dtype == "bool" else 4, shape), dtype)


def run(request: dict[str, Any]) -> dict[str, Any]:
    kernel = _kernel.compile(request["program"], request["kernel"], file_name="program.tgl")
    inputs = [one for one in kernel.parameters if one.role != "out"]
    for name in (*request["inputs"], *request["values"]):
        if name not in {one.name for one in inputs}:
            raise _errors.wrong_call(f"kernel '{kernel.name}' has no parameter '{name}': {kernel.signature}")
    types = {one.type: request["types"].get(one.type, "f32") for one in kernel.parameters if one.is_generic}
    generator = np.random.default_rng(request["seed"])
    arguments, drawn = {}, {}
    for one in inputs:
        if not one.is_tensor:
            if one.name in request["values"]:
                value = request["values"][one.name]
                arguments[one.name] = tuple(value) if isinstance(value, list) else value
            continue
        dtype = types.get(one.type, one.type)
        if one.name in request["inputs"]:
            arguments[one.name] = _array(one.name, request["inputs"][one.name], dtype)
        elif one.default is None:
            arguments[one.name] = drawn[one.name] = _random(one, dtype, request["sizes"], generator)
    told = {name: _told(array) for name, array in drawn.items()}  # before an inout is written
    results = kernel(*(arguments.get(one.name) for one in inputs))
    results = () if results is None else results if isinstance(results, tuple) else (results,)
    outputs = dict(zip((one.name for one in kernel.outputs), results))
    outputs.update({one.name: arguments[one.name] for one in inputs if one.role == "inout"})
    return {"signature": kernel.signature, "inputs": told,
            "outputs": {name: _told(array) for name, array in outputs.items()}}


def main() -> None:
    request = json.load(sys.stdin)
    records: list[Any] = []
    result: dict[str, Any]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = run(request)
        except (_errors.Error, MemoryError) as error:
            records = [one.record for one in getattr(error, "diagnostics", ())]
            words = "not enough memory: " if isinstance(error, MemoryError) else ""
            result = {"error": f"{words}{error}"}
        except Exception as error:  # a defect, or an argument that nothing above has thought of: told, never a traceback
            traceback.print_exc()
            result = {"error": f"{type(error).__name__}: {error}"}
    records += [one.message.diagnostic.record for one in caught if isinstance(one.message, _errors.TegulaWarning)
                and one.message.diagnostic]
    json.dump({**result, "diagnostics": records}, sys.stdout)


if __name__ == "__main__":
    main()
