#!/usr/bin/env python3
"""Counts the programs of the tree that have a gradient, and why the others have none.

    docs/dev/count_gradients.py [--bin=build/dev/bin] [FOLDER...]

For each program `tegula grad` is run, and `tegula check` on what it writes: "more guards" counts gradients with more
warnings than their program has.
"""
import argparse
import collections
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["dsl/kernels", "bench/kernelbench/programs/level1", "bench/kernelbench/programs/level2", "bench/real/programs"]


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--bin", default=ROOT / "build/dev/bin", type=pathlib.Path)
    options.add_argument("folders", nargs="*", default=FOLDERS)
    options = options.parse_args()

    def tegula(*arguments, text=None):
        return subprocess.run([options.bin / "tegula", *arguments], input=text, capture_output=True, text=True)

    def warnings(path, text=None):
        done = tegula("check", path, text=text)
        assert done.returncode == 0, f"{path}: {done.stderr}"
        return done.stderr.count("warning[")

    for folder in options.folders:
        programs = sorted((ROOT / folder).rglob("*.tgl"))
        found, guards, reasons = 0, 0, collections.Counter()
        for path in programs:
            done = tegula("grad", path)
            if done.returncode == 0:
                found += 1
                guards += warnings("-", done.stdout) > warnings(path)
                continue
            reason = re.search(r"error\[E0913\]: no gradient: (.*)", done.stderr)
            assert reason, f"{path}: {done.stderr}"
            reasons[re.sub(r"'[^']*'", "'...'", reason[1])] += 1
        print(f"{folder}: {found} of {len(programs)} have a gradient" + (f", {guards} with more guards" if guards else ""))
        for reason, count in reasons.most_common():
            print(f"  {count:3}  {reason}")


main()
