"""What `print` and `assert` of a program saw in a call."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Callable, Optional, Union

from . import _errors

CHECKED = {False: 0, True: 1, "nan": 2, "finite": 3}
Checked = Union[bool, str]
POINTS = 20  # of each `print` on standard output, as of `tegula run --checked`
ALL_POINTS = 2**32 - 1


@dataclass(frozen=True)
class Observation:
    """What one statement saw at one point. `place` is file:line:column, `statement` its text; `indices` are those of loops
    and of the statement, by name; `values` what it shows, by the expressions' text; `texts` the strings that it prints."""

    place: str
    statement: str
    indices: dict[str, int]
    values: dict[str, Union[bool, int, float]]
    texts: tuple[str, ...] = ()

    def __str__(self) -> str:
        at = ", ".join(f"{name}={index}" for name, index in self.indices.items())
        shown = [*self.texts, *(f"{name} = {value}" for name, value in self.values.items())]
        return f"{self.place}: {at + ': ' if at else ''}{', '.join(shown)}"


class AssertionFailed(_errors.LaunchError, AssertionError):
    """An assertion of the program does not hold, or with checked="nan" or "finite" a value is what is looked for (`kind` is
    "assert" or "watch"). `observation` is the first point at which it is so, `points` the number of all; `message` is what the
    program says. Results are there, but for those of outputs that the call made."""

    def __init__(self, text: str, diagnostics: tuple, kind: str, observation: Observation, points: int, message: str):
        super().__init__(text, diagnostics)
        self.kind, self.observation, self.points, self.message = kind, observation, points, message

    def __reduce__(self) -> Any:
        return AssertionFailed, (str(self), tuple(self.diagnostics), self.kind, self.observation, self.points, self.message)


Observer = Callable[[Observation], None]


def _observation(record: dict[str, Any]) -> Observation:
    # What JSON has no number for is a text: nan, inf.
    values = {one["expression"]: float(one["value"]) if isinstance(one["value"], str) else one["value"]
              for one in record["values"] if "expression" in one}
    indices = {one["name"]: one["index"] for one in record["indices"]}
    texts = tuple(one["text"] for one in record["values"] if "text" in one)
    return Observation(record["place"], record["statement"], indices, values, texts)


def teller(observer: Optional[Observer]) -> Callable[[str, str, str], None]:
    """Tells what a call has seen: the lines of `print` to `observer`, else to standard output. Raises AssertionFailed."""

    def tell(lines: str, text: str, message: str) -> None:
        seen = json.loads(lines)
        if observer is None:
            print(text, end="")
        else:
            for one in seen["prints"]:
                observer(_observation(one))
        failure = seen["failure"]
        if failure:
            record = {"schema": "tegula.diagnostic", "version": 1, "code": "C0004", "name": "WrongResult",
                      "severity": "error", "message": message, "notes": [], "fixes": []}
            raise AssertionFailed(message.rstrip("\n"), (_errors._diagnostic(record),), failure["kind"],
                                  _observation(failure), failure["points"], failure["message"])

    return tell
