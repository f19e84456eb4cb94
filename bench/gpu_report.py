#!/usr/bin/env python3
"""Turns the cases that bench/gpu.sh recorded into one JSON file and one page.

Usage: gpu_report.py FOLDER TEGULA MODE. Reads FOLDER/gpu.jsonl (docs/bench.md has the schema of a case),
FOLDER/lit.log, FOLDER/random.log
and FOLDER/capi.log, writes FOLDER/gpu.json and FOLDER/gpu.md, prints the page.
"""
import json
import os
import pathlib
import subprocess
import sys


def output_of(command):
    """Standard output of a command, one line, or 'unknown'."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def versions(tegula):
    import torch
    query = "--query-gpu=name,driver_version"
    return {
        "tegula": output_of([tegula, "--version"]).splitlines()[0],
        "device": output_of(["nvidia-smi", query, "--format=csv,noheader"]),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "commit": os.environ.get("TEGULA_COMMIT") or output_of(["git", "rev-parse", "--short", "HEAD"]),
    }


def last_lines(path, count):
    """What a runner says at its end."""
    lines = [line.strip() for line in path.read_text().splitlines() if line.strip()]
    return lines[-count:]


def page(info, cases, tests, mode):
    failed = [case for case in cases if not case.get("passed")]
    lines = [
        "# The kernel library on a GPU",
        "",
        f"`bench/gpu.sh{'' if mode else ' --time'}` on {info['device']}; {info['tegula']}, "
        f"torch {info['torch']}, CUDA {info['cuda']}, commit {info['commit']}.",
        "",
        *(f"- {name}: {'; '.join(lines)}" for name, lines in tests.items()),
        "",
        f"{len(cases)} cases, {len(cases) - len(failed)} right, {len(failed)} wrong. Errors are "
        "normwise, relative, against float64; beside them libtorch's own.",
        "",
        "| kernel | case | result | error | libtorch's | us | libtorch's us | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        outputs = case.get("outputs") or [{}]
        worst = max(outputs, key=lambda o: o.get("kernel", {}).get("norm") or 0)
        number = lambda who: worst.get(who, {}).get("norm")
        show = lambda value, form: "" if value is None else format(value, form)
        time = case.get("time", {}).get("median")
        reference = case.get("libtorchTime", {}).get("median")
        lines.append(
            f"| {case.get('kernel')} | {case.get('case')} | {'ok' if case.get('passed') else 'WRONG'} "
            f"| {show(number('kernel'), '.1e')} | {show(number('libtorch'), '.1e')} "
            f"| {show(time and time * 1e6, '.1f')} | {show(reference and reference * 1e6, '.1f')} "
            f"| {show(case.get('speedup'), '.2f')} |")
    for case in failed:
        if case.get("message"):
            lines += ["", f"- {case.get('kernel')} {case.get('case')}: {case['message']}"]
    return "\n".join(lines) + "\n"


def main():
    folder, tegula, mode = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    events = [json.loads(line) for line in (folder / "gpu.jsonl").read_text().splitlines()]
    cases = [event for event in events if event.get("event") == "case"]
    info = versions(tegula)
    tests = {"tests marked `REQUIRES: gpu`": last_lines(folder / "lit.log", 2),
             "C interface beside torch": last_lines(folder / "capi.log", 1),
             "random programs against the interpreter": last_lines(folder / "random.log", 1)}
    (folder / "gpu.json").write_text(
        json.dumps({"versions": info, "tests": tests, "cases": cases}, indent=1) + "\n")
    text = page(info, cases, tests, mode)
    (folder / "gpu.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
