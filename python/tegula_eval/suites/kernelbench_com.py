"""kernelbench.com's decks: folders that hold reference.py, shapes.py, problem.yaml and check.py, in any depth.

Nothing of them is run here: shapes are read as a literal, and which of the reference's names each sets out of check.py's text.
"""
from __future__ import annotations

import ast
import re
from pathlib import Path

from ..records import summary
from ..rule import tolerance
from ..rule.tasks import TaskError
from . import results
from .definitions import arithmetic, value_of
from .suite import Forbidden, Part, Suite, SuiteTask, folders, inside, make_task, read

DEFAULTS = {"float8_e4m3fn": [0.1, 0.1], "float8_e5m2": [0.1, 0.1]}


def find(places: list[Path]) -> list[SuiteTask]:
    found = []
    for root in folders(places):
        paths = sorted(root.rglob("reference.py"))
        names = [path.parent.name for path in paths]
        for path in paths:
            folder = path.parent
            # The same problem stands in a deck for each card.
            name = folder.name if names.count(folder.name) == 1 else f"{folder.parent.name}/{folder.name}"
            # DECK/problems-CARD/PROBLEM, or a folder of one's own.
            above = folder.parent
            deck = above.parent.name if above.name.startswith("problems") and above != root else above.name
            files = (f"{folder.name}/solution", folder.name, name)
            try:
                found.append(_task(name, deck, folder, root, files))
            except TaskError as error:
                found.append(make_task(name, deck, [], problem=str(error), files=files))
    if not found:
        raise TaskError(f"{', '.join(map(str, places))}: no folder holds a reference.py")
    return found


def _task(name: str, deck: str, folder: Path, root: Path, files: tuple[str, ...]) -> SuiteTask:
    reference = read(folder / "reference.py", root)
    tree = _parse(reference, folder / "reference.py")
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    if not {"get_inputs", "get_init_inputs"} <= functions:
        raise TaskError(f"{folder}/reference.py has no get_inputs and get_init_inputs: a module that is called by step(), with a "
                        "state that is no tensor, is not judged here")
    shapes = _shapes(read(folder / "shapes.py", root), folder / "shapes.py")
    told = _problem(folder / "problem.yaml", root)
    check = folder / "check.py"
    names = _names(read(check, root), check) if check.exists() else {}
    rule = tolerance.of_reference({"form": "sum", "atol": tolerance.DTYPED, "rtol": tolerance.DTYPED,
                                   "dtypes": {**DEFAULTS, **_tolerances(told)}}, reference)
    parts = []
    for number, shape in enumerate(shapes):
        try:
            text = _set(reference, tree, {names.get(key, key): value for key, value in shape.items()})
            parts.append((str(number), text, rule, {"shape": shape, **_least(told, shape)}))
        except TaskError as error:
            parts.append((str(number), "", rule, {"shape": shape}, str(error)))
    return make_task(name, deck, parts, files=files,
                     facts={"forbidden": [str(one) for one in told.get("forbidden") or []],
                            "peaks": _peaks(told, folder, root)})


def _parse(text: str, what: Path) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise TaskError(f"{what} is not Python: {error}") from error


def _shapes(text: str, what: Path) -> list[dict]:
    for node in _parse(text, what).body:
        if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == "SHAPES" for one in node.targets):
            try:
                found = ast.literal_eval(node.value)
                if isinstance(found, list) and all(isinstance(one, dict) for one in found):
                    return found
            except ValueError:
                pass
    raise TaskError(f"{what} has no SHAPES that is a list of dictionaries, written out")


def _names(check: str, what: Path) -> dict[str, str]:
    """Which name of the reference stands for which key of a shape: `reference.BATCH = shape["batch"]`."""
    found = {}
    for node in ast.walk(_parse(check, what)):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute) \
                and isinstance(node.targets[0].value, ast.Name) and node.targets[0].value.id == "reference" \
                and isinstance(node.value, ast.Subscript) and isinstance(node.value.slice, ast.Constant):
            found[node.value.slice.value] = node.targets[0].attr
    return found


def _set(text: str, tree: ast.Module, values: dict[str, object]) -> str:
    """The text with names at module level set to other numbers. Raises TaskError where there is no such name."""
    lines = [line.encode() for line in text.split("\n")]  # as ast counts them, columns in bytes
    found = set()
    for node in reversed(tree.body):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) \
                and node.targets[0].id in values:
            name = node.targets[0].id
            found.add(name)
            first, last = node.lineno - 1, node.end_lineno - 1
            lines[first:last + 1] = [lines[first][:node.col_offset] + f"{name} = {values[name]!r}".encode()
                                     + lines[last][node.end_col_offset:], *[b""] * (last - first)]
    if left := [name for name in values if name not in found]:
        raise TaskError(f"reference.py sets no {', '.join(left)} at module level")
    return b"\n".join(lines).decode() + "\n"


def _problem(path: Path, root: Path) -> dict:
    if not path.exists():
        return {}
    text = read(path, root)
    try:
        import yaml
    except ImportError as error:
        raise TaskError(f"{path} wants pyyaml: `pip install pyyaml` installs it") from error
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise TaskError(f"{path} is no YAML: {error}") from error
    if not isinstance(found, dict):
        raise TaskError(f"{path} is no dictionary")
    return found


def _tolerances(told: dict) -> dict[str, list[float]]:
    """Of each type; others stay at the default. Raises TaskError."""
    found = {}
    for name, value in (told.get("tolerance") or {}).items():
        try:
            both = [float(value["atol"]), float(value["rtol"])] if isinstance(value, dict) else [float(value)] * 2
        except (TypeError, ValueError, KeyError) as error:
            raise TaskError(f"problem.yaml: the tolerance of {name} is {value!r}") from error
        found[str(name).removeprefix("torch.")] = both
    return found


def _least(told: dict, shape: dict) -> dict:
    """Operations or bytes of a call by the problem's own formula."""
    numbers = {key: value for key, value in shape.items() if isinstance(value, (int, float))}
    formula = told.get("bytes_formula" if told.get("regime") == "memory" else "flops_formula")
    return {"work": value_of(arithmetic(str(formula), numbers), numbers)} if formula else {}


def _peaks(told: dict, folder: Path, root: Path) -> float | None:
    """What the problem's card can do a second of that work, from src/hardware/CARD.py as it is written there."""
    cards = told.get("hardware") or []
    for parent in folder.parents:
        path = parent / "src" / "hardware" / f"{str(cards[0]).lower() if cards else ''}.py"
        if not parent.is_relative_to(root) or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8") if inside(path, root) else ""
        if told.get("regime") == "memory":
            found = re.search(r"peak_bandwidth_gb_s\s*=\s*([\d.]+)", text)
            return float(found[1]) * 1e9 if found else None
        found = re.search(rf'"{re.escape(str(told.get("peak_tflops_key")))}"\s*:\s*([\d.]+)', text)
        return float(found[1]) * 1e12 if found else None
    return None


def candidate(task: SuiteTask, part: Part, text: str) -> str:
    """solution.py, whose module is called Model. Raises Forbidden."""
    for one in task.facts["forbidden"]:
        if re.search(re.escape(one), text):
            raise Forbidden(f"the solution uses {one}, which the problem forbids")
    return text + "\n\nModelNew = Model\n"


def score(ones: list) -> list:
    """The deck's own: of each problem the geometric mean over its shapes of the share of the card's peak; 0 where it is not
    right."""
    known = [one for one in ones if one.known]
    fractions = [fraction for one in known if (fraction := _fraction(one)) is not None]
    return [("problems passed", results.correctness(ones)), ("peak fraction", results.mean(fractions) if any(fractions) else None),
            ("speedup over the reference", results.mean([speed for one in known if (speed := one.their_speedup())]))]


def _fraction(one) -> float | None:
    peak = one.task.facts.get("peaks")
    if peak is None:
        return None
    if not (one.right and one.passes_theirs()):
        return 0.0
    found = []
    for part, record in zip(one.task.parts, one.records):
        timing = record.get("timing") or {}
        if timing.get("variant") != "own" or "work" not in part.facts or not timing.get("program_s"):
            return None  # the formula is of the shape itself
        found.append(part.facts["work"] / timing["program_s"] / peak)
    return summary.geometric_mean(found)


SUITE = Suite("kernelbench.com", find, score, candidate=candidate)
