"""The clock for a call: two events on CUDA, the processor's clock on the CPU."""
from __future__ import annotations

import time
from typing import Callable

import torch

FLUSH_BYTES = 256 << 20


class Clock:
    def __init__(self, target: str):
        self.cuda = target == "cuda"
        if self.cuda:
            self.flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
            self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def __call__(self, function: Callable) -> tuple[float, object]:
        """Seconds, and what it returned."""
        if not self.cuda:
            start = time.perf_counter()
            result = function()
            return time.perf_counter() - start, result
        torch.cuda.synchronize()
        self.flush.zero_()  # while it runs, the host queues what follows: its own time is not the device's
        self.begin.record()
        result = function()
        self.end.record()
        torch.cuda.synchronize()  # of the whole device: work on another stream counts
        return self.begin.elapsed_time(self.end) * 1e-3, result
