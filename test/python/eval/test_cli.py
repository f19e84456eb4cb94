"""The command as it is used: runs, resumed runs, broken tasks and stores."""
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import RIGHT, SCALE, TREE, module

from tegula_eval import cli
from tegula_eval.commands import exit_codes
from tegula_eval.program import runner
from tegula_eval.records import summary

try:
    runner.library_path()
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)

NEGATE = "kernel negate(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = -x[i, j] }"


@pytest.fixture
def programs(tmp_path):
    for level, name, text in ((1, "3_Scale", RIGHT), (2, "11_Negate", NEGATE)):
        folder = tmp_path / "programs" / f"level{level}"
        folder.mkdir(parents=True)
        (folder / f"{name}.tgl").write_text(text)
    return tmp_path / "programs"


def arguments(root, programs, out, *more):
    return ["kernelbench", f"--root={root}", f"--programs={programs}", f"--out={out}", "--plain", "--bytes=64K",
            "--flops=1e6", *more]


def lines(out):
    return [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]


def test_run_then_resume(root, programs, tmp_path, capsys):
    out = tmp_path / "out"
    assert cli.main(arguments(root, programs, out)) == 0
    assert "2 of    2 right" in capsys.readouterr().out
    assert [(one["task"], one["outcome"]) for one in lines(out)] == [("level1/3_Scale", "right"),
                                                                     ("level2/11_Negate", "right")]
    (programs / "level2" / "11_Negate.tgl").write_text(NEGATE.replace("-x", "x"))
    assert cli.main(arguments(root, programs, out)) == 1
    told = capsys.readouterr().out
    assert "level2/11_Negate: wrong (value)" in told and "level1/3_Scale" not in told
    assert len(lines(out)) == 3
    assert json.loads((out / "summary.json").read_text())["all"]["outcomes"] == {"right": 1, "wrong": 1}


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_lower_precision(root, programs, tmp_path, dtype):
    """Parameters and inputs have the type, the reference is float64, and what rounds more than the module is wrong."""
    generic = RIGHT.replace("f32", "T")
    (programs / "level1" / "3_Scale.tgl").write_text(generic)
    assert cli.main(arguments(root, programs, tmp_path / "out", f"--dtype={dtype}")) == exit_codes.NOT_RIGHT
    right, refused = lines(tmp_path / "out")
    assert (right["task"], right["outcome"]) == ("level1/3_Scale", "right"), right
    assert right["kernels"][0]["settings"]["T"] == dtype and 1e-5 < right["cases"][0]["error"]["norm"] < 1e-2
    assert (refused["outcome"], refused["reason"]) == ("call", "C0002")  # f32 stands in it
    wrong = generic.replace("+ fc_bias[j]", "+ fc_bias[j]*1.02")
    (programs / "level1" / "3_Scale.tgl").write_text(wrong)
    assert cli.main(arguments(root, programs, tmp_path / "out", f"--dtype={dtype}", "--level=1")) == exit_codes.NOT_RIGHT
    assert lines(tmp_path / "out")[-1]["outcome"] == "wrong"


def test_candidates_in_lower_precision(root, tmp_path):
    """They are made in float32, and brought to the type as KernelBench does it."""
    (tmp_path / "3_Scale.py").write_text(SCALE.replace("class Model(", "class ModelNew("))
    command = ["kernelbench", f"--root={root}", f"--candidates={tmp_path}", f"--out={tmp_path / 'out'}", "--plain",
               "--bytes=64K", "--flops=1e6", "--dtype=bf16", "--time", "--timed-turns=2"]
    assert cli.main(command) == exit_codes.RIGHT, lines(tmp_path / "out")
    assert "bfloat16" in lines(tmp_path / "out")[0]["request"]["task"]
    (tmp_path / "3_Scale.py").write_text(SCALE.replace("class Model(", "class ModelNew(").replace(
        "torch.relu(self.fc(x))", "torch.relu(self.fc(x))*1.02"))
    assert cli.main(command) == exit_codes.NOT_RIGHT


def test_one_bad_task_does_not_stop_the_others(root, programs, tmp_path):
    out = tmp_path / "out"
    for name, text in (("1_broken", "def"),
                       ("4_eats", module("return torch.ones(1 << 36) + x", "torch.rand(2, 2)").replace(
                           "import torch", "import torch\nkept = bytearray(5 << 30)")),
                       ("5_dies", "import os\nos.kill(os.getpid(), 11)"),
                       ("6_exits", "raise SystemExit(0)")):
        (root / "level1" / f"{name}.py").write_text(text)
        (programs / "level1" / f"{name}.tgl").write_text(NEGATE)
    assert cli.main(arguments(root, programs, out, "--deadline=200", "--memory=2G", "--jobs=2")) == 1
    found = {one["task"].split("/")[1]: one["outcome"] for one in lines(out)}
    assert found == {"1_broken": "task", "4_eats": "memory", "5_dies": "crashed",
                     "6_exits": "crashed", "3_Scale": "right", "11_Negate": "right"}


def test_deadline(root, programs, tmp_path):
    (root / "level1" / "3_Scale.py").write_text("import time\ntime.sleep(600)")
    for deadline in (0.5, 4, 32):  # on a busy machine it may not get so far in the first
        out = tmp_path / f"out{deadline}"
        command = arguments(root, programs, out, f"--deadline={deadline}", "--level=1")
        assert cli.main(command) == 1
        (outcome, reason), = [(one["outcome"], one["reason"]) for one in lines(out)]
        if reason == "variants":
            break
    assert (outcome, reason) == ("timeout", "variants")
    assert cli.main(command) == 1 and len(lines(out)) == 1
    assert cli.main([*command, "--retry=timeout"]) == 1 and len(lines(out)) == 2


def test_killed_in_the_middle(root, programs, tmp_path):
    out = tmp_path / "out"
    (root / "level1" / "9_slow.py").write_text(
        SCALE.replace("import torch\n", "import torch, time\ntime.sleep(2)\n", 1))
    (programs / "level1" / "9_slow.tgl").write_text(RIGHT)
    process = subprocess.Popen([sys.executable, "-m", "tegula_eval", *arguments(root, programs, out)],
                               env={**os.environ, "PYTHONPATH": str(TREE / "python")}, stdout=subprocess.DEVNULL)
    for _ in range(4000):
        if (out / "results.jsonl").exists() and (out / "results.jsonl").read_bytes().count(b"\n") == 1:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = lines(out)
    assert len(before) == 1
    for _ in range(600):  # the killed run's children hold its lock until they notice
        code = cli.main(arguments(root, programs, out))
        if code != exit_codes.STOPPED:
            break
        time.sleep(0.1)
    assert code == 0
    after = lines(out)
    assert after[0] == before[0] and sorted(one["task"] for one in after) == \
        ["level1/3_Scale", "level1/9_slow", "level2/11_Negate"]


def test_wrong_arguments(root, programs, tmp_path, capsys):
    assert cli.main(arguments(tmp_path / "absent", programs, tmp_path / "out")) == exit_codes.WRONG_CALL
    (tmp_path / "empty").mkdir()
    assert cli.main(arguments(root, tmp_path / "empty", tmp_path / "out")) == exit_codes.WRONG_CALL
    assert "no program for any of 2 tasks" in capsys.readouterr().err


def test_store_that_cannot_be_used(root, programs, tmp_path, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "run.json").write_text("{")
    assert cli.main(arguments(root, programs, tmp_path / "out")) == exit_codes.STOPPED
    assert "is damaged" in capsys.readouterr().err


def test_fast_p_counts_failures():
    def record(outcome, ratio, names=iter("abcd")):
        return {"task": next(names), "outcome": outcome, "reason": "", "level": 1, "flags": [],
                "timing": ratio and {"eager_s": 1.0, "eager_ratio": ratio}}
    told = summary.summarize([record("right", 2.0), record("right", 0.6), record("wrong", 9.0), record("task", None)])
    fast = told["all"]["eager"]["fast_p"]
    assert (fast["0"], fast["0.5"], fast["1"], fast["2"]) == (0.5, 0.5, 0.25, 0)
    assert told["all"]["right"] == 2
    assert told["all"]["eager"]["geometric_mean"] == pytest.approx((2.0 * 0.6 * 1e-4) ** 0.25)
