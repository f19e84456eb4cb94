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
