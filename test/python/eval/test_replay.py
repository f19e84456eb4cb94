"""tegula-eval replay: the same again, and what differs where something was changed in between."""
import copy
import json

import pytest
from conftest import RIGHT, SCALE

from tegula_eval import cli
from tegula_eval.commands import replay
from tegula_eval.program import provenance, runner

try:
    runner.library_path()
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)

SMALL = SCALE.replace("1024 * 4", "33").replace("features = 512", "features = 17")


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """Of one program, judged at two sizes."""
    folder = tmp_path_factory.mktemp("run")
    for kind, text, suffix in (("tasks", SCALE, "py"), ("programs", RIGHT, "tgl")):
        (folder / kind / "level1").mkdir(parents=True)
        (folder / kind / "level1" / f"3_Scale.{suffix}").write_text(text)
    assert cli.main(["kernelbench", f"--root={folder / 'tasks'}", f"--programs={folder / 'programs'}",
                     f"--out={folder / 'out'}", "--plain", "--bytes=64K", "--flops=1e6", "--seeds=1"]) == 0
    return json.loads((folder / "out" / "results.jsonl").read_text())


def again(tmp_path, record):
    path = tmp_path / "record.json"
    path.write_text(json.dumps(record))
    return cli.main(["replay", str(path), f"--out={tmp_path / 'again.jsonl'}"])


def test_the_same_again(record, tmp_path, capsys):
    assert len(record["kernels"][0]["ir_sha256"]) == 64 and len(record["cases"][0]["result_sha256"]) == 64
    assert {"tegula", "llvm", "torch", "library", "processor"} <= record["versions"].keys()
    assert again(tmp_path, record) == 0
    assert "level1/3_Scale: the same" in capsys.readouterr().out
    new = json.loads((tmp_path / "again.jsonl").read_text())
    for case in (*new["cases"], *record["cases"]):
        assert case["run_s"] > 0
    assert [{**one, "run_s": 0} for one in new["cases"]] == [{**one, "run_s": 0} for one in record["cases"]]
    assert new["kernels"] == record["kernels"]


def test_another_program_is_told(record, tmp_path, capsys):
    changed = copy.deepcopy(record)
    changed["request"]["program"] = RIGHT.replace("factor*relu", "factor*abs")
    assert again(tmp_path, changed) == 1
    told = capsys.readouterr().out
    assert "differs" in told and "outcome: right -> wrong" in told and "ir_sha256: " in told
    assert "result_sha256: " in told and "error: " in told


def test_another_seed_or_version_is_told(record, tmp_path, capsys):
    changed = copy.deepcopy(record)
    changed["request"]["secret"] += "0"
    assert again(tmp_path, changed) == 1
    assert "task: seed: " in capsys.readouterr().out
    changed = copy.deepcopy(record)
    changed["versions"].update(torch="1.0", driver="none")
    assert again(tmp_path, changed) == 0  # told, and the result is the same
    told = capsys.readouterr().out
    assert "versions: torch: 1.0 -> " in told and "versions: driver: none -> None" in told


def test_ptx_is_compared():
    old = {"outcome": "right", "reason": "", "cases": [], "kernels": [
        {"settings": {}, "ptx_sha256": provenance.hash_of("a\nb"), "ptx": provenance.pack("a\nb")}]}
    new = copy.deepcopy(old)
    assert replay.compare(old, new) == ([], True)
    new["kernels"][0].update(ptx_sha256=provenance.hash_of("a\nc"), ptx=provenance.pack("a\nc"))
    lines, is_same = replay.compare(old, new)
    assert not is_same and "  -b" in lines and "  +c" in lines
    new["kernels"] = []
    assert replay.compare(old, new) == (["instances: 1 -> 0"], False)


def test_ptx_of_a_device_is_in_the_record():
    program = runner.Program(RIGHT)
    settings = {"factor": "2.0"}
    kernel = program.compile(settings, target="sm_90a", stages=provenance.STAGES)
    told = provenance.of_kernel(kernel, {}, [], 0, set())
    assert ".visible .entry" in provenance.unpack(told["ptx"]) and len(told["ptx"]) < 1 << 16
    assert told["ir_sha256"] != provenance.of_kernel(
        runner.Program(RIGHT.replace("relu", "abs")).compile(settings, target="sm_90a", stages=provenance.STAGES),
        {}, [], 0, set())["ir_sha256"]


def test_a_timed_record(tmp_path, capsys):
    for kind, text, suffix in (("tasks", SMALL, "py"), ("programs", RIGHT, "tgl")):
        (tmp_path / kind / "level1").mkdir(parents=True)
        (tmp_path / kind / "level1" / f"3_Scale.{suffix}").write_text(text)
    assert cli.main(["time", f"--root={tmp_path / 'tasks'}", f"--programs={tmp_path / 'programs'}", "--target=cpu",
                     f"--out={tmp_path / 'out'}", "--turns=2", "--no-compiled", "--plain"]) == 0
    assert cli.main(["replay", str(tmp_path / "out" / "results.jsonl"), "--tasks=1/3"]) == 0
    told = capsys.readouterr().out
    assert "level1/3_Scale: the same" in told and "time of program: " in told and "time of eager: " in told


def test_what_is_no_record(tmp_path, capsys):
    for name, text in (("a.json", "[1]"), ("b.json", "{"), ("c.jsonl", ""), ("d.json", '{"task": "x", "key": "x"}')):
        (tmp_path / name).write_text(text)
        assert cli.main(["replay", str(tmp_path / name)]) == 2
        assert capsys.readouterr().err.startswith("tegula-eval: ")
    assert cli.main(["replay", str(tmp_path / "missing.json")]) == 2
