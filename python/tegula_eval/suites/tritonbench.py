"""TritonBench's T channel: files of a function, a line of #, and a test that calls it; each call is a workload.

Nothing of a file is run here: the statements before a call, with what names a device taken out, draw its arguments.
"""
from __future__ import annotations

import ast
from pathlib import Path

from ..rule.tasks import TaskError
from . import results
from .definitions import check_name, quoted
from .suite import Part, Suite, SuiteTask, folders, make_task, read

# Theirs compares what is printed, of which torch shows four digits.
RULE = {"form": "sum", "atol": 1e-4, "rtol": 1e-4, "nan": True}
LINE = "#" * 60
TEXT = '''import torch

SOURCE = {source}
_space = {{"__name__": "task"}}
exec(compile(SOURCE, "task.py", "exec"), _space)


class Model(torch.nn.Module):
    def forward({names}):
        return _space[{function!r}]({call})


def get_inputs():
{draw}


def get_init_inputs():
    return []
'''


def find(places: list[Path]) -> list[SuiteTask]:
    found = []
    for place in folders(places):
        root = place / "data" / "TritonBench_T_v1" if (place / "data" / "TritonBench_T_v1").is_dir() else place
        for path in sorted(root.glob("*.py")):
            try:
                found.append(make_task(path.stem, "T", _parts(read(path, place))))
            except TaskError as error:
                found.append(make_task(path.stem, "T", [], problem=f"{path}: {error}"))
    if not found:
        raise TaskError(f"{', '.join(map(str, places))}: expected data/TritonBench_T_v1/*.py, or such files")
    return found


def _parts(text: str) -> list[tuple]:
    line = next((line for line in text.splitlines() if line.startswith(LINE)), None)
    if line is None:
        raise TaskError("no line of # parts the function from its test")
    source, _, test = text.partition(f"{line}\n")
    tested = [node for node in _parse(test).body if isinstance(node, ast.FunctionDef)]
    defined = {node.name: node for node in _parse(source).body if isinstance(node, ast.FunctionDef)}
    if len(tested) != 1:
        raise TaskError(f"its test has {len(tested)} functions, expected one")
    before: list[ast.stmt] = []
    parts = []
    for statement in tested[0].body:
        call = _call(statement, defined)
        if call is None:
            before.append(statement)
            continue
        try:
            parts.append((str(len(parts)), _text(source, defined[call.func.id], before, call), RULE, {}))
        except TaskError as error:
            parts.append((str(len(parts)), "", RULE, {}, str(error)))
    if not parts:
        raise TaskError("its test calls the function nowhere by itself, as in results[...] = function(...)")
    return parts


def _parse(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise TaskError(f"not Python: {error}") from error


def _call(statement: ast.stmt, defined: dict) -> ast.Call | None:
    value = statement.value if isinstance(statement, (ast.Assign, ast.Expr)) else None
    return value if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in defined else None


def _text(source: str, function: ast.FunctionDef, before: list[ast.stmt], call: ast.Call) -> str:
    if function.args.vararg or function.args.kwarg or any(isinstance(one, ast.Starred) for one in call.args) or \
            any(one.arg is None for one in call.keywords):
        raise TaskError("the function is called with a list of arguments whose names are not known")
    known = [one.arg for one in [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]]
    given = dict(zip(known, call.args)) | {one.arg: one.value for one in call.keywords}
    if "out" in given:
        raise TaskError("the call writes into a tensor that it is given")
    for name in given:
        if name not in known:
            raise TaskError(f"the function has no argument '{name}'")
        check_name(name)
    names = [name for name in known if name in given]
    draw = [ast.unparse(ast.fix_missing_locations(_WithoutDevice().visit(ast.parse(ast.unparse(one))))) for one in before]
    values = ", ".join(ast.unparse(_WithoutDevice().visit(ast.parse(ast.unparse(given[name]), mode="eval"))) for name in names)
    body = "\n".join(f"    {line}" for one in [*draw, f"return [{values}]"] for line in one.splitlines())
    return TEXT.format(source=quoted(source), names=", ".join(["self", *names]), function=function.name,
                       call=", ".join(f"{name}={name}" for name in names), draw=body)


class _WithoutDevice(ast.NodeTransformer):
    """Takes `device='cuda'`, `.cuda()` and `.to('cuda')` away: the judge brings inputs to where they are wanted."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "cuda" and not node.args:
            return node.func.value
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to" and len(node.args) == 1 \
                and isinstance(node.args[0], ast.Constant) and str(node.args[0].value).startswith("cuda"):
            return node.func.value
        node.keywords = [one for one in node.keywords if one.arg != "device"]
        return node


def candidate(task: SuiteTask, part: Part, text: str) -> str:
    """A file that defines the function, Triton kernels beside it, with or without a test behind a line of #."""
    source = part.text.partition("class Model")[2]
    if not source:
        return text
    line = next((line for line in text.splitlines() if line.startswith(LINE)), None)
    own = text.partition(line)[0] if line else text
    return (f"import linecache\nimport torch\n\nSOURCE = {own!r}\n"
            'linecache.cache["main.py"] = len(SOURCE), None, SOURCE.splitlines(True), "main.py"\n'
            '_space = {"__name__": "solution", "__file__": "main.py"}\nexec(compile(SOURCE, "main.py", "exec"), _space)\n\n\n'
            f"class ModelNew{source.partition('def get_inputs')[0]}")


def score(ones: list) -> list:
    known = [one for one in ones if one.known]
    called = sum(one.right or one.outcome == "wrong" for one in known)
    return [("call accuracy", results.share(called, len(known))), ("execution accuracy", results.correctness(ones)),
            ("speedup", results.mean([speed for one in known if (speed := one.their_speedup())]))]


SUITE = Suite("tritonbench", find, score, candidate=candidate)
