"""Who computes on a device: many that judge, side by side, or one that measures.

Whoever waits to measure keeps others from beginning, so that those who judge side by side come to an end, are then measured
one after the other, and others begin. Two files hold the state, whose locks end with a process that is killed.
"""
from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path


class DeviceTurns:
    """Of one device, for all processes that name the same folder; without a folder nobody waits."""

    def __init__(self, folder: str | None):
        self.folder = folder and Path(folder)

    @contextlib.contextmanager
    def beside_others(self):
        if not self.folder:
            yield
            return
        with self._open("device") as device:
            with self._open("gate") as gate:
                fcntl.flock(gate, fcntl.LOCK_EX)  # not while somebody waits to measure
                fcntl.flock(device, fcntl.LOCK_SH)
            yield

    @contextlib.contextmanager
    def alone(self):
        if not self.folder:
            yield
            return
        with self._open("gate") as gate, self._open("device") as device:
            fcntl.flock(gate, fcntl.LOCK_SH)
            fcntl.flock(device, fcntl.LOCK_EX)
            yield

    def _open(self, name: str):
        """Closing it lets go of its lock."""
        number = os.environ.get("CUDA_VISIBLE_DEVICES", "0").replace(",", "-")
        return open(self.folder / f"{name}-{number}.lock", "a")
