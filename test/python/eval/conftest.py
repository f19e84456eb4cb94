"""Tasks and programs small enough that a test takes well under a second."""
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TREE / "python"))

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
