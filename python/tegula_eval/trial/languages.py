"""The languages of a trial: the prompt of a task, the file of an answer, and the answer in what a model wrote.

A writer is told what the language's own page teaches (for Tegula what `tegula prompt` prints), how answers are judged, and
the task. `torch` has no page: such answers are modules that PyTorch itself runs, and show what the judge does without a GPU.
"""
from __future__ import annotations

import re
from pathlib import Path

from ..model import answers, conversation

PAGES = Path(__file__).with_name("pages")
LANGUAGES = ("tegula", "triton", "cuda", "torch")
ON_CUDA = ("triton", "cuda")  # which nothing else runs
ENDINGS = {"tegula": ".tgl"}  # others are Python
MODULE = re.compile(r"^class\s+ModelNew\b", re.M)


def ending(language: str) -> str:
    return ENDINGS.get(language, ".py")


def first_message(language: str, task_source: str, examples: int) -> str:
    """The whole prompt. Raises RuntimeError where the command tegula does not run."""
    if language == "tegula":
        return conversation.first_message(task_source, examples)
    parts = [] if language == "torch" else [(PAGES / f"{language}.md").read_text(encoding="utf-8")]
    parts.append((PAGES / "answer.md").read_text(encoding="utf-8"))
    parts.append(f"## The task\n\n```python\n{task_source.strip()}\n```\n")
    return "\n".join(parts)


def next_message(language: str, record: dict, answer: str | None) -> str | None:
    """What a writer is told of an answer that is not right; None where it is, or the fault is not the answer's."""
    if record["outcome"] == "right":
        return None
    if language == "tegula":
        return conversation.next_message(record, answer)
    return conversation.next_message_of_module(record)


def find_answer(language: str, text: str) -> str:
    """Raises answers.NoProgram."""
    return answers.find_program(text) if language == "tegula" else answers.find_module(text, MODULE)
