"""The process that a candidate runs in: `ModelNew` of a file that somebody else wrote.

It is given the text, the constructor's arguments and parameters, and then, call by call, inputs; it knows neither
seeds nor expected results, has no clock that counts, and is not believed: whatever it says, what counts is what lies
in the memory of the outputs when it has said that it is done (candidates.py).

Messages come as 8 bytes of length and a pickle; each is answered with one line of JSON.
"""
from __future__ import annotations

import importlib.util
import json
import os
import pickle
import sys
from pathlib import Path

import torch
from torch.utils._pytree import tree_flatten, tree_map

from . import confine
from .arena import Place, memory_of


class Guest:
    def __init__(self, folder: Path, arena_fd: int):
        self.folder, self.arena_fd = folder, arena_fd
        self.model = self.memory = None
        self.inputs: list = []
        self.outputs: list[torch.Tensor] = []
        # Held before foreign code could put others in their place.
        self.wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None

    def load(self, text: str, entry: str, init, seed: int, state: dict, target: str, threads: int, memory) -> dict:
        torch.set_num_threads(threads)
        self.memory = memory_of(self.arena_fd, memory) if isinstance(memory, int) else memory[0](*memory[1])
        path = self.folder / "candidate.py"  # Triton reads the text of its functions from the file
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("candidate", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["candidate"] = module
        spec.loader.exec_module(module)
        torch.manual_seed(seed)
        made = getattr(module, entry)
        self.model = made(**init) if isinstance(init, dict) else made(*init)
        lower = {one.dtype for one in state.values()} & {torch.float16, torch.bfloat16}
        if len(lower) == 1:  # as KernelBench does it for a task in such a type
            self.model = self.model.to(lower.pop())
        own = {**self.model.state_dict(), **dict(self.model.named_buffers())}
        agrees = own.keys() == state.keys() and all(own[name].shape == one.shape for name, one in state.items())
        if agrees:
            with torch.no_grad():
                for name, one in state.items():
                    own[name].copy_(one)
        self.model = self.model.to(target)
        self.wait()
        return {"agrees": agrees}

    def take(self, inputs: list, outputs: list[Place]) -> dict:
        self.inputs = tree_map(lambda one: one.of(self.memory) if isinstance(one, Place) else one, inputs)
        self.outputs = [one.of(self.memory) for one in outputs]
        return {}

    def call(self) -> dict:
        with torch.no_grad():
            result = self.model(*self.inputs)
            found = [one if isinstance(one, torch.Tensor) else torch.tensor(one)
                     for one in tree_flatten(result)[0] if one is not None]
            for one in found:
                if type(one) not in (torch.Tensor, torch.nn.Parameter):
                    return {"outcome": "tampered", "reason": "type",
                            "message": f"forward returned a {type(one).__name__}, which may compute later"}
            if len(found) != len(self.outputs):
                return {"outcome": "wrong", "reason": "count",
                        "message": f"forward returned {len(found)} tensors, the module {len(self.outputs)}"}
            for ours, place in zip(found, self.outputs):
                for what, is_so, should in (("shape", list(ours.shape), list(place.shape)),
                                            ("dtype", str(ours.dtype), str(place.dtype))):
                    if is_so != should:
                        return {"outcome": "wrong", "reason": what,
                                "message": f"the result's {what} is {is_so}, the module's {should}"}
            for ours, place in zip(found, self.outputs):
                place.copy_(ours)
        self.wait()
        return {}

    def nothing(self) -> dict:
        """What a call costs beyond what it calls."""
        self.wait()
        return {}


def serve(folder: Path, requests: int, replies: int, arena: int) -> None:
    """Never returns."""
    def read(size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = os.read(requests, min(size - len(data), 1 << 20))
            if not more:
                os._exit(0)
            data += more
        return bytes(data)

    guest = Guest(folder, arena)
    level = confine.confine([folder, Path("/dev")])
    os.write(replies, json.dumps({"landlock": level}).encode() + b"\n")
    while True:
        what, arguments = pickle.loads(read(int.from_bytes(read(8), "little")))
        try:
            answer = getattr(guest, what)(**arguments)
        except Exception as error:
            answer = {"outcome": "refused" if what == "load" else "call", "reason": what,
                      "message": f"{type(error).__name__}: {error}"[:2000]}
        os.write(replies, json.dumps(answer).encode() + b"\n")
