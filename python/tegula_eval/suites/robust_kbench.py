"""robust-kbench: folders that hold func_forward.py with config_forward.json, or func_backward.py with config_backward.json.

The configuration lists settings of the inputs, of the initialisation and of both; each combination is a workload. A backward
task gives the gradients of all inputs that want one, then those of the parameters, from the inputs and the output's gradient.
"""
from __future__ import annotations

import ast
import json
from pathlib import Path

from ..rule.tasks import TaskError
from . import results
from .definitions import check_name, quoted
from .suite import Suite, SuiteTask, folders, make_task, read

RULE = {"form": "sum", "atol": 1e-5, "rtol": 1e-5}
HEAD = '''import torch

SOURCE = {source}
_space = {{"__name__": "task"}}
exec(compile(SOURCE, "task.py", "exec"), _space)

{sizes}

'''
FORWARD = '''
class Model(_space["Model"]):
    pass


def get_inputs():
    return [one.detach() if isinstance(one, torch.Tensor) else one for one in _space["get_inputs"]({inputs})]
'''
BACKWARD = '''
_wants = []  # which inputs want a gradient


class Model(_space["Model"]):
    def forward(self, {names}, grad_output):
        given = [one.detach().requires_grad_() if wants else one for one, wants in zip([{names}], _wants)]
        with torch.enable_grad():
            parameters = [one for one in self.parameters() if one.requires_grad]
            leaves = [one for one, wants in zip(given, _wants) if wants] + parameters
            found = torch.autograd.grad(super().forward(*given), leaves, grad_output, allow_unused=True)
        return [one for one in found if one is not None]  # a parameter that forward leaves alone has none


def get_inputs():
    drawn = _space["get_inputs"]({inputs})
    _wants[:] = [isinstance(one, torch.Tensor) and one.requires_grad for one in drawn]
    drawn = [one.detach() if isinstance(one, torch.Tensor) else one for one in drawn]
    with torch.no_grad():
        return [*drawn, torch.randn_like(_space["Model"](**get_init_inputs())(*drawn))]
'''
TAIL = '''

def get_init_inputs():
    return dict({init})
'''


def find(places: list[Path]) -> list[SuiteTask]:
    found = []
    for root in folders(places):
        for which in ("forward", "backward"):
            for path in sorted(root.rglob(f"func_{which}.py")):
                name = f"{path.parent.relative_to(root)}_{which}" if path.parent != root else f"{root.name}_{which}"
                name = name.removeprefix("tasks/")
                files = (name, f"{path.parent.name}_{which}")
                try:
                    found.append(make_task(name, which, _parts(path, root, which), files=files))
                except TaskError as error:
                    found.append(make_task(name, which, [], problem=str(error), files=files))
    if not found:
        raise TaskError(f"{', '.join(map(str, places))}: no folder holds func_forward.py or func_backward.py")
    return found


def _parts(path: Path, root: Path, which: str) -> list[tuple]:
    source = read(path, root)
    config = path.with_name(f"config_{which}.json")
    try:
        told = json.loads(read(config, root))
        lists = [told[f"multi_{one}_configs"] for one in ("init", "input", "shared")]
        settings = [({**init, **shared}, {**inputs, **shared}) for init in lists[0] for inputs in lists[1] for shared in lists[2]]
    except (ValueError, KeyError, TypeError) as error:
        raise TaskError(f"{config} is no configuration: {error!r}") from error
    own_init, own_inputs = _defaults(source)
    parts = []
    for number, (init, inputs) in enumerate(settings):
        init, inputs = {**own_init, **init}, {**own_inputs, **inputs}
        parts.append((str(number), _text(source, which, init, inputs), RULE, {"init": init, "inputs": inputs}))
    return parts


def _text(source: str, which: str, init: dict, inputs: dict) -> str:
    """The settings stand at module level, so that sizes can be made smaller; those of both are one."""
    names: dict[str, object] = {}
    given = []
    for prefix, settings in (("", {key: value for key, value in init.items() if key not in inputs or inputs[key] == value}),
                             ("init_", {key: value for key, value in init.items() if key in inputs and inputs[key] != value}),
                             ("", inputs)):
        pairs = []
        for key, value in settings.items():
            check_name(key)
            names[f"{prefix}{key}"] = value
            pairs.append(f"{key}={prefix}{key}")
        given.append(pairs)
    sizes = "\n".join(f"{name} = {value!r}" for name, value in names.items())
    body = FORWARD if which == "forward" else BACKWARD
    return HEAD.format(source=quoted(source), sizes=sizes) + body.format(
        inputs=", ".join(given[2]), names=", ".join(_input_names(source))) + TAIL.format(init=", ".join(given[0] + given[1]))


def _defaults(source: str) -> tuple[dict, dict]:
    """Sizes that the constructor and get_inputs have as defaults: a setting that leaves them out means them."""
    found: dict[str, dict] = {"__init__": {}, "get_inputs": {}}
    for node in ast.walk(_parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name in found:
            names = [one.arg for one in node.args.args]
            for name, value in zip(names[len(names) - len(node.args.defaults):], node.args.defaults):
                if isinstance(value, ast.Constant) and type(value.value) is int:
                    found[node.name][name] = value.value
    return found["__init__"], found["get_inputs"]


def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise TaskError(f"the task is not Python: {error}") from error


def _input_names(source: str) -> list[str]:
    """Of Model.forward, without those with a default (the function that it calls)."""
    for node in _parse(source).body:
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            for one in node.body:
                if isinstance(one, ast.FunctionDef) and one.name == "forward":
                    names = [each.arg for each in one.args.args][1:]
                    return names[:len(names) - len(one.args.defaults)]
    raise TaskError("the task has no class Model with a forward")


def score(ones: list) -> list:
    known = [one for one in ones if one.known]
    told = []
    for which in ("forward", "backward"):
        of_it = [one for one in known if one.task.group == which]
        told += [(f"{which} correct", results.correctness(of_it)),
                 (f"{which} speedup", results.mean([speed for one in of_it if (speed := one.their_speedup())]))]
    return told


SUITE = Suite("robust-kbench", find, score)
