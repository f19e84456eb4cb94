#!/usr/bin/env python3
"""Makes the environment of ./dev from nothing in an empty folder, and uses there what the README shows.

  environment.py --build=BUILD

The pins of scripts/requirements*.txt are taken from .venv, file by file, so that nothing is downloaded and nothing else
that .venv may hold is seen. Exit code 77 where .venv lacks one: `./dev setup` makes it.
"""
import argparse
import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = TREE / "scripts"
TASK = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x
def get_inputs():
    return [torch.rand(3, 4)]
def get_init_inputs():
    return []
"""
PROGRAM = "kernel double(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = 2 * x[i, j] }"
# Only what was installed, and Debian's own libraries: a CUDA toolkit on this machine must not stand in for a wheel.
LOADED = """
import os, sys
allowed = tuple(map(os.path.realpath, sys.argv[1:]))
with open("/proc/self/maps") as maps:
    loaded = {line.split(maxsplit=5)[-1].strip() for line in maps if ".so" in line}
foreign = [one for one in loaded if one.startswith("/") and not os.path.realpath(one).startswith(allowed)]
assert not foreign, foreign
"""


def pins(name):
    lines = (line.partition("#")[0].strip() for line in (SCRIPTS / name).read_text().splitlines())
    return dict(line.split("==") for line in lines if line)


def install(prefix, wanted):
    """Links the files of these packages into a new virtual environment, or says which one is not there."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", prefix], check=True)
    [site] = prefix.glob("lib/python*/site-packages")
    source = sysconfig.get_path("purelib")
    for name, version in wanted.items():
        try:
            package = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            package = None
        if package is None or package.version != version:
            print(f"skipped: {sys.executable} has no {name} {version}; ./dev setup installs it")
            sys.exit(77)
        for file in package.files:
            if file.parts[0] == ".." or file.suffix == ".pyc":
                continue  # commands, which name their interpreter
            place = site / file
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                place.symlink_to(os.path.join(source, file))
    return prefix / "bin" / "python", site


def run(*command, code=0, **options):
    done = subprocess.run([*map(str, command)], stdin=subprocess.DEVNULL, capture_output=True, text=True, **options)
    if done.returncode != code:
        sys.exit(f"{' '.join(map(str, command))[:200]}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    build = parser.parse_args().build.resolve()
    environment = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), "PYTHONDONTWRITEBYTECODE": "1"}
    small = pins("requirements.txt")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        options = {"cwd": folder, "env": environment}

        # All that ./dev setup installs.
        python, site = install(folder / "all", {**small, **pins("requirements-torch.txt")})
        (site / "tegula.pth").write_text(f"{build / 'python'}\n")
        [block] = [text for text in re.findall(r"```python\n(.*?)```", (TREE / "README.md").read_text(), re.DOTALL)
                   if "import tegula, torch" in text]
        allowed = [folder, sysconfig.get_path("purelib"), build, "/usr/lib", "/lib", sys.base_prefix + "/lib"]
        run(python, "-c", block + LOADED, *allowed, **options)
        run(python, "-c", "import fastapi, mcp, numpy, openai, ray, rich, uvicorn", **options)
        tasks, programs = folder / "tasks", folder / "programs"
        for place, file, text in ((tasks, "1_double.py", TASK), (programs, "1_double.tgl", PROGRAM)):
            place.mkdir()
            (place / file).write_text(text)
        judged = run(python, "-m", "tegula_eval", "kernelbench", f"--root={tasks}", f"--programs={programs}",
                     f"--out={folder / 'run'}", "--plain", **options)
        assert "right" in judged.stdout, judged
        served = run(build / "bin" / "tegula", "mcp", cwd=folder, env={**environment, "TEGULA_PYTHON": str(python)})
        assert not served.stderr, served

        # What ./dev demo installs, as seen where torch cannot be imported: help, and one line that says what to do.
        python, site = install(folder / "small", {name: pin for name, pin in small.items() if name != "torch"})
        (site / "tegula.pth").write_text(f"{build / 'python'}\n")
        run(python, "-c", "import numpy, tegula; tegula.compile('''" + PROGRAM + "''')(numpy.ones((2, 3), 'f'))", **options)
        assert "kernelbench" in run(python, "-m", "tegula_eval", "--help", **options).stdout
        for command in (["kernelbench", "--programs=."], ["time", "--programs=."], ["audit"], ["export", "--programs=.", "--out=."],
                        ["launches", "--programs=.", "--tasks=1"]):
            told = run(python, "-m", "tegula_eval", *command, "--root=.", code=3, **options).stderr
            remedy = f"{TREE / 'dev'} setup" if build.is_relative_to(TREE) else "pip install torch"
            assert told.count("\n") == 1 and remedy in told, told
        # The source folder in place of the build's.
        told = run(python, "-c", "import tegula", code=1, cwd=folder, env={**environment, "PYTHONPATH": TREE / "python"}).stderr
        assert "PYTHONPATH=build/dev/python" in told.splitlines()[-1], told
    return 0


if __name__ == "__main__":
    sys.exit(main())
