"""Shared by the tests: programs, devices."""
import pytest
import torch

import tegula

SCALE = "kernel scale(x: f32[M, N], s: f32) -> (y: f32[M, N]) { y[i, j] = s * x[i, j] }"
LINEAR = """
kernel linear(x: T[..., K], w: T[N, K], b: T[N] = 0, factor: int = 1, step: int[2] = 1) -> (y: T[..., N]) {
  y[..., n] = factor * step[0] * sum(x[..., k] * w[n, k] for k) + b[n]
}
"""


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs a CUDA device that torch sees")


def pytest_collection_modifyitems(items):
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="torch sees no CUDA device")
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    return request.param


@pytest.fixture(scope="session")
def scale():
    return tegula.compile(SCALE)


@pytest.fixture(scope="session")
def linear():
    return tegula.compile(LINEAR)
