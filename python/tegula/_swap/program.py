"""A program as an operator of PyTorch, made once in a process for each text and choice of settings."""
from __future__ import annotations

import atexit
import hashlib
import re
from typing import Any

from .._kernel import Kernel
from .._library import register

_WORD = re.compile(r"[^\W\d]\w*")
# Emptied when the interpreter ends: what torch.compile keeps of a model for good then reaches no kernel.
_made: dict[str, tuple[Any, Kernel, list[Kernel]]] = {}
atexit.register(_made.clear)


class Program:
    """The text of a program, and the operator that it is in this process. Pickled as text."""

    def __init__(self, text: str, file_name: str, kernel: Any, backward: tuple[str, ...], settings: dict[str, Any],
                 precision: Any, tuned: bool, checked: bool = False):
        self.made_of = (text, file_name, kernel, tuple(backward), dict(settings), precision, tuned, checked)
        self.file_name = file_name
        digest = hashlib.sha256(repr((text, kernel, tuple(backward), sorted(settings.items()), precision,
                                      tuned, checked)).encode()).hexdigest()[:16]
        if digest not in _made:
            _made[digest] = register(text, f"tegula_swap::k{digest}", file_name=file_name, kernel=kernel,
                                     backward=backward, precision=precision, tuned=tuned, checked=checked, **settings)
        self._digest = digest
        self.operator, kernel, gradients = _made[digest]
        self.parameters = kernel.parameters
        self.inputs = [one for one in self.parameters if one.role != "out"]
        self.updated = frozenset(one.name for one in self.inputs if one.role == "inout")
        # The tensors whose gradients the backward kernels give.
        self.differentiable = frozenset(one.name.removeprefix("grad_") for gradient in gradients for one in gradient.outputs)

    def conditions(self) -> set[tuple[str, int]]:
        """Of the kernel compiled last, the dims of arguments (name, dim) that its conditions on sizes depend on."""
        description = _made[self._digest][1]._any().description
        arguments, sizes = description["arguments"], {one["name"]: one for one in description["sizes"]}

        def dims_of(text: str) -> set[tuple[str, int]]:
            found = set()
            for word in _WORD.findall(text):
                bound = sizes.get(word, {}).get("bound_by")
                if bound:
                    found.add((arguments[bound["argument"]]["name"], bound["dim"]))
                elif word in sizes:
                    found |= dims_of(sizes[word]["definition"])
            return found

        found = {(one["name"], place) for one in arguments if one["role"] in ("in", "inout")
                 for place, dim in enumerate(one["dims"]) if not dim.isidentifier() and not dim.isdigit()}
        for one in description["guards"]:
            condition = one["condition"].partition(" : ")[0]
            if not condition.startswith("inbounds "):  # that indices have 64 bits
                found |= dims_of(condition)
        return found

    def synchronize(self) -> None:
        _made[self._digest][1].synchronize()

    @property
    def outputs(self) -> list[str]:
        return [one.name for one in self.parameters if one.role == "out"]

    def __deepcopy__(self, memo: dict[int, Any]) -> Program:
        return self

    def __reduce__(self) -> Any:
        return Program, self.made_of
