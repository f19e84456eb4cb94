"""`%load_ext tegula` in Jupyter and IPython: a cell that begins with `%%tegula` is a program, and its kernels become names of the
notebook.

    %%tegula precision=tf32 factor=2
    kernel scale(x: f32[N], factor: int = 1) -> (y: f32[N]) { y[i] = factor * x[i] }

Words behind `%%tegula` are what `tegula.compile` takes beside the text.
"""
from __future__ import annotations

import ast
import shlex
from typing import Any

from . import _tegula
from ._errors import Error, wrong_call
from ._kernel import compile as compile_kernel


def options_of(line: str) -> dict[str, Any]:
    """`checked stride=(2,1) T=f16` as keywords: a word alone is true, what is no literal of Python is text."""
    options: dict[str, Any] = {}
    for word in shlex.split(line):
        name, given, text = word.partition("=")
        if not name.isidentifier():
            raise wrong_call(f"%%tegula takes NAME=VALUE, got '{word}'")
        try:
            options[name] = ast.literal_eval(text) if given else True
        except (SyntaxError, ValueError):
            options[name] = {"true": True, "false": False}.get(text, text)
    return options


class Magic:
    def __init__(self, shell: Any):
        self.shell = shell

    def run(self, line: str, cell: str) -> None:
        try:
            options = options_of(line)
            names = _tegula.kernels_of(_tegula.parse(cell, "<cell>"))
            kernels = {name: compile_kernel(cell, name, file_name="<cell>", **options) for name in names}
        except Error as error:
            text = str(error)
            # What IPython shows in the place of a traceback, which would be of this module.
            error._render_traceback_ = lambda *_: text.splitlines()  # type: ignore[attr-defined]
            raise
        self.shell.user_ns.update(kernels)


def load_ipython_extension(shell: Any) -> None:
    shell.register_magic_function(Magic(shell).run, magic_kind="cell", magic_name="tegula")
