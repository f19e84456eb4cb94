"""Tasks and programs small enough that a test takes well under a second."""
import concurrent.futures
import os
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TREE / "python"))

from tegula_eval.workers import pool  # noqa: E402

OwnPool = pool.Pool


class WarmPool(OwnPool):
    """Keeps workers that are idle at the end for the next command: a worker takes seconds to import torch, and nothing
    of a task or program runs in it. What tests a worker's own start and end makes an OwnPool."""
    kept: list[pool.Worker] = []

    def __init__(self, workers, *limits):
        super().__init__(workers, *limits)
        self._starter.shutdown()
        self._starter = WarmPool.thread
        if any(worker.environment.get("CUDA_VISIBLE_DEVICES") != os.environ.get("CUDA_VISIBLE_DEVICES")
               for worker in self._all):
            return  # not such as are kept
        for place in range(min(len(self._all), len(WarmPool.kept))):
            self._all[place] = WarmPool.kept.pop()
        self._idle.queue[:] = self._all

    def stop(self):
        idle = set(map(id, self._idle.queue))
        for worker in self._all:
            if id(worker) in idle and worker.process is not None and \
                    worker.environment.get("CUDA_VISIBLE_DEVICES") == os.environ.get("CUDA_VISIBLE_DEVICES"):
                WarmPool.kept.append(worker)
            else:
                worker.stop()


@pytest.fixture(scope="session", autouse=True)
def warm_workers():
    WarmPool.thread = concurrent.futures.ThreadPoolExecutor(1)
    pool.Pool = WarmPool
    yield
    pool.Pool = OwnPool
    for worker in WarmPool.kept:
        worker.stop()
    WarmPool.thread.shutdown()

SCALE = '''
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features, factor=0.5, window=None):
        super().__init__()
        self.fc = nn.Linear(features, 2 * features)
        self.factor = factor

    def forward(self, x):
        return torch.relu(self.fc(x)) * self.factor

rows = 1024 * 4
features = 512

def get_inputs():
    return [torch.rand(rows, features)]

def get_init_inputs():
    return [features, 0.25]
'''

RIGHT = '''
kernel scaled(x: f32[M, K], fc_weight: f32[N, K], fc_bias: f32[N], factor: float) -> (y: f32[M, N]) {
  y[i, j] = factor*relu(sum(x[i, k]*fc_weight[j, k] for k) + fc_bias[j])
}
'''


def module(forward: str, inputs: str = "torch.rand(rows, 8)", sizes: str = "rows = 16") -> str:
    """A task without parameters."""
    return f'''
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        {forward}

{sizes}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
'''


@pytest.fixture
def root(tmp_path):
    """A folder of two levels, one task in each."""
    for level, name, text in ((1, "3_Scale", SCALE), (2, "11_Negate", module("return -x"))):
        folder = tmp_path / "tasks" / f"level{level}"
        folder.mkdir(parents=True)
        (folder / f"{name}.py").write_text(text)
    return tmp_path / "tasks"
