"""BackendBench: a folder of operators, OPERATOR__OVERLOAD/..., each judged on the samples of PyTorch's OpInfo for it.

A program's parameters stand for the operator's tensors in the order of its schema; constants have the schema's names (`self` is
`input`).
"""
from __future__ import annotations

import json
import keyword
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from ..records import summary
from ..rule.tasks import TaskError
from . import results
from .suite import Part, Suite, SuiteTask, folders, make_task

RULE = {"form": "sum", "atol": 1e-2, "rtol": 1e-2, "nan": True}
TIMEOUT_S = 1800
HEAD = "import torch\n\nFUNCTION = torch.ops.aten.{name}\n\n\n"


def find(places: list[Path]) -> list[SuiteTask]:
    found: dict[str, Path] = {}
    for place in folders(places):
        for path in sorted(place.iterdir()):
            if path.is_dir() and re.fullmatch(r"\w+", path.name) and not path.name.startswith("__"):
                found[path.name] = path
    if not found:
        raise TaskError(f"{', '.join(map(str, places))}: expected folders such as relu__default")
    samples = sample(sorted({_operator(name) for name in found}))
    return [_task(name, path, samples.get(_operator(name), [])) for name, path in found.items()]


def _operator(folder: str) -> str:
    """`add__Tensor` is add.Tensor, `add___Tensor` add_.Tensor, relu relu.default."""
    base, _, overload = folder.rpartition("__")
    return f"{base}.{overload}" if base else f"{folder}.default"


def sample(operators: list[str]) -> dict[str, list[dict]]:
    """OpInfo's samples, from a process of its own. Raises RuntimeError."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "samples.json"
        package = str(Path(__file__).resolve().parents[2])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])}
        done = subprocess.run([sys.executable, "-m", "tegula_eval.suites.opinfo", str(path), *operators], env=environment,
                              capture_output=True, text=True, timeout=TIMEOUT_S)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["?"])[-1]
            raise RuntimeError(f"PyTorch's OpInfo gives no samples: {last}")
        return json.loads(path.read_text(encoding="utf-8"))


def _task(name: str, path: Path, samples: list[dict]) -> SuiteTask:
    own = [one.stem for one in sorted(path.glob(f"{name}_implementation*.py"))][:1]
    files = (*(f"{name}/{one}" for one in own), name)
    if not samples:
        return make_task(name, "opinfo", [], problem=f"OpInfo has no sample that is {_operator(name)} alone", files=files)
    parts = [(str(number), module_text(_operator(name), call), RULE, {}) for number, call in enumerate(samples)]
    return make_task(name, "opinfo", parts, files=files)


def module_text(operator: str, call: dict) -> str:
    """A sample as a module: tensors are forward's inputs, all else the constructor's arguments."""
    tensors = {_python(name): one for name, one in call.items() if "tensor" in one}
    constants = {_python(name): one for name, one in call.items() if "tensor" not in one}
    values = {name: f"torch.{one['dtype']}" if "dtype" in one else repr(one["value"]) for name, one in constants.items()}
    passed = ", ".join(f"{name}={_python(name) if 'tensor' in one else 'self.' + _python(name)}" for name, one in call.items())
    if call and next(iter(call)) == "self":  # which a call cannot name beside its own
        passed = passed.partition("=")[2]
    lines = [HEAD.format(name=operator) + "class Model(torch.nn.Module):"]
    if constants:
        lines += [f"    def __init__(self, {', '.join(constants)}):", "        super().__init__()",
                  *(f"        self.{name} = {name}" for name in constants), ""]
    lines += [f"    def forward({', '.join(['self', *tensors])}):", f"        return FUNCTION({passed})", "", "",
              "def get_inputs():", f"    return [{', '.join(map(_drawn, tensors.values()))}]", "", "", "def get_init_inputs():",
              f"    return {{{', '.join(f'{name!r}: {value}' for name, value in values.items())}}}", ""]
    return "\n".join(lines)


def _python(name: str) -> str:
    if name == "self":
        return "input"
    return f"{name}_" if keyword.iskeyword(name) else name


def _drawn(one: dict) -> str:
    """New numbers in the samples' range."""
    shape = tuple(one["shape"])
    if "values" in one:
        return f"torch.tensor({one['values']!r}, dtype=torch.{one['tensor']}).reshape({shape!r})"
    return f"(torch.rand({shape!r}, dtype=torch.{one['tensor']}) * {one['high'] - one['low']!r} + {one['low']!r})"


def candidate(task: SuiteTask, part: Part, text: str) -> str:
    """OPERATOR_implementation.py, which defines OPERATOR_kernel_impl."""
    own = (f"import linecache\nimport torch\n\nSOURCE = {text!r}\n"
           'linecache.cache["main.py"] = len(SOURCE), None, SOURCE.splitlines(True), "main.py"\n'
           '_space = {"__name__": "solution", "__file__": "main.py"}\nexec(compile(SOURCE, "main.py", "exec"), _space)\n'
           f'FUNCTION = _space["{task.name}_kernel_impl"]\n\n\n')
    return own + "class ModelNew" + part.text.partition("class Model")[2].partition("def get_inputs")[0]


def score(ones: list) -> list:
    """Theirs counts an operator as correct where all of its samples pass; an operator that is not takes 1 as its speedup."""
    known = [one for one in ones if one.known]
    records = [record for one in known for record in one.records if record]
    speeds = [one.their_speedup() or 1.0 for one in known]
    return [("correctness", results.correctness(ones)),
            ("samples passed", results.share(sum(map(results.passes_theirs, records)), sum(len(one.task.parts) for one in known))),
            ("performance", summary.geometric_mean(speeds) if results.is_timed(known) else None),
            ("perf@1", results.fast(ones))]


SUITE = Suite("backendbench", find, score, candidate=candidate)
