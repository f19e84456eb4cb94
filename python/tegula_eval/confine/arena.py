"""Memory that a candidate's process shares with the one that judges it."""
from __future__ import annotations

import fcntl
import mmap
import os

import torch


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
