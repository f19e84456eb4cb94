"""Asks `tegula prove` whether a program is what a task's module is.

The command asks this process to take the module apart, so that torch is not imported for each question. Sizes are drawn
by the command where the module runs at others than the task's; else it is asked at the sizes of small variants.
"""
from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import torch

from ..program import runner
from ..program.binding import Binding, bind
from ..program.library import command_path
from ..rule.reference import Case, make_case, switch_off_dropout
from ..rule.variants import Variant, build
from . import trace
from .module import kernel_sizes_of, reference_text, sizes_of

STEPS = 100_000  # of a point: sizes are drawn so that the proof takes about a second


@dataclass
class Proof:
    """What was found. `certificates` has one for each set of sizes that was fixed, or one where they were drawn."""
    verdict: str
    reason: str = ""
    fixed: bool = False  # the sizes are those of variants
    certificates: list[dict] = field(default_factory=list)
    reference: str = ""

    @property
    def holds(self) -> bool:
        return self.verdict in ("equal", "equal on points")


class ProveFailed(Exception):
    """The command gave no verdict."""


def prove_against_module(text: str, variant: Variant, smaller: Callable[[], list[Variant]], folder: Path,
                         deadline_s: float = 60) -> Proof:
    """The program's last kernel against the module. `variant`: the task at any sizes; `smaller`: at small ones, the smallest
    first, asked for where the module takes no others than its own. Raises what making a case and binding raise, and
    ProveFailed."""
    program = runner.Program(text)
    path = folder / "program.tgl"
    path.write_text(text, encoding="utf-8")
    question = _Question(program, variant, folder)
    found = question.ask(path, {}, deadline_s)
    if found["equal"]["verdict"] == "not equal" and question.kernels:
        found = question.ask(path, question.kernels, deadline_s)
    drawn = found["equal"].get("reason", "")
    proof = Proof(found["equal"]["verdict"], drawn, False, [found], question.reference)
    if proof.verdict != "undecided":
        return proof
    proof.fixed = True
    for variant in smaller():
        question = _Question(program, variant, folder)
        found = question.ask(path, question.sizes, deadline_s)
        verdict, reason = found["equal"]["verdict"], found["equal"].get("reason", "")
        if verdict == "undecided" and proof.holds:
            break  # at these sizes nothing is claimed
        kept = proof.certificates if proof.holds else []
        proof.verdict, proof.reason, proof.certificates = verdict, reason, [*kept, found]
        proof.reference = question.reference
        if not proof.holds:
            break
    if proof.verdict == "undecided":
        proof.reason = f"{proof.reason} (at sizes that are drawn: {drawn})"
    return proof


class _Question:
    """A program and a variant's module, for `tegula prove`."""

    def __init__(self, program: runner.Program, variant: Variant, folder: Path):
        case: Case = shaped_case(variant.source)
        case.instead = switch_off_dropout(case)
        self.binding: Binding = bind(program.parameters, case)
        self.sizes = sizes_of(self.binding, program.parameters)
        self.kernels = kernel_sizes_of(case, self.binding, program.parameters)
        self.program = program
        self.reference = reference_text(variant.source, case, self.binding, program.parameters)
        self.path = folder / f"{variant.name}.py"
        self.path.write_text(self.reference, encoding="utf-8")
        self.constants = {one.name for one in program.parameters if one.role == "constant"}

    def ask(self, program: Path, sizes: dict[str, int], deadline_s: float) -> dict:
        settings = self.binding.settings
        options = [f"--steps={STEPS}"]
        options += [f"-p={name}={_listed(settings[name])}" for name in settings if name in self.constants]
        options += [f"--type={name}={settings[name]}" for name in settings if name not in self.constants]
        options += [f"--with={name}" for name in self.binding.optionals if name not in self.constants]
        if self.binding.ellipsis_rank:
            options.append(f"--rank={self.binding.ellipsis_rank}")
        if sizes:
            options.append("-d=" + ",".join(f"{name}={value}" for name, value in sizes.items()))
        return ask(program, self.path, options, deadline_s)


def shaped_case(source: str) -> Case:
    """As make_case, but for the values of large parameters. Raises TaskError."""
    torch.manual_seed(0)
    with trace.Undrawn() as undrawn:
        built = build(source)
    state = {**built.model.state_dict(), **dict(built.model.named_buffers())}
    return make_case(source, 0) if undrawn.is_read else Case(built, built.inputs, state)


def _listed(text: str) -> str:
    """A tuple as the command line has it."""
    return text.strip("()").replace(" ", "").rstrip(",")


class _Watch:
    """Kills a process that has taken so many seconds of a processor, or, where that cannot be seen, of a clock."""

    def __init__(self, process: subprocess.Popen, deadline_s: float):
        self.process, self.deadline_s, self.is_late = process, deadline_s, False
        self.started, self.ended = time.monotonic(), threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while not self.ended.wait(0.2):
            if self._seconds() > self.deadline_s:
                self.is_late = True
                self.process.kill()
                return

    def _seconds(self) -> float:
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError):
            return time.monotonic() - self.started

    def stop(self) -> None:
        self.ended.set()


def ask(program: Path, reference: Path, options: list[str], deadline_s: float = 60) -> dict:
    """The certificate of `tegula prove`, which this process takes the reference apart for. `deadline_s`: of the command's
    processor time. Raises ProveFailed."""
    questions, asked = os.pipe()
    answered, answers = os.pipe()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [command_path(), "prove", program.name, f"--against={reference.resolve()}", "--json",
             f"--tracer={asked},{answered}", *options], cwd=program.parent, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, pass_fds=(asked, answered))
        os.close(asked)
        os.close(answered)
        watch = _Watch(process, deadline_s)
        try:
            with os.fdopen(questions) as lines, os.fdopen(answers, "w") as told:
                for line in lines:
                    try:
                        told.write(trace.answer(line))
                        told.flush()
                    except BrokenPipeError:
                        break
        except BrokenPipeError:  # as the file is closed
            pass
        status = process.wait()
        watch.stop()
        output.seek(0)
        errors.seek(0)
        text, message = output.read().decode(), errors.read().decode(errors="replace").strip()
    if status < 0:
        raise ProveFailed(f"it took more than {deadline_s:g} s" if watch.is_late else f"signal {-status}: {message}")
    try:
        return json.loads(text)
    except ValueError:
        raise ProveFailed(message or f"exit code {status}") from None
