"""The command tegula-eval."""
from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

from . import display, pool, summary
from .store import Store, StoreError
from .tasks import Task, TaskError, find_tasks

RIGHT, NOT_RIGHT, WRONG_CALL, STOPPED = 0, 1, 2, 3


def main(arguments: list[str] | None = None) -> int:
    options = _parse(arguments)
    try:
        return options.function(options)
    except (TaskError, StoreError, RuntimeError) as error:
        print(f"tegula-eval: {error}", file=sys.stderr)
        return STOPPED if isinstance(error, StoreError) else WRONG_CALL
    except KeyboardInterrupt:
        print("\ntegula-eval: stopped; the same command goes on from here", file=sys.stderr)
        return STOPPED


def _parse(arguments) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tegula-eval", description="Judges Tegula programs on PyTorch modules.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    bench = commands.add_parser(
        "kernelbench", help="programs on KernelBench's tasks, or a folder of tasks in its form",
        epilog="Exit codes: 0 all right, 1 some are not, 2 wrong arguments, 3 stopped (run it again to go on).")
    bench.set_defaults(function=kernelbench)
    bench.add_argument("--root", type=Path, required=True, help="KernelBench's repository, or a folder of tasks")
    bench.add_argument("--programs", type=Path, required=True,
                       help="folder of programs: level<N>/TASK.tgl, or TASK.tgl")
    bench.add_argument("--level", type=_levels, help="such as 1,2,3; default: all")
    bench.add_argument("--tasks", type=lambda text: text.split(","), help="names, globs or numbers, with commas")
    bench.add_argument("--target", choices=("cpu", "cuda"), default="cpu")
    bench.add_argument("--jobs", type=int, default=1, help="programs judged at once")
    bench.add_argument("--threads", type=int, default=1, help="threads of each (CPU)")
    bench.add_argument("--seeds", type=int, default=2, help="sets of inputs for each size")
    bench.add_argument("--own", action="store_true", help="also at the task's own sizes")
    bench.add_argument("--bytes", type=_bytes, default=8 << 20, help="about what a variant may touch (8M)")
    bench.add_argument("--flops", type=float, default=2.0 ** 28, help="and multiply")
    bench.add_argument("--memory", type=_bytes, default=8 << 30, help="limit of each child (8G)")
    bench.add_argument("--deadline", type=float, default=180, help="seconds for each program")
    bench.add_argument("--time", action="store_true", default=None, help="time them (default on cuda)")
    bench.add_argument("--no-time", dest="time", action="store_false")
    bench.add_argument("--turns", type=int, default=20, help="timed turns")
    bench.add_argument("--torch-compile", action="store_true", help="time torch.compile too")
    bench.add_argument("--out", type=Path, default=Path("tegula-eval"), help="folder of the run; resumed if there")
    bench.add_argument("--retry", type=lambda text: text.split(","), default=[],
                       help="outcomes to judge again, such as timeout,crashed")
    bench.add_argument("--plain", action="store_true", help="one line a program, also in a terminal")
    return parser.parse_args(arguments)


def _levels(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _bytes(text: str) -> int:
    units = {"K": 10, "M": 20, "G": 30}
    return int(float(text[:-1]) * (1 << units[text[-1]])) if text[-1:] in units else int(text)


def find_program(folder: Path, task: Task) -> Path | None:
    for place in (folder / f"level{task.level}" / f"{task.name}.tgl", folder / f"{task.name}.tgl"):
        if place.is_file():
            return place
    return None


def kernelbench(options) -> int:
    tasks = find_tasks(options.root, options.level, options.tasks)
    timed = options.target == "cuda" if options.time is None else options.time
    store = Store(options.out)
    try:
        jobs, kept, missing = {}, [], 0
        for task in tasks:
            path = find_program(options.programs, task)
            if path is None:
                missing += 1
                continue
            request = _request(options, task, path, store, timed)
            known = store.records.get(request["key"])
            if known is not None and known["outcome"] not in options.retry:
                kept.append(known)
            else:
                jobs[request["key"]] = (task, path, request)
        if not jobs and not kept:
            raise TaskError(f"{options.programs} holds no program for any of {len(tasks)} tasks")
        records = kept + _run(options, jobs, len(kept), store)
    finally:
        store.close()
    told = summary.summarize(records)
    told["without_program"] = missing
    (options.out / "summary.json").write_text(json.dumps(told, indent=1) + "\n")
    print(summary.as_text(told))
    if missing:
        print(f"no program: {missing} tasks")
    return RIGHT if all(one["outcome"] == summary.GOOD for one in records) else NOT_RIGHT


def _request(options, task: Task, path: Path, store: Store, timed: bool) -> dict:
    request = {"task": task.source(), "program": path.read_text(encoding="utf-8", errors="replace"),
               "program_name": path.name, "target": options.target, "threads": options.threads,
               "seeds": options.seeds, "own": options.own, "bytes": options.bytes, "flops": int(options.flops),
               "time": {"turns": options.turns, "compile": options.torch_compile} if timed else None}
    # The same question has the same key: a changed program, task or setting is judged anew.
    key = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:24]
    return {**request, "key": f"{task.key}:{key}", "secret": store.secret,
            "cache": str((store.folder / "variants").resolve())}


def _run(options, jobs: dict, kept: int, store: Store) -> list[dict]:
    records: list[dict] = []
    with display.make(len(jobs) + kept, kept, options.plain) as shown:
        def end(key: str, outcome: dict) -> None:
            task, path, request = jobs[key]
            record = {"key": key, "task": task.key, "level": task.level, "program": str(path),
                      "target": options.target, **_answer(outcome), "seconds": outcome["seconds"]}
            store.add(record)
            records.append(record)
            shown.end(record)

        pool.run_all([(key, request) for key, (_, _, request) in jobs.items()], options.jobs, options.deadline,
                     options.memory, lambda key: shown.begin(jobs[key][0].key), end)
    return records


def _answer(outcome: dict) -> dict:
    if outcome["kind"] == "done":
        return outcome["answer"]
    return {"outcome": outcome["kind"], "reason": outcome["stage"], "message": outcome["message"], "flags": [],
            "cases": [], "timing": None, **({"trace": outcome["trace"]} if "trace" in outcome else {})}


if __name__ == "__main__":
    sys.exit(main())
