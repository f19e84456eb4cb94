"""The program in what a model answered."""
from __future__ import annotations

import re

MAX_PROGRAM = 200_000  # characters: more is no program of anyone's
_FENCED = re.compile(r"^[ \t]*(```+|~~~+)[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.M | re.S)
_OPEN = re.compile(r"^[ \t]*(?:```+|~~~+)[^\n]*\n", re.M)
_HEAD = re.compile(r"^\s*(kernel|fn)\s+\w+\s*\(", re.M)


class NoProgram(Exception):
    """The answer holds none; `reason` is `empty`, `none`, `several` or `long`."""

    def __init__(self, reason: str, message: str):
        self.reason = reason
        super().__init__(message)


def _blocks(answer: str) -> tuple[str, list[str]]:
    """The answer without what was thought before it, and its code blocks. Raises NoProgram."""
    if not answer.strip():
        raise NoProgram("empty", "the answer is empty")
    if len(answer) > 5 * MAX_PROGRAM:
        raise NoProgram("long", f"the answer has {len(answer)} characters")
    # What a model thinks before it answers is no answer.
    answer = re.sub(r"<think>.*?(</think>|\Z)", "", answer, flags=re.S)
    blocks = [body for _, body in _FENCED.findall(answer)]
    rest = _OPEN.split(_FENCED.sub("", answer))
    if len(rest) == 2:  # a block that was never closed
        blocks.append(rest[1])
    return answer, blocks


def find_module(answer: str, head: re.Pattern) -> str:
    """The last code block that holds `head`, such as a class of some name, or the answer, where it has none and is Python.
    Raises NoProgram."""
    answer, blocks = _blocks(answer)
    found = [block for block in blocks if head.search(block)]
    if not blocks and head.search(answer):
        found = [answer]
    if not found:
        raise NoProgram("none", f"the answer holds no code block with `{head.pattern.removeprefix('^')}`")
    if len(found[-1]) > MAX_PROGRAM:
        raise NoProgram("long", f"the file has {len(found[-1])} characters")
    return found[-1].strip("\n") + "\n"


def find_program(answer: str) -> str:
    """The one code block that holds a kernel; of several, the last, where the others are parts or earlier forms
    of it (no kernel of theirs has a name that the last one lacks). An answer that is a program without a block is
    one too. Raises NoProgram."""
    answer, blocks = _blocks(answer)
    programs = [block for block in blocks if _HEAD.search(block)]
    if not programs and not blocks and re.match(r"\s*(#[^\n]*\n\s*)*(kernel|fn)\s+\w+\s*\(", answer):
        programs = [answer]
    if not programs:
        raise NoProgram("none", "the answer holds no code block with a kernel")
    last = programs[-1]
    known = _names(last)
    if any(_names(other) - known for other in programs[:-1]):
        raise NoProgram("several", f"the answer holds {len(programs)} code blocks with kernels of different names; "
                        "the whole program belongs into one")
    if len(last) > MAX_PROGRAM:
        raise NoProgram("long", f"the program has {len(last)} characters")
    return last.strip("\n") + "\n"


def _names(program: str) -> set[str]:
    return set(re.findall(r"^\s*kernel\s+(\w+)", program, re.M))
