"""Programs held against modules by `tegula prove`, asked from Python: `--certify`, and bench/kernelbench/prove.py."""
import importlib.util
import json
import subprocess
import sys

import pytest
from conftest import RIGHT, SCALE, TREE, module

from tegula_eval.judge.evaluate import evaluate
from tegula_eval.program import library
from tegula_eval.proofs import trace
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


RECURRENT = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.first = nn.LSTM(inputs, hidden, batch_first=True)
        self.second = nn.GRU(inputs, hidden, batch_first=True)

    def forward(self, x, h0, c0):
        lasts = self.first(x, (h0, c0))[1]
        return lasts[0], lasts[1], self.second(x, h0)[0]

rows, steps, inputs, hidden = 8, 4, 16, 32

def get_inputs():
    return [torch.rand(rows, steps, inputs), torch.rand(1, rows, hidden), torch.rand(1, rows, hidden)]

def get_init_inputs():
    return [inputs, hidden]
"""
RECURRENCE = """kernel layers(x: f32[B, T, I], h0: f32[1, B, H], c0: f32[1, B, H],
              first_weight_ih_l0: f32[4*H, I], first_weight_hh_l0: f32[4*H, H], first_bias_ih_l0: f32[4*H],
              first_bias_hh_l0: f32[4*H], second_weight_ih_l0: f32[3*H, I], second_weight_hh_l0: f32[3*H, H],
              second_bias_ih_l0: f32[3*H], second_bias_hh_l0: f32[3*H])
  -> (hn: f32[1, B, H], cn: f32[1, B, H], y: f32[B, T, H]) {
  h[b, j] = h0[0, b, j]
  c[b, j] = c0[0, b, j]
  all, last, cell = lstm(x, h, c, first_weight_ih_l0, first_weight_hh_l0, first_bias_ih_l0, first_bias_hh_l0, batch_first=true)
  hn[l in 1, b, j] = last[b, j]
  cn[l in 1, b, j] = cell[b, j]
  xt[t, b, i] = x[b, t, i]
  yt, end = gru(xt, h, second_weight_ih_l0, second_weight_hh_l0, second_bias_ih_l0, second_bias_hh_l0)
  y[b, t, j] = yt[t, b, j]
}"""


def test_recurrent_layers_and_their_last_states():
    """Several steps: gates within gates, whose sigmoids PyTorch writes in another way."""
    proof = certified(RECURRENT, RECURRENCE)
    assert proof["verdict"] == "equal on points", proof["reason"]
    assert max(one["T"] for one in proof["sizes"]) > 1
    wrong = certified(RECURRENT, RECURRENCE.replace("cn[l in 1, b, j] = cell", "cn[l in 1, b, j] = last"))
    assert wrong["verdict"] == "not equal", wrong["reason"]


ATTENTION = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        for _ in range(2):
            x = nn.functional.scaled_dot_product_attention(x, x, x, scale=0.25)
            x = (x - x.mean(-1, keepdim=True)) * torch.rsqrt(x.var(-1, keepdim=True, correction=0) + 1e-5)
        return x

rows, steps, width = 2, 8, 16

def get_inputs():
    return [torch.rand(rows, steps, width)]

def get_init_inputs():
    return []
"""
ATTENDED = """kernel layer(x: f32[B, T, C]) -> (y: f32[B, T, C]) {
  p[b, i, j in T] = softmax(sum(x[b, i, c]*x[b, j, c] for c)/4, over=j)
  z[b, i, c] = sum(p[b, i, j]*x[b, j, c] for j)
  v[b, i, c] = z[b, i, c] - mean(z[b, i, k] for k)
  y[b, i, c] = v[b, i, c]*rsqrt(mean(v[b, i, k]*v[b, i, k] for k) + 1e-5)
}

kernel twice(x: f32[B, T, C]) -> (y: f32[B, T, C]) {
  z = layer(x)
  y = layer(z)
}"""


def test_attention_without_a_mask():
    """Rows of which all scores are -inf, which PyTorch asks for, are not among finite data."""
    proof = certified(ATTENTION, ATTENDED)
    assert proof["verdict"] == "equal on points", proof["reason"]


def test_a_kernel_of_the_modules_own_width():
    """A padding that follows from it: other widths have other results, and are not asked for in the end."""
    task = LAYERS.replace("padding=1", "padding=3 // 2")
    text = LAYERED.replace("f32[C, 1, 3]", "f32[C, 1, K]").replace("t + r - 1", "t + r - K//2")
    proof = certified(task, text)
    assert proof["verdict"].startswith("equal"), proof["reason"]
    assert all(one["K"] == 3 for one in proof["sizes"])


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


LARGE = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(256, 256), torch.nn.Linear(256, 256)
        torch.nn.init.kaiming_uniform_(self.second.weight)
        {more}

_model = Model()
_given = {given}
"""


@pytest.mark.parametrize("given, more, counts", [
    (["first.weight", "second.weight"], "", False), (["first.weight"], "", True), ([], "", True),
    (["first.weight", "second.weight"], "self.scale = float(self.first.weight.abs().max())", True),
    (["first.weight", "second.weight"], "self.register_buffer('copy', self.first.weight.data.clone())", True)])
def test_large_parameters_are_drawn_where_they_count(given, more, counts):
    text = LARGE.format(given=given, more=more)
    with trace.Undrawn() as undrawn:
        space = {}
        exec(text, space)
    assert len(undrawn.left) == 2 and undrawn.holds(space["_model"], given) != counts
    weights = [layer.weight for layer in (lambda model: (model.first, model.second))(trace.run_module(text, "large.py")["_model"])]
    assert not counts or all(float(weight.abs().max()) < 1 and float(weight.std()) > 0.01 for weight in weights)


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
