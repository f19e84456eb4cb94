#!/usr/bin/env python3
"""Runs the commands of a page and writes their output into it.

    docs/dev/run_blocks.py [--check] [--bin=build/dev/bin] docs/walkthrough.md...

A fenced block of language `console` that begins with `$ COMMAND` holds that command and its output: the
rest of the block is replaced by what the command prints now (standard output, then standard error). Commands
run in the root of the repository, by bash, with --bin in front of PATH. With --check nothing is written:
exit code 1, and a diff, where a page is not what its commands print.
"""
import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```console\n\$ (?P<command>(?:.*\\\n)*.*)\n(?P<output>(?:(?!```).*\n)*)```$", re.M)


def run(command, path):
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=ROOT, capture_output=True, text=True,
                          env={**os.environ, "PATH": f"{path}:{os.environ['PATH']}"})
    lines = (done.stdout + done.stderr).rstrip().splitlines()
    return "".join(line.rstrip() + "\n" for line in lines)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--check", action="store_true", help="write nothing, compare")
    options.add_argument("--bin", default=ROOT / "build/dev/bin", type=pathlib.Path)
    options.add_argument("pages", nargs="+", type=pathlib.Path)
    options = options.parse_args()
    stale = False
    for page in options.pages:
        old = page.read_text()
        if not BLOCK.search(old):
            sys.exit(f"{page}: no block of language `console` begins with `$ `")
        new = BLOCK.sub(lambda found: f"```console\n$ {found['command']}\n"
                                      f"{run(found['command'], options.bin.resolve())}```", old)
        if new == old:
            continue
        stale = True
        if options.check:
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), str(page), "now"))
            print(f"run docs/dev/run_blocks.py {page}")
        else:
            page.write_text(new)
    sys.exit(1 if options.check and stale else 0)


if __name__ == "__main__":
    main()
