"""The adapters by name."""
from __future__ import annotations

from . import flashinfer_bench, kernelbench
from .suite import Suite

SUITES: dict[str, Suite] = {one.SUITE.name: one.SUITE for one in (kernelbench, flashinfer_bench)}
