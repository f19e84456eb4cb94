"""What the device can do at most, measured where it is asked for."""
from __future__ import annotations

import functools

import torch

from .clock import Clock

COPY_BYTES = {"cuda": 1 << 30, "cpu": 1 << 27}  # well beyond any cache
PRODUCT = {"cuda": 8192, "cpu": 1024}


@functools.cache
def rates(target: str) -> tuple[float, float]:
    """Bytes a second that a copy moves (read and written), and operations a second of a square f32 product without
    TF32, each the best of five."""
    clock = Clock(target)
    source = torch.zeros(COPY_BYTES[target] // 4, device=target)
    copy = torch.empty_like(source)
    moved = min(clock(lambda: copy.copy_(source))[0] for _ in range(5))
    size = PRODUCT[target]
    a, b = torch.randn(size, size, device=target), torch.randn(size, size, device=target)
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        multiplied = min(clock(lambda: a @ b)[0] for _ in range(5))
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    return 2 * COPY_BYTES[target] / moved, 2 * size ** 3 / multiplied


def least_seconds(target: str, moved_bytes: int, flops: int) -> float:
    bandwidth, speed = rates(target)
    return max(moved_bytes / bandwidth, flops / speed)
