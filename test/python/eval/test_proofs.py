"""Programs held against modules by `tegula prove`, asked from Python: `--certify`, and bench/kernelbench/prove.py."""
import importlib.util
import json
import subprocess
import sys

import pytest
from conftest import RIGHT, SCALE, TREE, module

from tegula_eval.judge.evaluate import evaluate
from tegula_eval.program import library
from tegula_eval.proofs.certify import certify, small_variants
from tegula_eval.workers import pool

try:
    library.command_path()
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)

DROPPED = module("return torch.nn.functional.dropout(x)")
NORM = module("return torch.nn.functional.layer_norm(x, (24,)) * 2", "torch.rand(rows, 24)")
NORMED = """kernel normed(x: f32[M, N]) -> (y: f32[M, N]) {
  h[i, j] = x[i, j] - mean(x[i, k] for k)
  y[i, j] = 2*h[i, j]*rsqrt(mean(h[i, k]*h[i, k] for k) + 1e-5)
}"""


def certified(task, program):
    return certify(program, lambda: small_variants(task), small_variants(task)[0])


def test_equal_at_sizes_that_are_drawn():
    proof = certified(SCALE, RIGHT)
    assert proof["verdict"] == "equal on points" and proof["says"].startswith("equal for all inputs of these sizes"), proof["reason"]
    assert not proof["fixed"] and len(proof["sizes"]) > 3
    assert {"M", "K", "N"} <= set(proof["sizes"][0])


@pytest.mark.parametrize("old, new", [("relu(", "("), ("factor*relu", "0.2501*relu"), ("fc_bias[j]", "fc_bias[0]")])
def test_wrong(old, new):
    proof = certified(SCALE, RIGHT.replace(old, new))
    assert (proof["verdict"], proof["says"]) == ("not equal", "not equal")
    assert "counterexample" in proof["certificates"][0]["equal"]


LAYERS = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv1d(channels, channels, 3, padding=1, groups=channels)
        self.norm = nn.LayerNorm(channels)

    def forward(self, x):
        return self.norm(self.depthwise(x).transpose(1, 2))

rows, channels, steps = 8, 64, 16

def get_inputs():
    return [torch.rand(rows, channels, steps)]

def get_init_inputs():
    return [channels]
"""
LAYERED = """kernel layers(x: f32[B, C, T], depthwise_weight: f32[C, 1, 3], depthwise_bias: f32[C], norm_weight: f32[C],
              norm_bias: f32[C]) -> (y: f32[B, T, C]) {
  z[b, t in T, i in C] = sum(x[b, i, t + r - 1, fill=0] * depthwise_weight[i, 0, r] for r) + depthwise_bias[i]
  v[b, t, j] = z[b, t, j] - mean(z[b, t, k] for k)
  y[b, t, j] = v[b, t, j]*rsqrt(mean(v[b, t, k]*v[b, t, k] for k) + 1e-5)*norm_weight[j] + norm_bias[j]
}"""


def test_layers_whose_widths_follow_their_parameters():
    """A depthwise convolution's groups and a norm's widths."""
    proof = certified(LAYERS, LAYERED)
    assert proof["verdict"] == "equal on points" or proof["verdict"] == "equal", proof["reason"]
    assert len({one["C"] for one in proof["sizes"]}) > 1
    wrong = certified(LAYERS, LAYERED.replace("t + r - 1", "t + r - 2"))
    assert wrong["verdict"] == "not equal", wrong["reason"]


def test_a_tensor_that_forward_changes():
    task = module("self.kept.copy_(x)\n        self.kept += 1\n        self.kept = self.kept * x\n        return self.kept").replace(
        "    def forward", "    def __init__(self):\n        super().__init__()\n"
        "        self.kept = torch.rand(rows, 8)\n\n    def forward")
    proof = certified(task, "kernel k(x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = (x[i, j] + 1)*x[i, j] }")
    assert proof["verdict"] == "equal", proof["reason"]


def test_equal_at_a_modules_own_sizes():
    """Which takes no others."""
    proof = certified(NORM, NORMED)
    assert proof["verdict"] == "equal" and proof["fixed"], proof["reason"]
    assert all(one["N"] == 24 for one in proof["sizes"])
    assert certified(NORM, NORMED.replace("1e-5", "2e-5"))["verdict"] == "not equal"


def test_random_modules_are_undecided():
    proof = certified(DROPPED, "kernel same(x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = x[i, j] }")
    assert proof["verdict"] == "undecided" and "random" in proof["reason"]


def test_a_certificate_is_repeated_by_the_command(tmp_path):
    proof = certified(SCALE, RIGHT)
    (tmp_path / "cert.json").write_text(json.dumps(proof["certificates"][0]))
    (tmp_path / "program.tgl").write_text(RIGHT)
    (tmp_path / "ref.py").write_text(proof["reference"])

    def check():
        return subprocess.run([library.command_path(), "prove", "--check=cert.json", "program.tgl", "--against=ref.py"],
                              cwd=tmp_path, capture_output=True, text=True, env={"TEGULA_PYTHON": sys.executable})
    assert check().stdout.startswith("the certificate holds: equal on points"), check().stderr
    (tmp_path / "program.tgl").write_text(RIGHT.replace("relu", ""))
    assert check().returncode == 4


def test_a_strangers_submission():
    """In a worker, where the task is confined."""
    workers = pool.Pool(1, 120, 8 << 30)
    try:
        outcome = workers.judge({"task": SCALE, "program": RIGHT, "secret": "s", "seeds": 1, "bytes": 1 << 16, "flops": 1 << 20,
                                 "certify": True, "is_foreign": True})
    finally:
        workers.stop()
    assert outcome["kind"] == "done", outcome
    assert outcome["answer"]["proof"]["verdict"] == "equal on points", outcome["answer"]["proof"]["reason"]


def test_what_is_wrong_is_not_asked():
    record = evaluate({"task": SCALE, "program": RIGHT.replace("relu(", "("), "secret": "s", "seeds": 1, "bytes": 1 << 16,
                       "flops": 1 << 20, "certify": True})
    assert record["outcome"] == "wrong" and "proof" not in record


def test_the_script_of_kernelbench(tmp_path, root, monkeypatch, capsys):
    (tmp_path / "level1").mkdir()
    (tmp_path / "level1" / "3_Scale.tgl").write_text(RIGHT)
    monkeypatch.setattr(sys, "argv", ["prove.py", f"--root={root}", f"--programs={tmp_path}", "--level=1", f"--out={tmp_path / 'out'}"])
    place = importlib.util.spec_from_file_location("prove_script", TREE / "bench/kernelbench/prove.py")
    script = importlib.util.module_from_spec(place)
    place.loader.exec_module(script)
    assert script.main() == 0
    told = capsys.readouterr().out
    assert "level1/3_Scale: equal on points" in told and "| 1 | 1 | 0 | 1 | 0 | 0 | 0 |" in told
