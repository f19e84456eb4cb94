"""Whether another process computes on a CUDA device: contexts take turns there, so that a kernel of known length takes
longer beside one that runs."""
from __future__ import annotations

import time

import torch

SECONDS = 6e-3  # several of the time slices that a context is given (about 2 ms)
TRIES = 3


class DeviceIdle:
    """Meant to be made while nothing else computes there."""

    def __init__(self):
        torch.cuda._sleep(1 << 20)
        torch.cuda.synchronize()
        alone = min(self._seconds(1 << 22) for _ in range(3))
        self.cycles = max(1 << 20, int((1 << 22) * SECONDS / alone))
        self.alone = min(self._seconds(self.cycles) for _ in range(5))

    @staticmethod
    def _seconds(cycles: int) -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        torch.cuda._sleep(cycles)
        torch.cuda.synchronize()
        return time.perf_counter() - start

    def __call__(self) -> bool:
        """What slows a kernel down once may be the host; what computes there slows each."""
        return any(self._seconds(self.cycles) < 1.3 * self.alone for _ in range(TRIES))
