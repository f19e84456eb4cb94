"""Diagnostics as exceptions and warnings."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import dataclass, field
from typing import Any, Optional


@dataclass(frozen=True)
class Span:
    """A place in a program. `begin` and `end` are byte offsets from 0, half open; lines and columns count
    from 1, columns in code points."""

    file: str
    begin: int
    end: int
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Edit:
    """The bytes of `span` are replaced by `text`."""

    span: Span
    text: str


@dataclass(frozen=True)
class Fix:
    """A way to repair a program: all `edits` together. `applicability` is "safe" or "maybe"."""

    message: str
    applicability: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Note:
    message: str
    span: Optional[Span] = None


@dataclass(frozen=True)
class Diagnostic:
    """One record of the schema `tegula.diagnostic` (docs/diagnostics.md); `record` is all of it."""

    code: str
    name: str
    severity: str
    message: str
    span: Optional[Span] = None
    notes: tuple[Note, ...] = ()
    fixes: tuple[Fix, ...] = ()
    record: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)


class Error(Exception):
    """What Tegula reports. `str(error)` is the text for people, with the places in the program;
    `diagnostics` are the records behind it."""

    def __init__(self, text: str, diagnostics: tuple[Diagnostic, ...] = ()):
        super().__init__(text)
        self.diagnostics = list(diagnostics)


class ProgramError(Error):
    """The program is wrong: the diagnostics say where and how to repair it."""


class LaunchError(Error, ValueError):
    """An argument of a call is wrong (code C0002: a name, shape, dtype, device, or sizes that a guard
    refuses), or a data-dependent subscript left its tensor while running (C0004)."""


class MissingError(Error, RuntimeError):
    """Memory, a device, a driver or an assembler is missing (C0003)."""


class InternalError(Error, RuntimeError):
    """A defect of Tegula (C0070)."""


class SwapError(Error, ValueError):
    """Programs do not stand for the modules that they should replace. `refusals` has the reason for each name."""

    def __init__(self, text: str, refusals: dict[str, str]):
        super().__init__(text)
        self.refusals = dict(refusals)


class TegulaWarning(UserWarning):
    """A warning about a program; `diagnostic` is its record."""

    def __init__(self, text: str, diagnostic: Optional[Diagnostic] = None):
        super().__init__(text)
        self.diagnostic = diagnostic


def _span(record: Optional[dict]) -> Optional[Span]:
    if not record:
        return None
    return Span(*(record[name] for name in ("file", "begin", "end", "line", "column", "end_line", "end_column")))


def _diagnostic(record: dict) -> Diagnostic:
    notes = tuple(Note(one["message"], _span(one.get("span"))) for one in record.get("notes", ()))
    fixes = tuple(
        Fix(one["message"], one["applicability"], tuple(Edit(_span(e["span"]), e["text"]) for e in one["edits"]))
        for one in record.get("fixes", ())
    )
    return Diagnostic(record["code"], record["name"], record["severity"], record["message"],
                      _span(record.get("span")), notes, fixes, record)


def read(lines: str) -> tuple[Diagnostic, ...]:
    """Diagnostics from JSON Lines."""
    return tuple(_diagnostic(json.loads(line)) for line in lines.splitlines())


def error_of(status: int, lines: str, text: str) -> Error:
    """The exception for a status of the C interface and its message."""
    diagnostics = read(lines)
    kinds = {1: ProgramError, 2: LaunchError, 3: MissingError, 4: LaunchError, 5: LaunchError}
    return kinds.get(status, InternalError)(text.rstrip("\n"), diagnostics)


def wrong_call(words: str) -> LaunchError:
    record = {"schema": "tegula.diagnostic", "version": 1, "code": "C0002", "name": "WrongCall",
              "severity": "error", "message": words, "notes": [], "fixes": []}
    return LaunchError(f"error[C0002]: {words}", (_diagnostic(record),))


def _outside() -> int:
    """The `stacklevel` that makes a warning point at the caller of the package."""
    level, frame = 1, sys._getframe(1)
    while frame and frame.f_globals.get("__name__", "").split(".")[0] == "tegula":
        level, frame = level + 1, frame.f_back
    return level


def warn(lines: str, seen: set) -> None:
    """Passes warnings on, each once; remarks are only for those who ask."""
    for one in read(lines):
        key = (one.code, one.span, one.message)
        if one.severity != "warning" or key in seen:
            continue
        seen.add(key)
        place = f"{one.span.file}:{one.span.line}:{one.span.column}: " if one.span else ""
        text = f"{place}{one.message} [{one.code}]" + "".join(f"\n  {note.message}" for note in one.notes)
        warnings.warn(TegulaWarning(text, one), stacklevel=_outside())
