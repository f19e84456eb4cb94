"""Runs on a cluster of two machines, both of them this one. Ray is an extra: skipped where it is not installed."""
import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from conftest import RIGHT, SCALE, TREE, module

from tegula_eval import cli
from tegula_eval.commands import exit_codes
from tegula_eval.program import runner

ray = pytest.importorskip("ray", reason="the package ray is not installed")
try:
    runner.library_path()
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)

NEGATE = "kernel negate(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = -x[i, j] }"


@pytest.fixture
def machines(monkeypatch):
    from ray.cluster_utils import Cluster
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(TREE / "python"), os.environ.get("PYTHONPATH")])))
    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.add_node(num_cpus=1)
    yield made
    ray.shutdown()
    made.shutdown()


def lose_the_machine(mark):
    """Ends what has started the worker of which a child holds the file open."""
    def parent(pid):
        return int(Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()[1])

    while mark.exists():
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            try:
                if pid != os.getpid() and any(os.readlink(f"/proc/{pid}/fd/{fd}") == str(mark) for fd in os.listdir(f"/proc/{pid}/fd")):
                    machine = parent(parent(pid))
                    mark.unlink()
                    os.kill(machine, signal.SIGKILL)
                    return
            except OSError:  # it has ended
                pass
        time.sleep(0.1)


def test_two_machines(machines, tmp_path):
    tasks, programs, out = tmp_path / "tasks", tmp_path / "programs", tmp_path / "out"
    tasks.mkdir()
    programs.mkdir()
    # The machine that judges the first one is lost, the first time.
    mark = tmp_path / "once"
    mark.touch()
    loses = SCALE.replace("import torch\n", f"""import torch, os, time
if os.path.exists({str(mark)!r}):
    held = open({str(mark)!r})
    time.sleep(600)
""", 1)
    losing = threading.Thread(target=lose_the_machine, args=(mark,))
    losing.start()
    for name, task, program in [("1_loses", loses, RIGHT), ("2_wrong", module("return -x"), NEGATE.replace("-x", "x")),
                                *((f"{n}_right", module("return -x"), NEGATE) for n in range(3, 9))]:
        (tasks / f"{name}.py").write_text(task)
        (programs / f"{name}.tgl").write_text(program)
    code = cli.main(["kernelbench", f"--root={tasks}", f"--programs={programs}", f"--out={out}", "--plain", "--jobs=2",
                     f"--ray={machines.address}", "--bytes=64K", "--flops=1e6"])
    assert code == 1 and not mark.exists()
    losing.join()
    records = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert {one["task"]: one["outcome"] for one in records} == \
        {"1_loses": "right", "2_wrong": "wrong", **{f"{n}_right": "right" for n in range(3, 9)}}
    assert len({one["machine"] for one in records}) == 2


def test_no_cluster(root, tmp_path, capsys):
    (tmp_path / "3_Scale.tgl").write_text(RIGHT)
    assert cli.main(["kernelbench", f"--root={root}", f"--programs={tmp_path}", f"--out={tmp_path / 'out'}",
                     "--ray=127.0.0.1:1"]) == exit_codes.WRONG_CALL
    assert "no Ray cluster at 127.0.0.1:1" in capsys.readouterr().err
