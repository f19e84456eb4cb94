"""The adapters by name."""
from __future__ import annotations

from . import (backendbench, flashinfer_bench, kernelbench, kernelbench_com, multikernelbench, robust_kbench, sol_execbench,
               tritonbench)
from .suite import Suite

SUITES: dict[str, Suite] = {one.SUITE.name: one.SUITE for one in (
    kernelbench, flashinfer_bench, sol_execbench, kernelbench_com, backendbench, robust_kbench, multikernelbench, tritonbench)}
