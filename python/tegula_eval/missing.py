"""Packages that a command needs and that cannot be imported: one line says so, with the command that mends it."""
from __future__ import annotations

import importlib
from pathlib import Path

# Of what an import needs, the names under which an index has it.
ON_INDEX = {"torch": "torch numpy", "fastapi": "'fastapi>=0.165' 'uvicorn>=0.54'", "mcp": "'mcp>=2.3' numpy"}


class Missing(Exception):
    pass


def source_tree() -> Path | None:
    """The source tree that this file lies in, or in a build folder of."""
    for folder in Path(__file__).resolve().parents:
        if (folder / "dev").is_file() and (folder / "scripts" / "requirements-torch.txt").is_file():
            return folder
    return None


def remedy(*modules: str) -> str:
    """How to get them: by ./dev in a source tree, else from an index."""
    tree = source_tree()
    if tree:
        return f"`{tree / 'dev'} setup` installs it for {tree / '.venv/bin/python'}"
    return f"`pip install {' '.join(ON_INDEX.get(one, one) for one in modules)}` installs it"


def check(*modules: str) -> None:
    """Raises Missing for the first that cannot be imported: it may be there without what it loads."""
    for module in modules:
        try:
            importlib.import_module(module)
        except (ImportError, OSError) as error:
            reason = " ".join(str(error).split())
            raise Missing(f"it needs {module} ({reason}); {remedy(module)}") from None
