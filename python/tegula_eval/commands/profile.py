"""tegula-eval profile: where a model's time goes, by module and operator, and its hot modules as tasks."""
from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

from ..rule.tasks import DTYPES, TaskError
from . import options as shared

DONE, WITHOUT_TASKS = 0, 1


def add_command(commands) -> None:
    profiled = commands.add_parser(
        "profile", help="where a model's time goes, and its hot modules as tasks",
        epilog="Exit codes: 0 done, 1 no module could be written as a task, 2 wrong arguments or a model that does not run.")
    profiled.set_defaults(function=run)
    profiled.add_argument("file", type=Path, metavar="MODEL", help="a file in the form of a task (Model, get_inputs, "
                          "get_init_inputs), or a configuration of Hugging Face (.json; needs transformers)")
    profiled.add_argument("--target", choices=("cpu", "cuda"), default="cpu")
    profiled.add_argument("--dtype", choices=tuple(DTYPES), help="of parameters and inputs (default: as the file has them)")
    profiled.add_argument("--batch", type=shared.count, default=1, help="sequences or images, for a configuration")
    profiled.add_argument("--tokens", type=shared.count, default=128, help="of a sequence, for a configuration")
    profiled.add_argument("--calls", type=shared.count, default=5, help="of the model, that are averaged")
    profiled.add_argument("--top", type=shared.count, default=10, help="modules and operators that are shown")
    profiled.add_argument("--least", type=float, default=0.05, help="share of the time from which a module becomes a task")
    profiled.add_argument("--torch-compile", nargs="?", const="inductor", metavar="BACKEND", help="time torch.compile too")
    profiled.add_argument("--out", type=Path, default=Path("tegula-profile"), help="folder of the tasks and profile.json")


def run(options: argparse.Namespace) -> int:
    """Raises TaskError."""
    import torch

    from ..profiling import models, ranking, spans
    if options.target == "cuda" and not torch.cuda.is_available():
        raise TaskError("torch sees no CUDA device")
    dtype = None if options.dtype is None else getattr(torch, DTYPES[options.dtype] or "float32")
    loaded = models.load(options.file, options.target, dtype, options.batch, options.tokens)
    with torch.no_grad():
        try:
            eager = spans.seconds(loaded, options.calls, options.target)
        except (RuntimeError, TypeError, ValueError) as error:
            raise TaskError(f"the model does not run: {error}") from error
        times = spans.measure(loaded, loaded.model, options.calls, options.target)
        told = {"model": loaded.name, "target": options.target, "eager_s": eager}
        print(f"{loaded.name} on {options.target}: {_time(eager)} in eager mode")
        groups = ranking.rank(times, loaded.model)
        texts, reasons = _tasks(groups, loaded, options)
        told["modules"] = _show_modules(groups[:options.top], texts, reasons)
        told["operators"] = _show_operators("operators", times.operators, options.top)
        if options.torch_compile:
            torch.compiler.reset()
            compiled = torch.compile(loaded.model, backend=options.torch_compile)
            call = lambda: compiled(*loaded.inputs, **loaded.named)  # noqa: E731
            told["compiled_s"] = spans.seconds(call, options.calls, options.target)
            print(f"\ntorch.compile ({options.torch_compile}): {_time(told['compiled_s'])}, "
                  f"{eager / told['compiled_s']:.2f} of eager mode's speed")
            told["compiled_operators"] = _show_operators(
                "its operators", spans.measure(call, None, options.calls, options.target).operators, options.top)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "profile.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return DONE if texts else WITHOUT_TASKS


def _tasks(groups, loaded, options) -> tuple[dict[int, Path], dict[int, str]]:
    """Files of the groups that became tasks, and why others did not."""
    from ..profiling import tasks
    written: dict[int, Path] = {}
    reasons: dict[int, str] = {}
    folder = options.out / "tasks"
    for place, group in enumerate(groups):
        if group.share < options.least:
            continue
        try:
            text = tasks.write(group, loaded)
        except tasks.NoTask as reason:
            reasons[place] = str(reason)
            continue
        folder.mkdir(parents=True, exist_ok=True)
        words = re.sub(r"\W+", "_", group.pattern.replace("*", "")).strip("_")
        path = folder / f"{len(written) + 1}_{re.sub('_+', '_', words)}.py"
        path.write_text(text, encoding="utf-8")
        written[place] = path
    return written, reasons


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def _show_modules(groups, texts, reasons) -> list[dict]:
    """A row for each; the last columns are by Amdahl's law."""
    print("\n share  model's speed if it took half the time, none   calls  module")
    rows = []
    for place, one in enumerate(groups):
        share = min(one.share, 1.0)
        none = f"{1 / (1 - share):.2f}" if share < 0.9999 else "inf"
        what = f"{one.pattern} ({one.kind}{'' if one.modules == 1 else f', {one.modules} of them'})"
        task = texts.get(place)
        end = f" -> {task}" if task else f": no task, {reasons[place]}" if place in reasons else ""
        print(f"{share:6.1%}  {one.speedup(2):36.2f}, {none:>5}  {one.calls:5g}  {what}{end}")
        rows.append({"module": one.pattern, "class": one.kind, "modules": one.modules, "calls": one.calls, "share": share,
                     "task": str(task) if task else None, "no_task": reasons.get(place)})
    return rows


def _show_operators(title: str, operators: dict[str, float], top: int) -> dict[str, float]:
    total = sum(operators.values()) or 1.0
    print(f"\n share  {title}, their own time")
    ranked = sorted(operators.items(), key=lambda one: -one[1])
    for name, spent in ranked[:top]:
        print(f"{spent / total:6.1%}  {name[:100]}")
    return dict(ranked)
