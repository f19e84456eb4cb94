#!/usr/bin/env python3
"""Builds the wheel, installs it into a new virtual environment without any index, and uses it from there.

  wheel.py --prebuilt=BUILD --folder=FOLDER

FOLDER keeps what was built, so that a second run takes less. Exit code 77 where a tool is missing.
"""
import argparse
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import venv

TEST = pathlib.Path(__file__).resolve().parent

# Without torch and numpy: arrays of Python's own library, through the buffer protocol.
PROGRAM = r"""
import array, os, sys
import tegula

prefix = os.path.realpath(sys.argv[1])
folder = os.path.dirname(os.path.realpath(tegula.__file__))
assert folder.startswith(prefix), folder
assert {"py.typed", "_tegula.pyi"} <= set(os.listdir(folder))
with open("/proc/self/maps") as maps:
    loaded = {line.split()[-1] for line in maps if "libtegula" in line}
assert loaded == {os.path.join(folder, "libtegula.so.0")}, loaded

import tegula_eval
assert tegula_eval.__version__ == tegula.__version__ == tegula.version()

scale = tegula.compile("kernel scale(x: f32[N], s: f32) -> (y: f32[N]) { y[i] = s * x[i] }")
y = array.array("f", [0, 0, 0])
assert scale(array.array("f", [1, 2, 3]), 2.0, out=y) is y and y.tolist() == [2, 4, 6]
assert ".target sm_90a" in scale.ptx()
try:
    tegula.compile("kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = z[i] }")
except tegula.ProgramError as error:
    assert error.diagnostics[0].span.line == 1
else:
    raise AssertionError("no error")
"""


def run(command, **options):
    result = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            **options)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))[:200]}\nexit code {result.returncode}\n{result.stdout}")
    return result.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prebuilt", required=True)
    parser.add_argument("--folder", required=True)
    args = parser.parse_args()
    for name in ("auditwheel", "nanobind", "pip", "scikit_build_core"):
        if not importlib.util.find_spec(name):
            print(f"skipped: no {name}")
            return 77

    folder = pathlib.Path(args.folder).resolve()
    wheel = run([sys.executable, TEST.parents[1] / "scripts" / "wheel.py", f"--prebuilt={args.prebuilt}",
                 f"--out={folder}", f"--build={folder / 'build'}"]).splitlines()[-1]
    assert re.search(r"-manylinux_2_2[0-8]_x86_64", wheel), wheel  # whatever the glibc of this machine
    with tempfile.TemporaryDirectory() as elsewhere:
        prefix = pathlib.Path(elsewhere) / "venv"
        venv.create(prefix, with_pip=False, symlinks=True)
        python = prefix / "bin" / "python"
        run([sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps",
             "--no-compile", wheel])
        environment = {"PATH": "/usr/bin:/bin"}
        printed = run([python, "-c", PROGRAM, prefix], cwd=elsewhere, env=environment)
        assert not printed, printed

        (pathlib.Path(elsewhere) / "k.tgl").write_text("kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = 2 * x[i] }")
        command = prefix / "bin" / "tegula"
        run([command, "check", "k.tgl"], cwd=elsewhere, env=environment)
        mcp = subprocess.run([command, "mcp"], capture_output=True, text=True, cwd=elsewhere, env=environment)
        assert mcp.returncode == 3 and "`pip install 'mcp>=2.3' numpy`" in mcp.stderr, mcp  # found, says what is missing
        # Without torch the help is there, and one line says what a command needs.
        assert "kernelbench" in run([prefix / "bin" / "tegula-eval", "--help"], cwd=elsewhere, env=environment)
        told = subprocess.run([prefix / "bin" / "tegula-eval", "audit", "--root=."], capture_output=True, text=True,
                              cwd=elsewhere, env=environment)
        assert told.returncode == 3 and told.stderr.count("\n") == 1 and "`pip install torch numpy`" in told.stderr, told
        # The package's own tests of programs, on what was installed.
        [site] = prefix.glob("lib/python*/site-packages")
        tests = subprocess.run([sys.executable, TEST / "run.py", f"--package={site}", f"--command={command}", "-k",
                                "test_programs"], cwd=elsewhere)
        return tests.returncode  # 77 where this Python has no torch


if __name__ == "__main__":
    sys.exit(main())
