"""Environment variables of the processes that this package starts."""
from __future__ import annotations

import os
from pathlib import Path

SECRETS = ("KEY", "TOKEN", "SECRET", "PASSWORD")  # no process that runs foreign code has variables of such names
PACKAGES = str(Path(__file__).resolve().parents[2])  # the folder of this package


def for_process(**more: str) -> dict[str, str]:
    """This process's own, but for secrets, with which `python -m tegula_eval...` finds this package, and `more`."""
    kept = {name: value for name, value in os.environ.items() if not any(word in name.upper() for word in SECRETS)}
    kept.update(more)
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, [PACKAGES, kept.get("PYTHONPATH")]))
    return kept
