"""A candidate's process as seen from outside: starts it, stops it, gives it inputs, takes outputs, holds the clock.

Between calls every process of the candidate is stopped. The inputs of a call are written while it is, so that none
is known before the clock runs; the outputs, filled with NaN before, are copied away when it says that it is done
and is stopped again. What it computes later, or said that it had computed, does not count.
"""
from __future__ import annotations

import ctypes
import json
import os
import pickle
import signal
import tempfile
import time

import torch
from torch.utils._pytree import tree_map

from . import processes
from .arena import Place, memory_of
from .clock import FLUSH_BYTES
from .runner import poison
from .starter import Starter

MAX_REPLY = 64 << 10
ALIGN = 256


class Ended(Exception):
    """A candidate did not do what it should: an outcome, as in a record."""

    def __init__(self, outcome: str, reason: str, message: str):
        super().__init__(message)
        self.outcome, self.reason = outcome, reason


class Session:
    """`arena_bytes`: of the memory for inputs and outputs. One at a time, and one call at a time; `close` ends all
    that the candidate has started."""

    def __init__(self, starter: Starter, target: str, arena_bytes: int):
        self.starter, self.target = starter, target
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._arena = os.memfd_create("inputs and outputs", os.MFD_CLOEXEC)
        size = max(arena_bytes, ALIGN)
        if target == "cuda":
            self.memory = torch.zeros(size, dtype=torch.uint8, device="cuda")
            self._shared = torch.multiprocessing.reductions.reduce_tensor(self.memory)
            self._flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
        else:
            os.ftruncate(self._arena, size)
            self.memory = memory_of(self._arena, size)
            self._shared = size
        requests, self._requests = os.pipe()
        self._replies, replies = os.pipe()
        self._data = b""
        try:
            self.pid = starter.start(self.folder.name, requests, replies, self._arena)
        finally:
            os.close(requests)
            os.close(replies)
        self._known = [self.pid]
        self.landlock = self._reply().get("landlock", 0)

    def load(self, text: str, entry: str, init, seed: int, state: dict[str, torch.Tensor], threads: int) -> bool:
        """Makes the module. Whether it has the parameters and buffers of `state`, which it then is given; otherwise
        it has drawn its own from `seed`. Raises Ended."""
        state = {name: one.cpu() for name, one in state.items()}
        return bool(self._ask("load", text=text, entry=entry, init=init, seed=seed, state=state, target=self.target,
                              threads=threads, memory=self._shared).get("agrees"))

    def places(self, tensors: list[torch.Tensor], start: int = 0) -> tuple[list[Place], int]:
        found = []
        for one in tensors:
            place = Place(start, tuple(one.shape), one.dtype)
            found.append(place)
            start = -(-(start + place.bytes) // ALIGN) * ALIGN
        return found, start

    def call(self, inputs: list, outputs: list[torch.Tensor]) -> tuple[float, list[torch.Tensor], bool]:
        """Seconds, the outputs, and whether the inputs are still what they were. `outputs`: tensors (on the meta
        device) of the shapes and types that are expected. Raises Ended."""
        given: list[torch.Tensor] = []
        tree_map(lambda one: given.append(one) if isinstance(one, torch.Tensor) else None, inputs)
        theirs, end = self.places(given)
        results, end = self.places(outputs, end)
        if end > self.memory.numel():
            raise Ended("failed", "arena", f"a call needs {end} bytes, there are {self.memory.numel()}")
        numbered = iter(theirs)
        self._ask("take", inputs=tree_map(lambda one: next(numbered) if isinstance(one, torch.Tensor) else one, inputs),
                  outputs=results)
        self._stop()
        for place, one in zip(theirs, given):
            place.of(self.memory).copy_(one)
        for place in results:
            poison(place.of(self.memory))
        self._clear_cache()
        self._wait()
        seconds = self._timed("call")
        written = [place.of(self.memory).clone() for place in results]
        self._wait()
        same = all(torch.equal(place.of(self.memory).view(-1).view(torch.uint8),
                               one.contiguous().view(-1).view(torch.uint8)) for place, one in zip(theirs, given))
        self._resume()
        return seconds, written, same

    def nothing(self) -> float:
        """Seconds that a call takes beyond what it calls."""
        self._stop()
        seconds = self._timed("nothing")
        self._resume()
        return seconds

    def close(self) -> int | None:
        """The status that its process ended with, as of os.waitpid."""
        status = self.starter.end()
        for one in (self._requests, self._replies, self._arena):
            os.close(one)
        self.folder.cleanup()
        return status

    def _timed(self, what: str) -> float:
        """From a stopped process to a stopped process."""
        data = _message(what)
        start = time.perf_counter()
        self._resume()
        self._send(data)
        line = self._line()
        processes.send(self._known, signal.SIGSTOP)
        seconds = time.perf_counter() - start  # what it did up to now counts, whatever it said before
        self._understand(line)
        return seconds

    def _stop(self) -> None:
        """All of its processes, those too that were started while it looked."""
        before = None
        while self._known != before:
            before = self._known
            processes.send(before, signal.SIGSTOP)
            self._known = processes.descendants(self.starter.pid)

    def _resume(self) -> None:
        processes.send(self._known, signal.SIGCONT)

    def _clear_cache(self) -> None:
        """Nothing of an earlier call is in a GPU's L2 cache when the clock begins, not in lines set aside either."""
        if self.target == "cuda":
            ctypes.CDLL("libcuda.so.1").cuCtxResetPersistingL2Cache()
            self._flush.zero_()

    def _wait(self) -> None:
        if self.target == "cuda":
            torch.cuda.synchronize()

    def _ask(self, what: str, **arguments) -> dict:
        self._send(_message(what, **arguments))
        return self._reply()

    def _send(self, data: bytes) -> None:
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(self._requests, left):]
        except BrokenPipeError:
            self._died()

    def _reply(self) -> dict:
        return self._understand(self._line())

    def _line(self) -> bytes:
        while b"\n" not in self._data:
            more = os.read(self._replies, MAX_REPLY)
            if not more:
                self._died()
            self._data += more
            if len(self._data) > MAX_REPLY:
                raise Ended("tampered", "protocol", "its process answers without end")
        line, self._data = self._data.split(b"\n", 1)
        return line

    def _understand(self, line: bytes) -> dict:
        try:
            answer = json.loads(line)
            if not isinstance(answer, dict) or self._data:
                raise ValueError("more than was asked")
            if "outcome" in answer:
                ended = Ended(*(str(answer[name])[:4000] for name in ("outcome", "reason", "message")))
            else:
                return answer
        except (ValueError, KeyError) as error:
            raise Ended("tampered", "protocol", f"its process answers what was not asked: {error}") from error
        if ended.outcome == "right":
            raise Ended("tampered", "protocol", "its process says that it is right")
        raise ended

    def _died(self) -> None:
        status = self.starter.end()
        how = "by itself" if status is None else \
            f"by signal {signal.Signals(os.WTERMSIG(status)).name}" if os.WIFSIGNALED(status) else \
            f"with exit code {os.WEXITSTATUS(status)}"
        raise Ended("crashed", "candidate", f"its process ended {how}")


def _message(what: str, **arguments) -> bytes:
    data = pickle.dumps((what, arguments))
    return len(data).to_bytes(8, "little") + data
