#!/usr/bin/env python3
"""Holds the compiler's expected times against measured ones, of KernelBench's tasks at their own sizes.

    bench/kernelbench/expected.py --root=KernelBench --times=docs/results/h200-times-612e7ad.md --machine=h200 [--level=1,2] [--only=19]

--times is a page of `tegula-eval time`. No device is needed: the compiler is asked, not run. Prints a line for each task, the worst estimate first, which share of them is within 25 % and
within a factor of 2, and which tasks have no expected time, with the reason: exit code 4 where there are some.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "python")]


def measured(page):
    """Microseconds by task: `tegula us` of the page's tables."""
    found = {}
    for line in page.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("| \n").split("|")]
        if re.match(r"level\d+/", cells[0]) and cells[1] == "right":
            found[cells[0]] = float(cells[2])
    return found


def sizes_of(parameters, tensors):
    """The sizes that dims of the tensors name, as `-d` takes them: those of `...` are E0, E1, ..."""
    found = {}
    for parameter in parameters:
        if parameter.name not in tensors:
            continue
        shape, dims = list(tensors[parameter.name].shape), list(parameter.dims)
        if "..." in dims:
            place = dims.index("...")
            dims[place:place + 1] = [f"E{number}" for number in range(len(shape) - len(dims) + 1)]
        for dim, size in zip(dims, shape):
            if parts := re.fullmatch(r"\s*(?:(\d+)\s*\*\s*)?([A-Za-z_]\w*)\s*", dim):  # N, 2*N
                found.setdefault(parts[2], size//int(parts[1] or 1))
    return found


def bound(parameters, source):
    """What the module gives the program's parameters: tensors have shapes alone, but where the module asks for numbers."""
    import torch
    from tegula_eval.program.binding import bind
    from tegula_eval.rule.reference import make_case
    try:
        with torch.device("meta"):
            return bind(parameters, make_case(source, 0, device="meta"))
    except RuntimeError:
        return bind(parameters, make_case(source, 0))


def command_of(task, program, options):
    """`tegula compile` of the task's program. Raises what the task or the program raises."""
    from tegula_eval.program import runner
    parameters = runner.Program(program.read_text()).parameters
    binding = bound(parameters, task.source())
    command = [str(options.tegula), "compile", str(program), "--target=sm_90a", f"--machine={options.machine}", "--why=json"]
    if sizes := sizes_of(parameters, binding.tensors):
        command += ["-d", ",".join(f"{name}={size}" for name, size in sizes.items())]
    for name, value in binding.settings.items():
        command += ["-p", f"{name}={value.strip('()').replace(' ', '')}"]
    if any("..." in parameter.dims for parameter in parameters):
        command += [f"--rank={binding.ellipsis_rank}"]
    if binding.optionals:
        command += ["--with=" + ",".join(binding.optionals)]
    return command


def ask(command):
    """What `--why=json` says of the launches. Raises RuntimeError with the compiler's message."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[:300])
    return json.loads(done.stdout)


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "bench/kernelbench/programs")
    parser.add_argument("--times", type=pathlib.Path, required=True)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--level", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2])
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev")
    options = parser.parse_args(given)
    options.tegula = options.build.resolve() / "bin/tegula"
    os.environ.setdefault("TEGULA_LIBRARY", str(options.build.resolve() / "lib/libtegula.so"))
    from real.expected import distribution, expected_of
    from tegula_eval.program.binding import BindingError
    from tegula_eval.program.runner import Refused
    from tegula_eval.rule.tasks import TaskError, find_tasks
    times, failed, asked, rows = measured(options.times), [], [], []
    for task in find_tasks(options.root, options.level, options.only):
        if task.key not in times:
            continue
        try:
            asked.append((task.key, command_of(task, options.programs / f"{task.key}.tgl", options)))
        except (TaskError, BindingError, Refused) as error:
            failed.append(f"{task.key}: {error}")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, future in [(name, pool.submit(ask, command)) for name, command in asked]:
            try:
                expected = expected_of(future.result())
            except RuntimeError as error:
                failed.append(f"{name}: {error}")
                continue
            if expected is None:
                failed.append(f"{name}: a launch has no expected time")
            else:
                rows.append((expected/times[name], name, expected))
    if not rows:
        parser.error(f"{options.times} has no times of these tasks, or none has an expected time:\n" + "\n".join(failed))
    print("| task | measured | expected | expected / measured |\n|---|---|---|---|")
    for ratio, name, expected in sorted(rows, key=lambda row: -max(row[0], 1/row[0])):
        print(f"| {name} | {times[name]:,.0f} | {expected:,.0f} | {ratio:.2f} |")
    near, twice = distribution([row[0] for row in rows])
    print(f"\n{len(rows)} tasks on {options.machine}: {near:.0%} within 25 %, {twice:.0%} within a factor of 2; {len(failed)} without")
    print("\n".join(failed))
    return 4 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
