"""Where libtegula, the package `tegula` and the command lie."""
from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def library_path() -> Path:
    """`$TEGULA_LIBRARY`, or that of the package `tegula` beside this one, or in lib of the build tree that this
    file lies in, or in build/{release,dev}/lib of the source tree."""
    given = os.environ.get("TEGULA_LIBRARY")
    tree = Path(__file__).resolve().parents[3]
    places = [Path(given)] if given else [
        Path(__file__).resolve().parents[2] / "tegula" / "libtegula.so.0",
        tree / "lib" / "libtegula.so", *(tree / "build" / kind / "lib" / "libtegula.so"
                                         for kind in ("release", "dev"))]
    for place in places:
        if place.exists():
            return place
    raise FileNotFoundError("libtegula.so is not at " + " or ".join(map(str, places))
                            + "; TEGULA_LIBRARY names it")


def package_path() -> Path | None:
    """The folder in which the package `tegula` of the library's build tree lies; None where that has none, and Python
    finds the package by itself or not at all."""
    try:
        place = library_path().parents[1] / "python"
    except FileNotFoundError:
        return None
    return place if any((place / "tegula").glob("_tegula*")) else None


def command_path() -> str:
    """`$TEGULA_COMMAND`, or the command beside the library's folder or the interpreter, or the one on the path."""
    beside = None
    try:
        beside = library_path().resolve().parents[1] / "bin" / "tegula"
    except FileNotFoundError:
        pass
    for place in (os.environ.get("TEGULA_COMMAND"), beside, Path(sys.executable).with_name("tegula"),
                  shutil.which("tegula")):
        if place and Path(place).exists():
            return str(place)
    raise FileNotFoundError("there is no command tegula; TEGULA_COMMAND names it")
