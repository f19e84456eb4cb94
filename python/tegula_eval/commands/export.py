"""tegula-eval export: writes programs as `ModelNew` files for KernelBench's own scripts."""
from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from ..records import summary
from ..rule.tasks import Task, TaskError, find_tasks
from ..workers import pool
from .program_files import file_name, find_program


def run(options) -> int:
    tasks = find_tasks(options.root, options.level, options.tasks)
    found = _of_run(options.run, tasks) if options.run else _of_folder(options.programs, tasks)
    if not found:
        raise TaskError(f"{options.run or options.programs} holds no program for any of {len(tasks)} tasks")
    options.out.mkdir(parents=True, exist_ok=True)
    judges = pool.Pool(options.jobs, options.deadline, options.memory)
    left_out = 0
    try:
        with tempfile.TemporaryDirectory() as cache:
            def job(task: Task, sample: int, text: str):
                request = {"do": "export", "name": task.key, "task": task.source(), "program": text,
                           "program_name": f"{task.name}.tgl", "secret": "export", "bytes": options.bytes,
                           "flops": int(options.flops), "cache": cache}

                def judge(begin, told):
                    told((task, sample, judges.judge(request, begin)))
                return judge

            def end(key: str, value) -> None:
                nonlocal left_out
                task, sample, outcome = value
                answer = outcome["answer"] if outcome["kind"] == "done" else \
                    {"outcome": outcome["kind"], "reason": outcome["stage"], "message": outcome["message"]}
                if answer["outcome"] == summary.GOOD:
                    (options.out / file_name(task, sample)).write_text(answer["text"], encoding="utf-8")
                else:
                    left_out += 1
                    print(f"{key}: {answer['outcome']} ({answer['reason']}): {answer['message']}", file=sys.stderr)

            pool.run_all([(task.key, job(task, sample, text)) for task, sample, text in found], options.jobs,
                         lambda key: None, end, lambda key: None)
    finally:
        judges.stop()
    print(f"{len(found) - left_out} of {len(found)} programs are in {options.out}")
    return 1 if left_out else 0


def _of_folder(folder: Path, tasks: list[Task]) -> list[tuple[Task, int, str]]:
    places = [(task, find_program(folder, task)) for task in tasks]
    return [(task, 0, place.read_text(encoding="utf-8", errors="replace")) for task, place in places if place]


def _of_run(folder: Path, tasks: list[Task]) -> list[tuple[Task, int, str]]:
    """What was right, of each conversation the fastest."""
    try:
        lines = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
        records = [json.loads(line) for line in lines]
    except (OSError, ValueError) as error:
        raise TaskError(f"{folder} is no run: {error}") from error
    by_key = {task.key: task for task in tasks}
    found = []
    for record in summary.final(records):
        task = by_key.get(record["task"])
        if task is None or record["outcome"] != summary.GOOD:
            continue
        sample = (record.get("asked") or {}).get("sample", 0)
        try:
            text = record.get("text") or Path(record["program"]).read_text(encoding="utf-8")
        except OSError as error:
            raise TaskError(f"the program of {record['task']} is gone: {error}") from error
        found.append((task, sample, text))
    return found
