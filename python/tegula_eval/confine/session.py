"""A candidate's process as seen from outside: starts it, stops it, gives it inputs, takes outputs, holds the clock.

Between calls every process of the candidate is stopped, and known to be, in the kernel too. The inputs of a call are
written while it is, so that none is known before the clock runs. Results are read out of its memory once it has said
that it is done and is stopped again; on CUDA they are copied out of memory that both share, filled with NaN before, while
the clock runs. What it computes later, or said that it had computed, does not count.

The clock tells the time until it has said that it is done, less what it and the process that judges waited for a
processor, which other load makes them; or, where that is more, the processor time of all that it has started up to when it
is known to be stopped, shared among the threads that it was given: more threads, or work under way elsewhere, make nobody
faster.
"""
from __future__ import annotations

import ctypes
import json
import math
import os
import select
import signal
import tempfile
import time
from pathlib import Path

import torch
from torch.utils._pytree import tree_map

from ..program.runner import poison
from ..timing.clock import FLUSH_BYTES
from ..timing.device_idle import DeviceIdle
from . import cgroup, processes
from .arena import Place, bits, dumps, make, memory_of
from .starter import MAX_PROCESSES, Starter

MAX_REPLY = 64 << 10
ALIGN = 256
STOP_SECONDS = 5.0
LOOK_SECONDS = 0.2  # how often memory is looked at in a call


class Ended(Exception):
    """A candidate did not do what it should: an outcome, as in a record."""

    def __init__(self, outcome: str, reason: str, message: str):
        super().__init__(plain(message))
        self.outcome, self.reason = outcome, reason


def plain(text: str, most: int = 4000) -> str:
    """What a candidate says, as text that changes nothing where it is printed."""
    return "".join(one if one.isprintable() or one == "\n" else one.encode("unicode_escape", "replace").decode()
                   for one in text[:most])


class Session:
    """`arena_bytes`: of the memory for inputs, on CUDA for outputs too. One call at a time; `close` ends all that the
    candidate has started. `trusted`: it is the module. Not `alone`: others compute on the device, so that what the candidate
    computes there between calls is not seen, until `has_device`."""

    def __init__(self, starter: Starter, target: str, arena_bytes: int, threads: int = 1,
                 memory_bytes: int | None = None, trusted: bool = False, alone: bool = True):
        self.starter, self.target, self.threads, self.memory_bytes = starter, target, threads, memory_bytes
        self.trusted = trusted
        self.folder = tempfile.TemporaryDirectory(prefix="tegula-guest-", ignore_cleanup_errors=True)
        size = max(arena_bytes, ALIGN)
        self._arena = make(ALIGN if target == "cuda" else size)
        self.idle = None
        if target == "cuda":
            self.memory = torch.zeros(size, dtype=torch.uint8, device="cuda")
            self._shared = torch.multiprocessing.reductions.reduce_tensor(self.memory)
            self._flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
            self._taken: list[torch.Tensor] = []
            self.idle = DeviceIdle() if alone else None
        else:
            self.memory = memory_of(self._arena, size)
            self._shared = size
        requests, self._requests = os.pipe()
        self._replies, replies = os.pipe()
        self._data = self._last_take = b""
        self.group = self.pid = None
        try:
            told = starter.start(self.folder.name, requests, replies, self._arena, memory_bytes, target == "cuda")
        finally:
            os.close(requests)
            os.close(replies)
        self.pid = told["pid"]
        self.isolation = told["isolation"]
        if told["group"]:
            self.group = cgroup.Group(Path(told["group"]))
        self._others = set(processes.nearest(starter.pid) or processes.descendants(starter.pid)) - {self.pid}
        ready = self._reply("ready")
        self.isolation.update(landlock=ready["landlock"], calls=ready["calls"])

    def load(self, text: str, entry: str, init, seed: int, state: dict[str, torch.Tensor],
             drawn: dict[str, torch.Tensor]) -> None:
        """Makes the module, with what it has of the parameters and buffers of `state` (guest.give). Raises Ended."""
        self._resume()  # from the second on it is stopped
        state, drawn = ({name: one.cpu() for name, one in named.items()} for named in (state, drawn))
        self._ask(_message("load", text=text, entry=entry, init=init, seed=seed, state=state, drawn=drawn,
                           target=self.target, threads=self.threads, memory=self._shared))
        self._stop()

    def has_device(self) -> None:
        """From here on nothing but this session's two processes computes on the device."""
        if self.target == "cuda":
            self.idle = DeviceIdle()

    def operators(self) -> list[str]:
        """Of torch's, by name, that the last call of "watch" ran, views left out. By what the candidate's process says."""
        self._resume()
        told = self._ask(_message("operators"))
        self._stop()
        return [name for name, _, _, _ in told]

    def seconds(self) -> float:
        """That the last call of "time" took, by the clock in the candidate's process (timing/clock.py)."""
        self._resume()
        told = self._ask(_message("seconds"))
        self._stop()
        return told[0][3] * 1e-9 if told else 0.0

    def places(self, tensors: list[torch.Tensor], start: int = 0) -> tuple[list[Place], int]:
        found = []
        for one in tensors:
            place = Place(start, tuple(one.shape), one.dtype)
            found.append(place)
            start = -(-(start + place.bytes) // ALIGN) * ALIGN
        return found, start

    def call(self, inputs: list, outputs: list[torch.Tensor],
             what: str = "call") -> tuple[float, list[torch.Tensor], bool]:
        """Seconds, the outputs, and whether the inputs are still what they were. `outputs`: tensors (on the meta
        device) of the shapes and types that are expected; `what`: "call", "watch" or "time" (guest.py). It is stopped before
        and after. Raises Ended."""
        given: list[torch.Tensor] = []
        tree_map(lambda one: given.append(one) if isinstance(one, torch.Tensor) else None, inputs)
        theirs, end = self.places(given)
        results, end = self.places(outputs, end) if self.target == "cuda" else (None, end)
        if end > self.memory.numel():
            raise Ended("failed", "arena", f"a call needs {end} bytes, there are {self.memory.numel()}")
        numbered = iter(theirs)
        take = _message("take", inputs=tree_map(lambda one: next(numbered) if isinstance(one, torch.Tensor) else one, inputs),
                        outputs=results)
        if take != self._last_take:  # where each lies, and what is no tensor
            self._resume()
            self._ask(take)
            self._stop()
            self._last_take = take
        self._look()
        for place, one in zip(theirs, given):
            place.of(self.memory).copy_(one)
        if self.target == "cuda":
            self._prepare_device(results)
        seconds, told = self._timed(what, outputs, results)
        self._check(told, outputs)
        if self.target == "cuda":
            written = [one.clone() for one in self._taken]
            self._check_device(results, written)
        else:
            written = [self._read(one, address) for one, (_, _, _, address) in zip(outputs, told)]
        same = all(torch.equal(bits(place.of(self.memory)), bits(one)) for place, one in zip(theirs, given))
        return seconds, written, same

    def nothing(self) -> float:
        """Seconds that a call takes beyond what it calls."""
        return self._timed("nothing", [], self._last_places if self.target == "cuda" else None)[0]

    def close(self) -> int | None:
        """The status that its process ended with, as of os.waitpid."""
        if self.group is not None:
            self.group.close()
        status = self.starter.end(self.pid)
        for one in (self._requests, self._replies, self._arena):
            os.close(one)
        self.folder.cleanup()
        return status

    def _timed(self, what: str, outputs: list, results: list[Place] | None) -> tuple[float, list]:
        """From a stopped process to a stopped process."""
        data = _message(what)
        used, waited = self._processor_s(), self._waited_s()
        start = time.perf_counter()
        self._resume()
        self._send(data)
        line = self._line()
        if results is not None:
            # On the device whatever it has started runs on. A copy waits for its turn beside that: what was not done
            # when it said so, and is in the copy, was done in this time.
            for place, one in zip(results, self._taken):
                one.copy_(place.of(self.memory))
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        waited = self._waited_s() - waited
        self._stop()  # it takes longer than many kernels
        used = self._processor_s() - used
        if self.target == "cpu":
            seconds = max(seconds - waited, used / self.threads)
        return seconds, self._understand(line, "finished")["results"]

    def _waited_s(self) -> float:
        """For a processor, although there was something to do: its first thread, and the thread that judges."""
        return processes.waited_s(self.pid) + processes.waited_s(os.getpid())

    def _processor_s(self) -> float:
        if self.group is not None:
            return self.group.processor_s()
        return sum(processes.processor_s(one) for one in self._members())

    def _check(self, told: list, outputs: list[torch.Tensor]) -> None:
        """What it says that its results are, against what they should be. Raises Ended."""
        for kind, _, _, _ in told:
            if kind != "Tensor":
                raise Ended("tampered", "type", f"forward returned a {kind}, which may compute later")
        if len(told) != len(outputs):
            raise Ended("wrong", "count", f"forward returned {len(told)} tensors, the module {len(outputs)}")
        for (_, dtype, shape, _), one in zip(told, outputs):
            for what, is_so, should in (("shape", shape, list(one.shape)), ("dtype", dtype, str(one.dtype))):
                if is_so != should:
                    raise Ended("wrong", what, f"the result's {what} is {is_so}, the module's {should}")

    def _read(self, one: torch.Tensor, address: int) -> torch.Tensor:
        """A result, from where it says that it lies."""
        found = torch.empty(one.shape, dtype=one.dtype)
        size = found.numel() * found.element_size()
        if not size:
            return found
        here = (ctypes.c_size_t * 2)(found.data_ptr(), size)
        there = (ctypes.c_size_t * 2)(address, size)
        libc = ctypes.CDLL(None, use_errno=True)
        libc.process_vm_readv.restype = ctypes.c_ssize_t
        count = libc.process_vm_readv(self.pid, here, ctypes.c_ulong(1), there, ctypes.c_ulong(1), ctypes.c_ulong(0))
        if count != size:
            raise Ended("tampered", "results", "its result cannot be read where it says that it lies: "
                        f"{os.strerror(ctypes.get_errno()) if count < 0 else f'{count} of {size} bytes'}")
        return found

    def _members(self) -> dict[int, processes.Stat]:
        """Its processes."""
        all_of = processes.nearest(self.starter.pid)
        if all_of is None:
            all_of = processes.descendants(self.starter.pid)
        if self.isolation.get("calls"):  # a group cannot be left
            return {one: told for one, told in all_of.items() if told.group == self.pid}
        return {one: told for one, told in all_of.items() if one not in self._others}

    def _stop(self) -> None:
        """All of its processes; returns once none of them runs."""
        end = time.perf_counter() + STOP_SECONDS
        if self.group is not None:
            if not self.group.stop(end):
                raise Ended("tampered", "stop", "its processes do not stop")
            return
        before: set[int] = set()
        while True:
            processes.send_group(self.pid, signal.SIGSTOP)
            members = self._members()
            if not self.isolation.get("calls"):
                processes.send(members, signal.SIGSTOP)
            if set(members) == before and all(map(processes.is_still, members)):
                return
            before = set(members)
            if time.perf_counter() > end:
                raise Ended("tampered", "stop", "its processes do not stop")

    def _resume(self) -> None:
        if self.group is not None:
            self.group.resume()
            return
        processes.send_group(self.pid, signal.SIGCONT)
        if not self.isolation.get("calls"):
            processes.send(self._members(), signal.SIGCONT)

    def _look(self) -> None:
        """Raises Ended where it has more memory or processes than it may."""
        if self.group is not None and {"memory", "pids"} <= set(self.group.limits):
            return
        members = self.group.pids() if self.group is not None else list(self._members())
        if len(members) > MAX_PROCESSES:
            raise Ended("call", "processes", f"it has {len(members)} processes, allowed are {MAX_PROCESSES}")
        if self.memory_bytes is None or sum(map(processes.kept_bytes, members)) <= self.memory_bytes:
            return
        exact = sum(processes.kept_bytes(one) if (part := processes.shared_in_part(one)) is None else part
                    for one in members)
        if exact > self.memory_bytes:
            raise Ended("memory", "candidate", f"it holds {exact >> 20} MiB, allowed are {self.memory_bytes >> 20}")

    def _ask(self, data: bytes) -> list:
        if select.select([self._replies], [], [], 0)[0] and not self._data:
            self._data = os.read(self._replies, MAX_REPLY)
            if not self._data:
                self._died()
        if self._data:
            raise Ended("tampered", "protocol", "its process says what was not asked")
        self._send(data)
        return self._reply("finished").get("results", [])

    def _send(self, data: bytes) -> None:
        """It may not read, for as long as it likes: its memory is looked at."""
        os.set_blocking(self._requests, False)
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._requests, left):]
            except BlockingIOError:
                if not select.select([], [self._requests], [], LOOK_SECONDS)[1]:
                    self._look()
            except BrokenPipeError:
                self._died()

    def _reply(self, wanted: str) -> dict:
        return self._understand(self._line(), wanted)

    def _line(self) -> bytes:
        while b"\n" not in self._data:
            while not select.select([self._replies], [], [], LOOK_SECONDS)[0]:
                self._look()
            more = os.read(self._replies, MAX_REPLY)
            if not more:
                self._died()
            self._data += more
            if len(self._data) > MAX_REPLY:
                raise Ended("tampered", "protocol", "its process answers without end")
        line, self._data = self._data.split(b"\n", 1)
        return line

    def _understand(self, line: bytes, wanted: str) -> dict:
        """The answer, where it is of the form that guest.py tells and there is nothing behind it. Raises Ended."""
        try:
            answer = json.loads(line)
            if self._data:
                raise ValueError("more than was asked")
            return _answer(answer, wanted)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise Ended("tampered", "protocol", "its process answers what was not asked: "
                        f"{type(error).__name__}: {str(error)[:200]}") from error

    def _died(self) -> None:
        out_of_memory = self.group is not None and self.group.has_died_of_memory()
        status = self.starter.end(self.pid)
        if out_of_memory:
            raise Ended("memory", "candidate", "the system ended it for its memory")
        how = "by itself" if status is None else \
            f"by signal {signal.Signals(os.WTERMSIG(status)).name}" if os.WIFSIGNALED(status) else \
            f"with exit code {os.WEXITSTATUS(status)}"
        raise Ended("crashed", "candidate", f"its process ended {how}")

    # On CUDA.

    def _prepare_device(self, results: list[Place]) -> None:
        """Nothing of an earlier call is in the L2 cache when the clock begins, not in lines set aside either; outputs
        hold nothing; and nothing of it runs on the device."""
        self._last_places = results
        for place in results:
            poison(place.of(self.memory))
        shapes = [(place.shape, place.dtype) for place in results]
        if [(tuple(one.shape), one.dtype) for one in self._taken] != shapes:
            self._taken = [torch.empty(shape, dtype=dtype, device="cuda") for shape, dtype in shapes]
        torch.cuda.synchronize()
        if not self.trusted and self.idle is not None and not self.idle():
            raise Ended("tampered", "device", "it computes on the device between calls")
        if not all(map(_is_poisoned, (place.of(self.memory) for place in results))):
            raise Ended("tampered", "device", "its results were written before the call")
        ctypes.CDLL("libcuda.so.1").cuCtxResetPersistingL2Cache()
        self._flush.zero_()
        torch.cuda.synchronize()

    def _check_device(self, results: list[Place], written: list[torch.Tensor]) -> None:
        """It is stopped and has said that it is done: nothing of it runs on the device, or writes results."""
        if self.trusted:
            return
        idle = self.idle is None or self.idle()
        if not idle or not all(torch.equal(bits(place.of(self.memory)), bits(one)) for place, one in zip(results, written)):
            raise Ended("tampered", "device", "it said that it was done, and computes on the device")


def _is_poisoned(one: torch.Tensor) -> bool:
    other = torch.empty(min(one.numel(), 1), dtype=one.dtype, device=one.device)
    poison(other)
    size = one.element_size()
    return bool((one.reshape(-1).view(torch.uint8).reshape(-1, size) == other.view(torch.uint8).reshape(-1, size)).all())


def _answer(answer, wanted: str) -> dict:
    """Of a guest, checked. Raises ValueError or Ended."""
    if not isinstance(answer, dict):
        raise ValueError("no object")
    is_so = answer.get("is")
    if is_so in ("refused", "failed") and set(answer) == {"is", "message"} and isinstance(answer["message"], str):
        outcome, reason = ("refused", "load") if is_so == "refused" else ("call", "call")
        if wanted == "finished":
            raise Ended(outcome, reason, answer["message"])
    if wanted == "ready" and is_so == "ready" and set(answer) == {"is", "landlock", "calls"}:
        return {"landlock": int(answer["landlock"]), "calls": bool(answer["calls"])}
    if wanted == "finished" and is_so == "finished" and set(answer) == {"is", "results"} and \
            isinstance(answer["results"], list) and all(map(_is_result, answer["results"])):
        return answer
    raise ValueError(f"{str(is_so)[:40]!r} is no answer")


def _is_result(one) -> bool:
    return isinstance(one, list) and len(one) == 4 and isinstance(one[0], str) and isinstance(one[1], str) and \
        isinstance(one[2], list) and all(type(extent) is int and 0 <= extent < 1 << 62 for extent in one[2]) and \
        type(one[3]) is int and 0 <= one[3] < 1 << 63 and math.prod(one[2]) < 1 << 62


def _message(what: str, **arguments) -> bytes:
    data = dumps((what, arguments))
    return len(data).to_bytes(8, "little") + data
