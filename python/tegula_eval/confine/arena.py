"""Memory that a candidate's process shares with the one that judges it."""
from __future__ import annotations

import fcntl
import io
import mmap
import os
import pickle

import torch

# Types without a class of storage: torch 2.11 writes pickles of them that it cannot read. INSTEAD: by bytes, what carries them.
UNREADABLE = {getattr(torch, name) for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
                                                "float8_e8m0fnu", "float4_e2m1fn_x2", "uint16", "uint32", "uint64")
              if hasattr(torch, name)}
INSTEAD = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Place:
    """Where a tensor lies in the shared memory."""

    def __init__(self, offset: int, shape: tuple[int, ...], dtype: torch.dtype):
        self.offset, self.shape, self.dtype = offset, shape, dtype

    @property
    def bytes(self) -> int:
        size = self.dtype.itemsize
        for extent in self.shape:
            size *= extent
        return size

    def of(self, memory: torch.Tensor) -> torch.Tensor:
        return memory[self.offset:self.offset + self.bytes].view(self.dtype).view(self.shape)


def make(size: int) -> int:
    """A file in memory whose size nobody changes any more, as a descriptor."""
    fd = os.memfd_create("inputs and outputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return fd


def memory_of(fd: int, size: int) -> torch.Tensor:
    """A shared file in memory as bytes."""
    return torch.frombuffer(mmap.mmap(fd, size), dtype=torch.uint8)


class _Pickler(pickle.Pickler):
    def reducer_override(self, one):
        if type(one) is torch.Tensor and one.dtype in UNREADABLE:
            return viewed, (one.detach().view(INSTEAD[one.dtype.itemsize]), one.dtype)
        return NotImplemented


def viewed(one: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return one.view(dtype)


def dumps(value) -> bytes:
    """A pickle of it, whatever the types of its tensors are."""
    data = io.BytesIO()
    _Pickler(data).dump(value)
    return data.getvalue()


def bits(one: torch.Tensor) -> torch.Tensor:
    """Its bytes, which torch compares whatever its type is."""
    return one.detach().contiguous().view(-1).view(torch.uint8)
