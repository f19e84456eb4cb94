"""Every kernel of bench/real, at its small sizes, is what its reference computes in float64: on the CPU and as device code.

TEGULA_REAL_CLASS names one class of kernels: CTest has a test for each. TEGULA_COMMAND is the program that emulates device code.
"""
import os
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(TREE / "bench"), str(TREE / "python")]

from real import judge, suite  # noqa: E402

COMMAND = os.environ.get("TEGULA_COMMAND", str(TREE / "build/dev/bin/tegula"))
GROUP = os.environ.get("TEGULA_REAL_CLASS")
KERNELS = [kernel for kernel in suite.load().values() if GROUP in (None, kernel.group)]


@pytest.mark.parametrize("kernel", KERNELS, ids=[f"{kernel.group}/{kernel.name}" for kernel in KERNELS])
@pytest.mark.parametrize("target", ["cpu", "emulate"])
def test_small_sizes(kernel, target):
    errors, right = judge.check(kernel, kernel.case(suite.Data("cpu", seed=1), small=True), target, COMMAND)
    assert right, errors


@pytest.mark.parametrize("kernel", KERNELS, ids=[f"{kernel.group}/{kernel.name}" for kernel in KERNELS])
def test_reference_in_its_own_types(kernel):
    errors, right = judge.check_reference(kernel, kernel.case(suite.Data("cpu", seed=1), small=True))
    assert right, errors
