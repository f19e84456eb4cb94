#!/usr/bin/env python3
"""Compares the code of many kernels with a recorded run: shows that a change does not change what is generated.

    bench/ptx_snapshot.py record BASE.zip [--tegula=PATH]   compiles everything and writes the texts
    bench/ptx_snapshot.py compare BASE.zip [--tegula=PATH]  compiles everything again and compares

Every kernel of dsl/kernels, test/e2e/std, test/codegen/Inputs and bench/kernelbench/programs is compiled for sm_80,
sm_90a and the CPU (x86-64-v4), with unknown sizes and with known ones (each dim 256, dims of windows 3). What a
compilation prints is what is kept: PTX, assembly, or the message that refuses it.

`record` compiles each kernel twice and ends with 4 where the two texts differ: emission has to be deterministic.
`compare` ends with 4 where texts differ, and prints the first lines that do of each; --names=same also compares the
names of device functions, which are otherwise numbered in the order of their first use. --only=TEXT takes the
entries alone whose name contains TEXT. Uses all cores; nothing is executed.
"""
import argparse
import concurrent.futures
import difflib
import os
import pathlib
import re
import subprocess
import sys
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("dsl/kernels", "test/e2e/std", "test/codegen/Inputs", "bench/kernelbench/programs")
TARGETS = {"sm_80": ("--target=sm_80", "--emit=ptx"), "sm_90a": ("--target=sm_90a", "--emit=ptx"),
           "cpu": ("--target=cpu", "--processor=x86-64-v4", "--emit=asm")}
KERNEL = re.compile(r"^kernel\s+(\w+)\s*(?:\[[^\]]*\])?\((.*?)\)\s*->", re.MULTILINE | re.DOTALL)
SHAPE = re.compile(r":\s*(?:inout\s+)?[\w.]+\[([^\]]*)\]")
FUNCTION = re.compile(r"\btegula_entry_\w+|\btegula_\d+_\w+")


def known_sizes(parameters):
    """Every dim that stands bare in a parameter's shape, with the size that the snapshot gives it."""
    dims = {dim.strip() for shape in SHAPE.findall(parameters) for dim in shape.split(",")}
    names = sorted(dim for dim in dims if re.fullmatch(r"[A-Z]\w*", dim))
    return ",".join(f"{name}={3 if re.fullmatch(r'K[DHW]', name) else 256}" for name in names)


def entries(only):
    """(name, arguments of `tegula compile`) of each compilation."""
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.tgl")):
            path = file.relative_to(ROOT)
            for kernel, parameters in KERNEL.findall(file.read_text()):
                sizes = known_sizes(parameters)
                for target, options in TARGETS.items():
                    for form, given in (("open", ()), ("known", ("-d", sizes))):
                        name = f"{path}/{kernel}/{target}/{form}"
                        if only in name and (form == "open" or sizes):
                            yield name, ("compile", str(path), f"--kernel={kernel}", *options, *given)


def compiled(tegula, arguments):
    """What one compilation prints."""
    try:
        done = subprocess.run([tegula, *arguments], cwd=ROOT, capture_output=True, text=True, errors="replace", timeout=300)
    except subprocess.TimeoutExpired:
        return "longer than 300 s\n"
    return done.stdout if done.returncode == 0 else f"exit {done.returncode}\n{done.stdout}{done.stderr}"


def numbered(text):
    """The text with device functions numbered in the order in which they appear."""
    seen = {}
    return FUNCTION.sub(lambda match: seen.setdefault(match[0], f"function_{len(seen)}"), text)


def first_difference(old, new):
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), "recorded", "now", lineterm="", n=1)
    return "\n".join("    " + line[:160] for line, _ in zip(lines, range(14)))


def report(name, old, new, shown):
    if shown < 20:
        print(f"{name}: differs\n{first_difference(old, new)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("record", "compare"))
    parser.add_argument("archive", type=pathlib.Path)
    parser.add_argument("--tegula", default=str(ROOT / "build/dev/bin/tegula"))
    parser.add_argument("--only", default="")
    parser.add_argument("--names", choices=("numbered", "same"), default="numbered")
    given = parser.parse_args()
    if given.command == "compare" and not given.archive.is_file():
        sys.exit(f"ptx_snapshot: cannot read '{given.archive}': make it with 'record'")
    form = numbered if given.names == "numbered" else str
    begun, work = time.monotonic(), list(entries(given.only))
    if not work:
        sys.exit(f"ptx_snapshot: no kernel's name contains '{given.only}'")
    recording = given.command == "record"
    partial = given.archive.with_suffix(".part")
    old = {} if recording else zipfile.ZipFile(given.archive)
    differing = refused = missing = 0
    known = set() if recording else set(old.namelist())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = pool.map(lambda entry: [compiled(given.tegula, entry[1]) for _ in range(2 if recording else 1)], work)
        writer = zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=1) if recording else None
        for (name, _), made in zip(work, texts):
            text = made[0]
            refused += text.startswith("exit ") or text.startswith("longer ")
            if recording:
                writer.writestr(name, text)
                before = made[1]
            elif name in known:
                before = old.read(name).decode()
            else:
                missing += 1
                continue
            if form(before) != form(text):
                report(name, form(before), form(text), differing)
                differing += 1
        if writer:
            writer.close()
            partial.replace(given.archive)
    gone = len(known - {name for name, _ in work}) if not given.only else 0
    print(f"{len(work)} texts, {refused} of them refusals, {differing} differ"
          + (f", {missing} are not in the record, {gone} are only there" if not recording else " when made again")
          + f"; {time.monotonic() - begun:.0f} s")
    return 4 if differing or missing or gone else 0


if __name__ == "__main__":
    sys.exit(main())
