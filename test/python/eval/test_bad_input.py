"""What is wrong with one task, one program or the machine is told as an outcome; the run goes on and loses nothing."""
import json
import os
import resource
import subprocess
import sys

import pytest
from conftest import RIGHT, TREE, module

from tegula_eval import cli
from tegula_eval.commands import exit_codes
from tegula_eval.model import conversation
from tegula_eval.program import runner
from tegula_eval.records.store import Store

try:
    runner.library_path()
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)

NEGATE = "kernel negate(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = -x[i, j] }"
SMALL = ["--plain", "--bytes=64K", "--flops=1e6"]

BAD = {"1_syntax": (b"def", "task", "broken"),
       "2_bytes": (b"\xff\xfe\x00\x01", "task", "unreadable"),
       "3_empty": (b"", "task", "broken"),
       "4_nul": (b"import torch\0", "task", "broken"),
       "5_raises": (b"raise ValueError('no')", "task", "broken"),
       "6_no_inputs": (module("return -x").replace("def get_inputs", "def inputs").encode(), "task", "broken"),
       "7_deep": (b"x = " + b"(" * 3000 + b")" * 3000, "task", "broken")}


@pytest.fixture
def bad(root):
    """Beside the tasks that are right."""
    for name, (text, _, _) in BAD.items():
        (root / "level1" / f"{name}.py").write_bytes(text)
    return root


def records(out):
    return [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]


def told(out):
    return {one["task"].split("/")[1]: (one["outcome"], one["reason"]) for one in records(out)}


EXPECTED = {"3_Scale": ("right", ""), "11_Negate": ("right", ""),
            **{name: (outcome, reason) for name, (_, outcome, reason) in BAD.items()}}


def test_tasks_with_broken_python(bad, tmp_path):
    programs, out = tmp_path / "programs", tmp_path / "out"
    programs.mkdir()
    for name in EXPECTED:
        (programs / f"{name}.tgl").write_text(RIGHT if name == "3_Scale" else NEGATE)
    command = ["kernelbench", f"--root={bad}", f"--programs={programs}", f"--out={out}", *SMALL]
    assert cli.main(command) == exit_codes.NOT_RIGHT
    assert told(out) == EXPECTED
    (bad / "level1" / "2_bytes.py").write_text(module("return -x"))  # mended
    assert cli.main(command) == exit_codes.NOT_RIGHT
    assert told(out)["2_bytes"] == ("right", "")


def test_a_model_is_asked_about_tasks_with_broken_python(bad, tmp_path):
    try:
        conversation.command_path()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    answers, out = tmp_path / "answers.jsonl", tmp_path / "out"
    answers.write_text("".join(json.dumps({"task": f"level{2 if name == '11_Negate' else 1}/{name}",
                                           "answer": f"```\n{RIGHT if name == '3_Scale' else NEGATE}\n```"}) + "\n"
                               for name in EXPECTED))
    assert cli.main(["kernelbench", f"--root={bad}", f"--replay={answers}", f"--out={out}", *SMALL]) == exit_codes.NOT_RIGHT
    assert told(out) == EXPECTED


def test_a_program_that_is_long_in_the_checker(root, tmp_path):
    """Statements that all depend on one another: the deadline ends it, and the next program is judged."""
    count = 12000
    lines = "".join(f"  t{n}[i, j] = t{n - 1}[i, j]*t{n // 2}[j % N, i % M] + sum(t{n - 1}[i, k] for k)\n"
                    for n in range(1, count))
    programs, out = tmp_path / "programs", tmp_path / "out"
    programs.mkdir()
    (programs / "3_Scale.tgl").write_text("kernel k(x: f32[N, M]) -> (y: f32[N, M]) {\n  t0[i, j] = x[i, j]\n" + lines
                                          + f"  y[i, j] = t{count - 1}[i, j]\n}}\n")
    for deadline in (0.5, 2, 8):  # on a busy machine it may not get so far in the first
        assert cli.main(["kernelbench", f"--root={root}", f"--programs={programs}", f"--out={out}", *SMALL,
                         f"--deadline={deadline}", "--retry=timeout"]) == exit_codes.NOT_RIGHT
        (outcome, reason), = told(out).values()
        if reason != "start":
            break
    assert outcome == "timeout" and reason in ("parse", "check"), (outcome, reason)
    (programs / "11_Negate.tgl").write_text(NEGATE)
    cli.main(["kernelbench", f"--root={root}", f"--programs={programs}", f"--out={out}", *SMALL])
    assert told(out) == {"3_Scale": ("timeout", reason), "11_Negate": ("right", "")}


def test_a_disk_that_fills_up(tmp_path):
    """As the limit on a file's size has it: the run stops, and the next one goes on from there."""
    tasks, programs, out = tmp_path / "tasks", tmp_path / "programs", tmp_path / "out"
    tasks.mkdir()
    programs.mkdir()
    for number in range(12):
        (tasks / f"{number}_negate.py").write_text(module("return -x"))
        (programs / f"{number}_negate.tgl").write_text(NEGATE)
    command = [sys.executable, "-m", "tegula_eval", "kernelbench", f"--root={tasks}", f"--programs={programs}",
               f"--out={out}", *SMALL]

    def run(limit):
        return subprocess.run(command, env={**os.environ, "PYTHONPATH": str(TREE / "python")}, capture_output=True,
                              text=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, -1)))

    for limit in (0, 5000):  # not even the run's own files
        nothing = run(limit)
        assert nothing.returncode == exit_codes.STOPPED and "cannot write" in nothing.stderr, nothing.stderr
        assert "Traceback" not in nothing.stderr
    stopped = run(14 << 10)
    assert stopped.returncode == exit_codes.STOPPED and "cannot write" in stopped.stderr, stopped.stderr
    before = records(out)
    assert 0 < len(before) < 12
    assert run(resource.RLIM_INFINITY).returncode == exit_codes.RIGHT
    after = records(out)
    assert after[:len(before)] == before and len(after) == 12 and len({one["task"] for one in after}) == 12


def test_two_runs_on_one_store(root, tmp_path, capsys):
    (tmp_path / "11_Negate.tgl").write_text(NEGATE)
    command = ["kernelbench", f"--root={root}", f"--programs={tmp_path}", f"--out={tmp_path / 'out'}", *SMALL]
    first = Store(tmp_path / "out")
    assert cli.main(command) == exit_codes.STOPPED
    assert "is in use by another process" in capsys.readouterr().err
    first.close()
    assert cli.main(command) == exit_codes.RIGHT
