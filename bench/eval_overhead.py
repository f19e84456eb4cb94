#!/usr/bin/env python3
"""What judging a program costs beside the program's own run, and how many programs a core checks a minute.

Usage: eval_overhead.py --root=KERNELBENCH --run=FOLDER [--count=200] [--tegula=build/release/bin/tegula]

FOLDER is a run of `tegula-eval kernelbench` on the programs of bench/kernelbench, whose variants are taken over: they
are found once for a task, not for each candidate. One worker with one thread judges every COUNTth of the programs of
levels 1 and 2, after one that warms it; the time of the program's own launches is taken off. Told are seconds of the
clock, which count on a quiet machine alone, and of the processor. Then all 250 programs are parsed and checked, in
one process, and 40 of them by the command, a process each.
"""
import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TREE / "python"))

from tegula_eval.program import runner  # noqa: E402
from tegula_eval.rule.tasks import find_tasks  # noqa: E402
from tegula_eval.workers import pool  # noqa: E402

PROGRAMS = TREE / "bench" / "kernelbench" / "programs"


def overheads(root: Path, run: Path, count: int) -> list[tuple[float, float, str]]:
    """Of each candidate seconds of the clock, of the processor, and the task."""
    judges = pool.Pool(1, 180, 8 << 30)
    tasks = find_tasks(root, [1, 2])
    found = []
    for task in [tasks[0], *tasks[::max(1, len(tasks) // count)]]:
        text = (PROGRAMS / f"level{task.level}" / f"{task.name}.tgl").read_text()
        request = {"task": task.source(), "program": text, "program_name": f"{task.name}.tgl", "secret": "overhead",
                   "cache": str(run / "variants"), "threads": 1}
        started = time.perf_counter()
        outcome = judges.judge(request)
        seconds = time.perf_counter() - started
        if outcome["kind"] != "done":
            print(f"{task.key}: {outcome['kind']}", file=sys.stderr)
            continue
        launches = sum(case.get("run_s", 0.0) for case in outcome["answer"]["cases"])
        found.append((seconds - launches, outcome["processor_s"] - launches, task.key))
    judges.stop()
    return found[1:]


def checks(files: list[Path]) -> float:
    texts = [file.read_text() for file in files]
    runner.Program(texts[0]).check()
    started = time.process_time()
    for text in texts:
        runner.Program(text).check()
    return 60 * len(texts) / (time.process_time() - started)


def command_checks(tegula: Path, files: list[Path]) -> float:
    started = time.perf_counter()
    for file in files:
        subprocess.run([tegula, "check", file], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return 60 * len(files) / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--tegula", type=Path, default=TREE / "build" / "release" / "bin" / "tegula")
    options = parser.parse_args()
    files = sorted(PROGRAMS.glob("level*/*.tgl"))
    print(f"checks a minute: {checks(files):.0f} in one process, "
          f"{command_checks(options.tegula, files[::max(1, len(files) // 40)]):.0f} by the command")
    found = overheads(options.root, options.run, options.count)
    for place, of in enumerate(("clock", "processor")):
        found.sort(key=lambda one: one[place])
        seconds = [one[place] for one in found]
        print(f"overhead of {len(found)} candidates, seconds of the {of}: median {statistics.median(seconds):.3f}, "
              f"nine of ten under {seconds[len(seconds) * 9 // 10]:.3f}, most {seconds[-1]:.3f} ({found[-1][2]})")


if __name__ == "__main__":
    main()
