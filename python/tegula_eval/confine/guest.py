"""The process that a candidate runs in: `ModelNew` of a file that somebody else wrote.

It is given the text, the constructor's arguments and parameters, and then, call by call, inputs; it knows neither
seeds nor expected results, has no clock that counts, and is not believed. It says that a call has finished, was refused
or has failed, and where results lie; what counts is what lies there when it has said so (session.py).

Messages come as 8 bytes of length and a pickle; each is answered with one line of JSON:

  {"is": "ready", ...}                                 confined, and by what
  {"is": "finished", "results": [[type, dtype, shape, address], ...]}
  {"is": "refused", "message": ...}                    the file does not run or makes no module
  {"is": "failed", "message": ...}                     forward raises
"""
from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import pickle
import sys
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from ..timing.clock import Clock
from .arena import Place, bits, memory_of

MAX_MESSAGE = 2000
MAX_RESULTS = 1000
ROOM = 4  # of the arena, twice the bytes of inputs and results: what the heap has pages for before the first call


def keep_freed_memory(expected_bytes: int) -> None:
    """From here on glibc takes memory from what was freed, and has so many bytes (at most 1 GiB) whose pages are there.

    By itself it gives large blocks back to the system until it has seen enough of them, and a small block in the place of
    a freed large one sends the next large one to new pages, which take longer than simple arithmetic on them: of alike
    operators in two processes one would find old pages many calls before the other."""
    libc, trim_threshold, mmap_max = ctypes.CDLL(None), -1, -4
    if not hasattr(libc, "mallopt"):  # not glibc
        return
    libc.mallopt(mmap_max, 0)
    libc.mallopt(trim_threshold, -1)
    libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
    size = min(expected_bytes, 1 << 30)
    block = libc.malloc(size)
    if block:
        ctypes.memset(block, 0, size)
        libc.free(block)


class Operators(TorchDispatchMode):
    """Names of torch's operators that run, those of views left out."""

    def __init__(self):
        super().__init__()
        self.names: list[str] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Else torch's compiler is told to skip this, and imported for that: five seconds, in every guest."""
        return False

    def __torch_dispatch__(self, function, types_, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        if not function.is_view and name not in self.names:
            self.names.append(name)
        return function(*args, **(kwargs or {}))


class Guest:
    def __init__(self, folder: Path, arena_fd: int):
        self.folder, self.arena_fd = folder, arena_fd
        self.model = self.memory = None
        self.text = ""
        self.inputs: list = []
        self.outputs: list[torch.Tensor] | None = None
        self.found: list[torch.Tensor] = []
        self.watched: list[str] = []
        self.clock, self.seconds_taken = None, 0.0
        # Held before foreign code could put others in their place.
        self.wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None

    def load(self, text: str, entry: str, init, seed: int, state: dict, drawn: dict, target: str, threads: int,
             memory) -> list:
        """`state`: what the module's parameters and buffers shall be; `drawn`: what those of them were when they were
        drawn that are something else now. Again with the same text, a module of other sizes is made of it."""
        if self.memory is None:
            torch.set_num_threads(threads)
            if target == "cpu":
                keep_freed_memory(ROOM * memory)
            self.memory = memory_of(self.arena_fd, memory) if isinstance(memory, int) else memory[0](*memory[1])
            os.close(self.arena_fd)
        if text != self.text:
            self._run_text(text)
        torch.manual_seed(seed)
        made = getattr(sys.modules["candidate"], entry)
        self.model = made(**init) if isinstance(init, dict) else made(*init)
        lower = {one.dtype for one in state.values()} & {torch.float16, torch.bfloat16}
        if len(lower) == 1:  # as KernelBench does it for a task in such a type
            self.model = self.model.to(lower.pop())
        give(self.model, state, drawn)
        self.model = self.model.to(target)
        self.wait()
        return []

    def _run_text(self, text: str) -> None:
        path = self.folder / "candidate.py"  # Triton reads the text of its functions from the file
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("candidate", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["candidate"] = module
        spec.loader.exec_module(module)
        self.text = text

    def take(self, inputs: list, outputs: list[Place] | None) -> list:
        """`outputs`: where results go; None where they are read where they lie."""
        self.inputs = tree_map(lambda one: one.of(self.memory) if isinstance(one, Place) else one, inputs)
        self.outputs = outputs and [one.of(self.memory) for one in outputs]
        return []

    def call(self) -> list:
        self.found = []
        with torch.no_grad():
            return self._give(self.model(*self.inputs))

    def watch(self) -> list:
        """A call of which `operators` can be asked."""
        self.found, watched = [], Operators()
        with torch.no_grad(), watched:
            value = self.model(*self.inputs)
        self.watched = watched.names
        return self._give(value)

    def time(self) -> list:
        """A call of which `seconds` can be asked."""
        self.found = []
        if self.clock is None:
            self.clock = Clock("cuda" if torch.cuda.is_initialized() else "cpu")
        with torch.no_grad():
            self.seconds_taken, value = self.clock(lambda: self.model(*self.inputs))
            return self._give(value)

    def operators(self) -> list:
        """Names of those of torch's that the last call of `watch` ran, in the form of results."""
        return [[name, "", [], 0] for name in self.watched[:MAX_RESULTS]]

    def seconds(self) -> list:
        """Nanoseconds that the last call of `time` took by its own clock, in the form of a result."""
        return [["", "", [], round(self.seconds_taken * 1e9)]]

    def _give(self, value) -> list:
        with torch.no_grad():
            found = [one if isinstance(one, torch.Tensor) else torch.tensor(one)
                     for one in tree_flatten(value)[0] if one is not None][:MAX_RESULTS]
            if self.outputs is None:
                self.found = [one if one.is_contiguous() or type(one) not in PLAIN else one.contiguous() for one in found]
                return [tell(one) for one in self.found]
            if len(found) == len(self.outputs) and all(
                    type(one) in PLAIN and one.shape == place.shape and one.dtype == place.dtype
                    for one, place in zip(found, self.outputs)):
                for one, place in zip(found, self.outputs):
                    place.copy_(one)
        self.wait()
        return [tell(one) for one in found]

    def nothing(self) -> list:
        """What a call costs beyond what it calls."""
        self.wait()
        return []


PLAIN = (torch.Tensor, torch.nn.Parameter)


def tell(one: torch.Tensor) -> list:
    if type(one) not in PLAIN:
        return [type(one).__name__, "", [], 0]
    return ["Tensor", str(one.dtype), list(one.shape), one.data_ptr() if one.device.type == "cpu" else 0]


def give(model: torch.nn.Module, state: dict[str, torch.Tensor], drawn: dict[str, torch.Tensor]) -> None:
    """Sets parameters and buffers: those of a name and shape in `state` from there; of the others those that are what
    one of the module's, for which there is no such name, was when it was drawn (`drawn`), whatever they are called and
    however they are shaped: first with the same last part of the name (`weight`), then in their order."""
    own = {**model.state_dict(), **dict(model.named_buffers())}
    for path, part in model.named_modules():
        for name, one in vars(part).items():
            if isinstance(one, torch.Tensor):
                own.setdefault(f"{path}.{name}" if path else name, one)
    left = dict(drawn)
    with torch.no_grad():
        for name, one in list(own.items()):
            if name in state and one.shape == state[name].shape:
                one.copy_(state[name])
                left.pop(name, None)
                del own[name]
        for by_name in (True, False):
            for theirs, first in list(left.items()):
                for name, one in own.items():
                    if by_name and name.rpartition(".")[2] != theirs.rpartition(".")[2] or \
                            one.numel() != first.numel() or one.dtype != first.dtype or \
                            not torch.equal(bits(one), bits(first)):
                        continue
                    one.copy_(state[theirs].reshape(one.shape))
                    del own[name], left[theirs]
                    break


def serve(folder: Path, requests: int, replies: int, arena: int, confined: dict) -> None:
    """Never returns."""
    def read(size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = os.read(requests, min(size - len(data), 1 << 20))
            if not more:
                os._exit(0)
            data += more
        return bytes(data)

    ctypes.CDLL(None).prctl(0x59616D61, -1, 0, 0, 0)  # PR_SET_PTRACER, ANY: results are read from outside
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE
    guest = Guest(folder, arena)
    os.write(replies, json.dumps({"is": "ready", **confined}).encode() + b"\n")
    while True:
        data, what = read(int.from_bytes(read(8), "little")), ""
        try:
            what, arguments = pickle.loads(data)
            answer = {"is": "finished", "results": getattr(guest, what)(**arguments)}
        except BaseException as error:  # SystemExit and KeyboardInterrupt are as good as any
            answer = {"is": "refused" if what == "load" else "failed",
                      "message": f"{type(error).__name__}: {error}"[:MAX_MESSAGE]}
        os.write(replies, json.dumps(answer).encode() + b"\n")
