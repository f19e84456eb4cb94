#!/usr/bin/env python3
"""Runs what README.md shows under "Use", line by line: run_readme.py BIN.

The lines run in a copy of dsl/kernels, with the commands of BIN on the path and no standard input. One whose comment
says that it needs a GPU may end with exit code 3.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]


def main():
    [block] = re.findall(r"^## Use\n+```\n(.*?)^```", (TREE / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    export, change, *lines = filter(None, block.splitlines())
    assert export.startswith("export PATH=$PWD/build/dev/bin") and change == "cd dsl/kernels", block
    environment = {**os.environ, "PATH": os.path.abspath(sys.argv[1]) + os.pathsep + os.environ["PATH"]}
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "dsl" / "kernels"
        shutil.copytree(TREE / "dsl" / "kernels", folder)
        (pathlib.Path(name) / "bench").symlink_to(TREE / "bench")
        for line in lines:
            done = subprocess.run(["bash", "-c", line], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
            if done.returncode and not (done.returncode == 3 and "GPU (it needs one)" in line):
                print(f"{line}\nexit code {done.returncode}\n{done.stdout}")
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
