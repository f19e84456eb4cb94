"""FlashInfer-Bench: a folder of definitions/**/*.json and workloads/**/*.jsonl (flashinfer-trace)."""
from __future__ import annotations

from pathlib import Path

from ..rule import tolerance
from ..rule.tasks import TaskError
from . import results, solutions
from .definitions import Definition, definition_of, files_for, lines_of, load_json, module_text
from .suite import Suite, SuiteTask, folders, make_task, read

# By operator type where its evaluators differ from the default.
RULE = {"form": "either", "atol": 1e-2, "rtol": 1e-2}


def find(places: list[Path]) -> list[SuiteTask]:
    return [task for place in folders(places) for task in _of_folder(place)]


def _of_folder(root: Path) -> list[SuiteTask]:
    if not (root / "definitions").is_dir():
        raise TaskError(f"{root} holds no folder 'definitions'")
    workloads: dict[str, list[dict]] = {}
    broken: dict[str, str] = {}  # by the definitions that the file names, and its own name
    files: dict[Path, set[str]] = {}  # of broken ones these names
    for path in sorted((root / "workloads").rglob("*.jsonl")):
        text = ""
        try:
            text = read(path, root)
            for record in lines_of(text, path):
                workloads.setdefault(record["definition"], []).append(record["workload"])
        except (TaskError, KeyError, TypeError) as error:
            problem = f"{path}: a line is no workload: {error}"
            files[path] = {path.stem, *_named(text)}
            broken.update(dict.fromkeys(files[path], problem))
    found, known = [], set()
    for path in sorted((root / "definitions").rglob("*.json")):
        known.add(path.stem)
        try:
            definition = definition_of(load_json(read(path, root), path), path)
        except TaskError as error:
            found.append(make_task(path.stem, path.parent.name, [], problem=str(error)))
            continue
        known.add(definition.name)
        if problem := broken.get(definition.name) or broken.get(path.stem):
            found.append(make_task(definition.name, definition.op_type, [], problem=problem))
        else:
            found.append(task_of(definition, workloads.get(definition.name, []), root, lambda one: RULE))
    if not found:
        raise TaskError(f"{root}/definitions holds no definition")
    for path, names in files.items():
        if not names & known:  # nobody knows whose workloads are left out
            found.append(make_task(str(path.relative_to(root)), "workloads", [], problem=broken[path.stem]))
    return found


def _named(text: str) -> set[str]:
    """The definitions that lines of a broken file are for, as far as they can be read."""
    named = set()
    for line in text.splitlines():
        try:
            name = load_json(line, "a line").get("definition")
        except TaskError:
            continue
        if isinstance(name, str):
            named.add(name)
    return named


def task_of(definition: Definition, workloads: list[dict], root: Path, rule, called: str = "", group: str | None = None,
            **more) -> SuiteTask:
    """`rule`: the tolerance of a workload. `called`, `group`: where they are not those of the definition."""
    parts, called, group = [], called or definition.name, definition.op_type if group is None else group
    for number, workload in enumerate(workloads):
        name = str(workload.get("uuid", number)) if isinstance(workload, dict) else str(number)
        try:
            if not isinstance(workload, dict):
                raise TaskError(f"{workload!r} is no workload")
            parts.append((name, module_text(definition, workload, root),
                          tolerance.of_reference(rule(workload), definition.reference), {"workload": workload}))
        except TaskError as error:
            parts.append((name, "", {}, {"workload": workload}, str(error)))
    if len({name for name, *_ in parts}) < len(parts):
        return make_task(called, group, [], problem="two of its workloads have the same uuid", **more)
    return make_task(called, group, parts,
                     **{"files": files_for(definition.name), "facts": {"definition": definition}, **more})


def score(ones: list) -> list:
    known = [one for one in ones if one.known]
    records = [record for one in known for record in one.records if record]
    workloads = sum(len(one.task.parts) for one in known)
    ratios = [ratio for one in known for ratio in one.their_ratios()]
    return [("definitions passed", results.correctness(ones)),
            ("workloads passed", results.share(sum(map(results.passes_theirs, records)), workloads)),
            ("mean speedup over the reference", results.mean(ratios)),
            ("workloads faster than it", results.share(sum(one > 1 for one in ratios), workloads) if results.is_timed(known) else None)]


SUITE = Suite("flashinfer-bench", find, score, candidate=solutions.as_module, endings=(".json", ".py"),
              solution=solutions.write_flashinfer)
