"""tegula-eval time: programs at the tasks' own sizes on a device, right and how fast."""
from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
from pathlib import Path

from ..records import audits, baseline, summary, times_table
from ..records.store import Store
from ..rule.tasks import Task, TaskError, find_tasks
from ..workers import device
from . import display, options as shared, signals
from .exit_codes import NOT_RIGHT, RIGHT
from .program_files import find_program


def add_command(commands) -> None:
    time = commands.add_parser(
        "time", help="programs at the tasks' own sizes on a device, and how fast they are",
        epilog="Exit codes: 0 all right, 1 some are not, 2 wrong arguments, 3 stopped (run it again to go on).")
    time.set_defaults(function=run)
    shared.add_root(time)
    shared.add_programs(time, required=True)
    time.add_argument("--target", choices=("cpu", "cuda"), default="cuda")
    shared.add_devices(time)
    time.add_argument("--turns", type=shared.count, default=10, help="at most so many turns")
    time.add_argument("--threads", type=shared.count, default=1, help="threads of torch and of a program (CPU)")
    time.add_argument("--no-compiled", dest="compiled", action="store_false",
                      help="leave torch.compile out: it takes 10 s and more for each task")
    time.add_argument("--precision", choices=("equal", "f32", "tf32", "conv_tf32", "bf16"), default="equal",
                      help="of products, for programs that do not say; equal: f32, and TF32 beside it where the "
                           "module's convolutions take that, of convolutions alone where it has matrix products")
    time.add_argument("--no-tf32-off", dest="tf32_off", action="store_false",
                      help="no second time of eager mode without TF32, where there are convolutions")
    time.add_argument("--baseline", type=Path,
                      help="recorded times, for columns of their own: a table (level, task, eager_ms, compiled_ms), "
                           "or another run's results.jsonl")
    shared.add_audit(time)
    time.add_argument("--deadline", type=float, default=30, help="seconds for each stage of a program")
    time.add_argument("--seconds", type=float, default=1e9, help="after which no further program is begun")
    shared.add_run(time, "tegula-time")


def run(options: argparse.Namespace) -> int:
    recorded, flags = baseline.read(options.baseline), audits.read_flags(options.audit)
    tasks = find_tasks(options.root, options.level, options.tasks)
    store = Store(options.out)
    try:
        with signals.handled([signal.SIGTERM], signal.default_int_handler):
            records, left, missing, is_stopped = _run(options, tasks, store)
    finally:
        store.close()
    records = audits.add_flags(records, flags)
    order = {task.key: place for place, task in enumerate(tasks)}
    records.sort(key=lambda one: order[one["task"]])
    told = summary.summarize(records) if records else {}
    told.update(left=left, without_program=missing)
    (options.out / "summary.json").write_text(json.dumps(told, indent=1) + "\n")
    page = times_table.as_markdown(records, told, recorded)
    (options.out / "times.md").write_text(page)
    print(times_table.as_text(records, told, recorded))
    if left:
        print(f"{left} programs are left: the same command goes on")
    if is_stopped:
        raise KeyboardInterrupt
    return RIGHT if not left and all(one["outcome"] == summary.GOOD for one in records) else NOT_RIGHT


def devices(options) -> list[str]:
    """As `cuda:NUMBER`, or `cpu`. Raises TaskError."""
    if options.target == "cpu":
        return ["cpu"]
    if options.devices:
        return [f"cuda:{number}" for number in options.devices]
    import torch
    if not torch.cuda.device_count():  # opens no context
        raise TaskError("torch sees no CUDA device")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return [f"cuda:{number}" for number in (visible.split(",") if visible else range(torch.cuda.device_count()))]


def _run(options, tasks: list[Task], store: Store) -> tuple[list[dict], int, int, bool]:
    """The records, how many programs are left and how many tasks have none, and whether a signal ended the run."""
    settings = {"device": options.target, "threads": options.threads, "turns": options.turns,
                "compiled": options.compiled, "tf32_off": options.tf32_off,
                "precision": options.precision}
    jobs, kept, missing = [], [], 0
    places: dict[str, tuple[Task, str]] = {}
    for task in tasks:
        path = find_program(options.programs, task)
        if path is None:
            missing += 1
            continue
        job = {"task": task.source(), "program": path.read_text(encoding="utf-8", errors="replace"),
               "program_name": path.name}
        text = json.dumps([job, settings], sort_keys=True)
        job.update(key=f"{task.key}:{hashlib.sha256(text.encode()).hexdigest()[:24]}", secret=store.secret)
        known = store.records.get(job["key"])
        if known is not None and known["outcome"] not in options.retry:
            kept.append(known)
        else:
            jobs.append(job)
            places[job["key"]] = (task, str(path))
    if not jobs and not kept:
        raise TaskError(f"{options.programs} holds no program for any of {len(tasks)} tasks")
    records: list[dict] = []
    is_stopped = False
    with display.make(len(jobs) + len(kept), len(kept), options.plain) as shown:
        def told(job: dict, record: dict) -> None:
            task, path = places[job["key"]]
            record = {"key": job["key"], "task": task.key, "level": task.level, "program": path,
                      "target": options.target, **record, "request": {**settings, **job}}
            store.add(record)
            records.append(record)
            shown.begin(task.key)
            shown.end(record)
            shown.done(task.key)

        if jobs:
            on_devices = device.DeviceRun(devices(options), settings, options.deadline, options.seconds, told)
            try:
                with signals.handled([signal.SIGINT, signal.SIGTERM], lambda *_: on_devices.stop()):
                    on_devices.run(jobs)
            except KeyboardInterrupt:
                is_stopped = True
    return kept + records, len(jobs) - len(records), missing, is_stopped
