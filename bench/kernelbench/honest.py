#!/usr/bin/env python3
"""Honest candidates for tasks, made from the tasks themselves, and what the harness says of them.

Usage: honest.py --root=KERNELBENCH --out=FOLDER [--level=1,2,3] [--tasks=...] [--forms=renamed,chunked,...] [--each=2]

For each task and each form below, OUT/candidates/FORM/level<N>/TASK.py is the task's own module, written in another
way: a `ModelNew` as somebody might hand it in who wants nothing but to be faster. A form is written for a task only
where it is honest beyond doubt: in float64 it gives what the module gives. `--each` writes so many forms for a task,
in turn from task to task, instead of all. Then every file is judged as
`tegula-eval kernelbench --candidates` does it (docs/eval.md); whatever is not right is a false alarm, and is told.
The same command goes on where it was stopped.

Exit codes: 0 no false alarm, 1 some, 2 wrong arguments.
"""
from __future__ import annotations

import argparse
import ast
import collections
import contextlib
import io
import json
import sys
import zlib
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parents[1] / "python"))

import torch  # noqa: E402

from tegula_eval import cli  # noqa: E402
from tegula_eval.confine import child  # noqa: E402
from tegula_eval.judge.evaluate import find_cached_variants  # noqa: E402
from tegula_eval.rule.reference import in_float64, results  # noqa: E402
from tegula_eval.rule.tasks import TaskError, find_tasks, load  # noqa: E402
from tegula_eval.rule.variants import warm  # noqa: E402
from tegula_eval.rule.verdict import measure_error  # noqa: E402


class _Rename(ast.NodeTransformer):
    def visit_ClassDef(self, node):
        node.name = "ModelNew" if node.name == "Model" else node.name
        return self.generic_visit(node)

    def visit_Name(self, node):
        node.id = "ModelNew" if node.id == "Model" else node.id
        return node


def renamed(task: str) -> str:
    return ast.unparse(_Rename().visit(ast.parse(task)))


class _InPlace(ast.NodeTransformer):
    """`x = torch.relu(x)` and `x = x * y` in forward, of an x that forward itself has made, as `x = torch.relu_(x)`
    and `x *= y`; modules with an option for that take it."""

    ELEMENTWISE = {"relu", "sigmoid", "tanh", "clamp", "exp", "selu", "abs", "neg", "sqrt", "square"}
    OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)

    def visit_FunctionDef(self, node):
        if node.name != "forward":
            return node
        made = set()
        for place, one in enumerate(node.body):
            if not isinstance(one, ast.Assign) or len(one.targets) != 1 or not isinstance(one.targets[0], ast.Name):
                continue
            name = one.targets[0].id
            if name in made:
                node.body[place] = self._written(one, name)
            made.add(name)
        return node

    def _written(self, node: ast.Assign, name: str) -> ast.stmt:
        value = node.value
        def is_it(one):
            return isinstance(one, ast.Name) and one.id == name
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.args and \
                is_it(value.args[0]) and isinstance(value.func.value, ast.Name) and value.func.value.id == "torch" and \
                value.func.attr in self.ELEMENTWISE:
            value.func.attr += "_"
        elif isinstance(value, ast.BinOp) and is_it(value.left) and isinstance(value.op, self.OPERATORS):
            return ast.AugAssign(ast.Name(name, ast.Store()), value.op, value.right)
        return node


IN_PLACE = '''

class ModelNew(Model):
    """What can be is done in place."""
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        for one in self.modules():
            if hasattr(one, "inplace"):
                one.inplace = True
'''


def in_place(task: str) -> str:
    return ast.unparse(ast.fix_missing_locations(_InPlace().visit(ast.parse(task)))) + IN_PLACE


def _of_file(path: Path):
    text = path.read_text(encoding="utf-8")
    return lambda task: f"{task}\n\nimport torch\n\n\n{text}"


FORMS = {"renamed": renamed, "in_place": in_place,
         **{path.stem: _of_file(path) for path in sorted((FOLDER / "honest").glob("*.py"))}}


def _agree(one: torch.Tensor, other: torch.Tensor) -> bool:
    """But for what float64 rounds."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not one.is_floating_point():
        return torch.equal(one, other)
    return bool((one.isfinite() == other.isfinite()).all()) and measure_error(other, one).norm < 1e-10


def is_honest(task: str, text: str) -> bool:
    """Whether in float64 it gives what the task's module gives, on two sets of inputs one after the other."""
    theirs, ours = load(task), {"__name__": "candidate"}
    try:
        exec(compile(text, "candidate.py", "exec"), ours)
        init = theirs.get_init_inputs()
        made = []
        for one in (theirs.Model, ours["ModelNew"]):
            torch.manual_seed(1)
            made.append(one(**init) if isinstance(init, dict) else one(*init))
        for seed in (2, 3):
            torch.manual_seed(seed)
            inputs = list(theirs.get_inputs())
            given = []
            for model in made:
                torch.manual_seed(4)
                with torch.no_grad(), in_float64(model):
                    fresh = [one.to(torch.float64, copy=True) if isinstance(one, torch.Tensor) and
                             one.is_floating_point() else one for one in inputs]
                    given.append([one.clone() for one in results(model(*fresh))])
            if len(given[0]) != len(given[1]) or not all(map(_agree, *given)):
                return False
    except Exception:  # whatever the form does not suit
        return False
    return True


def write(request: dict, stage=lambda name: None) -> dict:
    """In a child: the forms of one task that are honest, by name, as texts."""
    torch.set_num_threads(1)
    stage("variants")
    variants = find_cached_variants(request)
    smallest, judged = variants[0].source, variants[-1].source  # some modules read the task's sizes
    found: dict[str, str] = {}
    for form in request["forms"]:
        if len(found) == request["each"]:
            break
        stage(form)
        if is_honest(smallest, FORMS[form](smallest)):
            found[form] = FORMS[form](judged)
    return found


def write_all(options, tasks: list) -> None:
    """Files for all tasks and forms; of a task that has been looked at, `looked` says so."""
    folder = options.out / "candidates"
    for number, task in enumerate(tasks):
        first = number % len(options.forms)
        forms = options.forms[first:] + options.forms[:first]
        looked = folder / "looked" / f"{task.key}.json"
        text = task.source()
        key = zlib.crc32(repr((text, options.each, [FORMS[form](text) for form in forms])).encode())
        with contextlib.suppress(OSError, ValueError):
            if json.loads(looked.read_text()) == key:
                continue
        request = {"task": text, "forms": forms, "each": options.each, "bytes": options.bytes,
                   "flops": int(options.flops), "cache": str(options.out / "variants")}
        outcome = child.run(write, request, options.deadline, 8 << 30, None)
        if outcome["kind"] != "done":
            print(f"{task.key}: {outcome['kind']} in {outcome['stage']}: {outcome['message'][:200]}", file=sys.stderr)
        for form in options.forms:
            place = folder / form / f"{task.key}.py"
            place.unlink(missing_ok=True)
            if outcome["kind"] == "done" and form in outcome["answer"]:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(outcome["answer"][form], encoding="utf-8")
        looked.parent.mkdir(parents=True, exist_ok=True)
        looked.write_text(json.dumps(key))


def judge_all(options, tasks: list) -> int:
    """Prints a line a form and one for each false alarm; their number."""
    alarms, all_told = [], collections.Counter()
    for form in options.forms:
        folder, out = options.out / "candidates" / form, options.out / "runs" / form
        count = sum((folder / f"{task.key}.py").exists() for task in tasks)
        if not count:
            continue
        out.mkdir(parents=True, exist_ok=True)
        if not (out / "variants").exists():
            (out / "variants").symlink_to((options.out / "variants").resolve())
        arguments = ["kernelbench", f"--root={options.root}", f"--candidates={folder}", f"--out={out}", "--plain",
                     f"--bytes={options.bytes}", f"--flops={options.flops}", f"--jobs={options.jobs}",
                     f"--deadline={options.deadline}", "--retry=timeout,failed,crashed"]
        arguments += [f"--level={','.join(map(str, options.level))}"] if options.level else []
        arguments += [f"--tasks={','.join(options.tasks)}"] if options.tasks else []
        with contextlib.redirect_stdout(io.StringIO()):
            cli.main(arguments)
        keys = {task.key for task in tasks}
        last = {}
        for line in (out / "results.jsonl").read_text().splitlines():
            record = json.loads(line)
            text = folder / f"{record['task']}.py"
            if record["task"] in keys and text.exists() and record["request"]["program"] == text.read_text():
                last[record["task"]] = record
        counts = collections.Counter(record["outcome"] for record in last.values())
        all_told += counts
        print(f"{form}: {count} candidates; " + ", ".join(f"{one} {number}" for one, number in counts.most_common()),
              flush=True)
        alarms += [(form, record) for record in last.values()
                   if record["outcome"] not in ("right", "unjudged") or "excessive" in record["flags"]]
    for form, record in alarms:
        print(f"{form} {record['task']}: {record['outcome']} ({record['reason']}): {record['message'][:300]}")
    print(f"{sum(all_told.values())} candidates for {len(tasks)} tasks: {all_told['right']} right, "
          f"{all_told['unjudged']} not judged (their tasks draw random numbers), {len(alarms)} false alarms")
    return len(alarms)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True, help="KernelBench's repository, or a folder of tasks")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--level", type=lambda text: [int(part) for part in text.split(",")])
    parser.add_argument("--tasks", type=lambda text: text.split(","))
    parser.add_argument("--forms", type=lambda text: text.split(","), default=list(FORMS))
    parser.add_argument("--each", type=int, default=len(FORMS), help="forms for each task, in turn (all)")
    parser.add_argument("--bytes", type=int, default=8 << 20)
    parser.add_argument("--flops", type=float, default=2.0 ** 28)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--deadline", type=float, default=300)
    options = parser.parse_args()
    unknown = [form for form in options.forms if form not in FORMS]
    if unknown:
        parser.error(f"no form {unknown[0]}; there are {', '.join(FORMS)}")
    try:
        tasks = find_tasks(options.root, options.level, options.tasks)
    except TaskError as error:
        parser.error(str(error))
    (options.out / "variants").mkdir(parents=True, exist_ok=True)
    warm()
    write_all(options, tasks)
    return 1 if judge_all(options, tasks) else 0


if __name__ == "__main__":
    sys.exit(main())
