"""Programs as solutions of FlashInfer-Bench and SOL-ExecBench (JSON, destination-passing `run()`), their traces, and the
other way: such a solution as `class ModelNew`, to be judged."""
from __future__ import annotations

import datetime
import json
from pathlib import Path

from ..records import summary
from ..rule.tasks import TaskError
from .definitions import Definition, arithmetic, load_json
from .suite import Part, SuiteTask

AUTHOR = "tegula"
STATUS = {"refused": "COMPILE_ERROR", "binding": "COMPILE_ERROR", "call": "RUNTIME_ERROR", "crashed": "RUNTIME_ERROR",
          "memory": "RUNTIME_ERROR", "internal": "COMPILE_ERROR", "timeout": "TIMEOUT"}
WRONG = {"shape": "INCORRECT_SHAPE", "count": "INCORRECT_SHAPE", "dtype": "INCORRECT_DTYPE"}


class Unsupported(TaskError):
    """A solution in a form that is not judged here: nothing is known of it."""


def as_module(task: SuiteTask, part: Part, text: str) -> str:
    """A solution's JSON, or the Python text of its one file, as `class ModelNew`. Raises Unsupported."""
    definition: Definition = task.facts["definition"]
    entry, passes_outputs = "run", True
    if text.lstrip().startswith("{"):
        text, entry, passes_outputs = _source(load_json(text, "the solution"), definition)
    names, outputs = list(definition.inputs), list(definition.outputs)
    lines = ["import linecache", "", "import torch", "", f"SOURCE = {text!r}",
             "# Where Triton reads a function's text.",
             'linecache.cache["main.py"] = len(SOURCE), None, SOURCE.splitlines(True), "main.py"',
             '_space = {"__name__": "solution", "__file__": "main.py"}',
             'exec(compile(SOURCE, "main.py", "exec"), _space)', "", "", "class ModelNew(torch.nn.Module):",
             f"    def forward({', '.join(['self', *names])}):"]
    if not passes_outputs:
        lines += [f"        found = _space[{entry!r}]({', '.join(names)})",
                  f"        return [found[name] for name in {outputs!r}] if isinstance(found, dict) else found"]
    else:
        lines += [f"        {line}" for line in allocation(definition)]
        lines += [f"        _space[{entry!r}]({', '.join([*names, *outputs])})", f"        return [{', '.join(outputs)}]"]
    return "\n".join(lines) + "\n"


def _source(record: dict, definition: Definition) -> tuple[str, str, bool]:
    try:
        spec = record["spec"]
        languages = spec.get("languages") or [spec["language"]]
        if record["definition"] != definition.name:
            raise Unsupported(f"the solution is for {record['definition']}, not {definition.name}")
        if not set(languages) <= {"python", "pytorch", "triton"}:
            raise Unsupported(f"a solution in {', '.join(languages)} is not judged here: python, pytorch and triton are")
        if len(record["sources"]) != 1:
            raise Unsupported(f"the solution has {len(record['sources'])} files; one of one file is judged here")
        path, _, entry = spec["entry_point"].partition("::")
        if path != record["sources"][0]["path"] or not entry.isidentifier():
            raise Unsupported(f"the solution's entry point '{spec['entry_point']}' is in none of its files")
        return record["sources"][0]["content"], entry, bool(spec.get("destination_passing_style", True))
    except (KeyError, TypeError, AttributeError) as error:
        raise Unsupported(f"no solution: {error!r}") from error


def allocation(definition: Definition) -> list[str]:
    """Lines that make the outputs from the inputs. Raises Unsupported where an axis is not one of theirs."""
    lines, known = [], set()
    device = None
    for name, one in definition.inputs.items():
        if one["shape"]:
            device = device or f"{name}.device"
            lines.append(f"{', '.join(one['shape'])}, = {name}.shape")
            known |= set(one["shape"])
    for name, axis in definition.axes.items():
        if name not in known and axis["type"] == "const":
            lines.append(f"{name} = {axis['value']}")
            known.add(name)
    for name, axis in definition.axes.items():
        if name not in known and axis["type"] == "expr":
            lines.append(f"{name} = int({arithmetic(axis['expression'], known)})")
            known.add(name)
    for name, one in definition.outputs.items():
        if one["shape"] is None or not set(one["shape"]) <= known:
            raise Unsupported(f"the output '{name}' has no shape that follows from the inputs")
        shape = "".join(f"{axis}, " for axis in one["shape"])
        lines.append(f"{name} = torch.empty(({shape}), dtype=torch.{one['dtype']}, device={device})")
    return lines


def main_text(definition: Definition, program: str, sources: dict[str, list]) -> str:
    """The Python file of a solution. `sources`: what each of the program's parameters stands for (program/binding.py); a
    parameter that it writes in place is given as "inout"."""
    names, outputs = list(definition.inputs), list(definition.outputs)
    lines = [f'"""{definition.name} as a Tegula program. Needs the package tegula."""', "import tegula", "",
             f"KERNEL = tegula.compile({program!r})", "", "",
             f"def run({', '.join([*names, *outputs])}):"]
    written = [name for name, (kind, *_) in sources.items() if kind == "inout"]
    given = {name: source for name, (kind, source) in sources.items() if kind in ("input", "inout")}
    for output, name in zip(outputs, written):
        lines.append(f"    {output}.copy_({given[name]})")
        given[name] = output
    call = [f"{name}={source}" for name, source in given.items()]
    if not written:
        call.append(f"out={outputs[0] if len(outputs) == 1 else '(' + ', '.join(outputs) + ')'}")
    return "\n".join([*lines, f"    KERNEL({', '.join(call)})"]) + "\n"


def write_flashinfer(result, program: str, out: Path) -> list[str]:
    """The solution, where it is right, and the traces of what was timed at the workloads' own sizes. What was written, and
    what was not with the reason."""
    return _write(result, program, out, {"language": "python"})


def write_sol(result, program: str, out: Path) -> list[str]:
    return _write(result, program, out, {"languages": ["pytorch"]})


def _write(result, program: str, out: Path, language: dict) -> list[str]:
    definition: Definition = result.task.facts["definition"]
    name = f"{AUTHOR}_{definition.name}"
    told = []
    if result.right:
        first = result.records[0]
        hardware = _hardware(first)
        record = {"name": name, "definition": definition.name, "author": AUTHOR,
                  "description": "A Tegula program, compiled when it is called",
                  "spec": {**language, "target_hardware": [hardware], "entry_point": "main.py::run",
                           "destination_passing_style": True, "dependencies": ["torch", "tegula"]},
                  "sources": [{"path": "main.py", "content": main_text(definition, program, first["sources"])}]}
        path = out / "solutions" / AUTHOR / (definition.op_type or "other") / definition.name / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        told.append(str(path))
    traces = [one for one in map(lambda pair: _trace(definition, name, *pair), zip(result.task.parts, result.records)) if one]
    if traces:
        path = out / "traces" / (definition.op_type or "other") / f"{definition.name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(one) + "\n" for one in traces), encoding="utf-8")
        told.append(str(path))
    elif result.right:
        told.append(f"{definition.name}: no traces, which hold times at the workloads' own sizes: --own --time")
    return told


def _trace(definition: Definition, solution: str, part: Part, record: dict | None) -> dict | None:
    """None where there is nothing to say in that form: it was not judged, or is right but was not timed at its own size."""
    if record is None:
        return None
    timing, cases = record.get("timing") or {}, [one["theirs"] for one in record["cases"] if "theirs" in one]
    status = {summary.GOOD: "PASSED", "wrong": WRONG.get(record["reason"], "INCORRECT_NUMERICAL")}.get(
        record["outcome"], STATUS.get(record["outcome"]))
    evaluation: dict = {"status": status, "environment": {"hardware": _hardware(record), "libs": {
        name: record.get("versions", {}).get(name, "") for name in ("torch", "tegula")}},
        "timestamp": datetime.datetime.now().isoformat(timespec="seconds"), "log": record["message"]}
    if status in ("PASSED", "INCORRECT_NUMERICAL"):
        if not cases:
            return None
        evaluation["correctness"] = {name: max((one[name] for one in cases), key=float)
                                     for name in ("max_relative_error", "max_absolute_error")}
    if status == "PASSED":
        if timing.get("variant") != "own" or not timing.get("program_s") or not timing.get("eager_ratio"):
            return None
        evaluation["performance"] = {"latency_ms": timing["program_s"] * 1e3, "reference_latency_ms": timing["eager_s"] * 1e3,
                                     "speedup_factor": timing["eager_ratio"]}
    if status is None:
        return None
    return {"definition": definition.name, "solution": solution, "workload": part.facts["workload"],
            "evaluation": evaluation}


def _hardware(record: dict) -> str:
    versions = record.get("versions") or {}
    return (versions.get("device") or versions.get("processor") or "CPU").replace(" ", "_")
