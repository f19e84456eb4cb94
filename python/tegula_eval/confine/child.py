"""Runs a function in a child process with a deadline and a memory limit.

The child is forked from a process that has imported what it needs, so that it starts at once. Whatever happens to
it is an outcome of a fixed form:

  done     the function's own result
  timeout  killed at the deadline
  memory   it asked for more than it may have
  crashed  it ended on a signal, or without an answer
  failed   the function raised something that it should not have: a defect of the evaluation

All but the first tell the `stage` that the child was in, as it last said.

The deadline is of the time that the child works: the clock stands still while it waits for a turn on a device, since others
decide how long that takes.
"""
from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from typing import Callable

MAX_ANSWER = 16 << 20
MOST_STAGES = 1000  # that are told while it runs
BEAT_S = 10.0  # how often `told` is called while a child waits for a turn: a worker that is silent for long is ended
MAX_OUTPUT_BYTES = 64 << 20  # what a child may write to a file, its own messages among it
MAX_COMPILER_BYTES = 2 << 30  # of one that runs torch.compile, whose precompiled headers are larger


def run(function: Callable[[dict, Callable[[str], None]], dict], request: dict, deadline_s: float,
        memory_bytes: int | None, file_bytes: int | None = MAX_OUTPUT_BYTES,
        told: Callable[[str], None] = lambda stage: None) -> dict:
    """`function(request, stage)` in a child; `stage(name)` says where it is, and `told` is called with it here. Of this
    process's descriptors the child has those that `function.descriptors()` gives, where there is such, and no others:
    foreign code finds nothing to write to but its own answer. Where `function.waits` is true, `stage(name, waits=True)` says
    that it waits for a turn until the next stage, which counts neither for the deadline nor in the outcome's `seconds`. It is
    false where foreign code runs in the child, which could say so too and would have no deadline."""
    kept = getattr(function, "descriptors", tuple)()
    read, write = os.pipe()
    with tempfile.TemporaryFile() as output:
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            os.close(read)
            _child(function, request, memory_bytes, file_bytes, write, output.fileno(), kept)
        os.close(write)
        try:
            data, late, waited_s = _read(read, started + deadline_s, told, getattr(function, "waits", False))
        finally:
            os.close(read)
            _kill(child)
        _, status, used = os.wait4(child, 0)
        outcome = _outcome(data, late, status, _tail(output))
    outcome["seconds"] = round(time.monotonic() - started - waited_s, 3)
    outcome["processor_s"] = round(used.ru_utime + used.ru_stime, 3)  # what other work on the machine changes little
    return outcome


def die_with_parent() -> None:
    """Asks the kernel to end this process with the one that started it (Linux)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def keep_memory() -> None:
    """Asks the C library to hand memory that was freed out again, in place of giving it back to the kernel (glibc):
    new pages for each result of a module are half of what judging a small program costs. What a limit on memory
    counts stays the same but for what lies between blocks in use."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        for option, value in ((-3, 1 << 25), (-1, (1 << 31) - 1), (-2, 1 << 26)):  # M_{MMAP,TRIM}_THRESHOLD, M_TOP_PAD
            set_option(option, value)


def _close_others(kept: set[int]) -> None:
    start = 0
    for one in (*sorted(kept), resource.getrlimit(resource.RLIMIT_NOFILE)[1]):
        if start < one:  # of an empty range close_range(2) takes the end for none
            os.closerange(start, one)
        start = one + 1


allowed_bytes: int | None = None  # in a child: the memory that it may have, which its guests may have too


def private_bytes() -> int:
    """What RLIMIT_DATA counts of this process already: torch's import alone maps three quarters of a gigabyte."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData:"))


def _child(function, request, memory_bytes, file_bytes, write, output, kept) -> None:
    """Never returns."""
    code = 1
    try:
        os.setsid()
        die_with_parent()
        faulthandler.disable()  # a crash is told by the signal
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        _close_others({0, 1, 2, write, *kept})
        sys.stdout = sys.stderr = open(2, "w", buffering=1, closefd=False)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if file_bytes:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
        if memory_bytes:
            # Not the address space: CUDA reserves much more of that than it uses.
            global allowed_bytes
            allowed_bytes, most = memory_bytes, memory_bytes + private_bytes()
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))

        def tell(message: dict) -> None:
            text = json.dumps(message).encode() + b"\n"
            while text:
                text = text[os.write(write, text):]

        try:
            tell({"answer": function(request, lambda name, waits=False: tell({"stage": name, "waits": waits}))})
        except MemoryError as error:
            tell({"memory": str(error)})
        except Exception as error:
            if "can't allocate memory" in str(error) or "out of memory" in str(error).lower():
                tell({"memory": str(error)[:500]})
            else:
                tell({"failed": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()[-4000:]})
        code = 0
    finally:
        os._exit(code)


def _read(read: int, end: float, told: Callable[[str], None], waits: bool) -> tuple[bytes, bool, float]:
    """What the child said, whether it was late, and how long it waited for turns, if it may."""
    data, seen, stages = b"", 0, 0
    waited_s, since, stage = 0.0, None, ""  # since when it waits
    while len(data) <= MAX_ANSWER:
        left = BEAT_S if since is not None else end + waited_s - time.monotonic()
        if left <= 0 or not select.select([read], [], [], left)[0]:
            if since is None:
                return data, True, waited_s
            told(stage)
            continue
        more = os.read(read, 1 << 16)
        if not more:
            break
        data += more
        while (line_end := data.find(b"\n", seen)) >= 0 and (stages < MOST_STAGES or since is not None):
            line, seen, stages = data[seen:line_end], line_end + 1, stages + 1
            if line.startswith(b'{"stage"') and (message := _message(line)):
                if since is not None:
                    waited_s += time.monotonic() - since
                since, stage = time.monotonic() if waits and message.get("waits") else None, str(message["stage"])[:500]
                told(stage)
        if b'\n{"answer"' in b"\n" + data and data.endswith(b"\n"):
            break  # not waiting for what the child's own threads still do
    return data, False, waited_s + (time.monotonic() - since if since is not None else 0.0)


def _kill(child: int) -> None:
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        try:
            os.kill(child, signal.SIGKILL)  # before it led a group of its own
        except ProcessLookupError:
            pass


def _tail(output, count: int = 2000) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - count))
    return output.read().decode(errors="replace").strip()


def _is_shallow(value, depth: int = 64) -> bool:
    """Whether it can be written as JSON again, and read by others."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth > 0 and all(_is_shallow(one, depth - 1) for one in parts)


def _message(line: bytes) -> dict | None:
    """None where it is cut off in the middle, or foreign code wrote it."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) and _is_shallow(message) else None


def _outcome(data: bytes, late: bool, status: int, tail: str) -> dict:
    stage = "start"
    for line in data.splitlines():
        message = _message(line)
        if message is None:
            continue
        if "stage" in message:
            stage = str(message["stage"])[:500]
        elif isinstance(message.get("answer"), dict):
            return {"kind": "done", "answer": message["answer"], "stage": stage}
        elif "memory" in message:
            return {"kind": "memory", "stage": stage, "message": str(message["memory"])[:500]}
        elif "failed" in message:
            return {"kind": "failed", "stage": stage, "message": str(message["failed"]), "trace": str(message.get("trace"))}
    if late:
        return {"kind": "timeout", "stage": stage, "message": "not done at the deadline"}
    how = f"signal {signal.Signals(os.WTERMSIG(status)).name}" if os.WIFSIGNALED(status) \
        else f"exit code {os.WEXITSTATUS(status)}"
    if "allocate memory" in tail or "bad_alloc" in tail or "out of memory" in tail.lower():
        return {"kind": "memory", "stage": stage, "message": tail[-500:]}
    return {"kind": "crashed", "stage": stage, "message": f"{how}; {tail[-1500:]}"}
