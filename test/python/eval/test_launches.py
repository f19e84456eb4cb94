"""tegula-eval launches: what becomes of a device's kernels, and what it says where there is none."""
import torch
from conftest import SCALE

from tegula_eval import cli
from tegula_eval.commands import launches
from tegula_eval.judge import own_sizes


def test_medians_of_each_launch():
    calls = [("pack", 1.0), ("tile", 9.0), ("pack", 3.0), ("tile", 7.0), ("pack", 2.0), ("tile", 50.0)]
    assert launches.per_launch(calls, 3) == [("pack", 2.0), ("tile", 9.0)]


def test_calls_that_differ_are_told_by_name():
    assert launches.per_launch([("a", 1.0), ("b", 2.0), ("a", 3.0)], 2) == [("a", 2.0), ("b", 1.0)]
    assert launches.per_launch([("a", 1.0), ("b", 2.0)], 2) == [("a", 0.5), ("b", 1.0)]


def test_nothing_ran():
    assert launches.per_launch([], 5) == []


def test_no_device(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    folder = tmp_path / "level1"
    folder.mkdir()
    (folder / "1_scale.py").write_text(SCALE)
    assert cli.main(["launches", f"--root={tmp_path}", f"--programs={tmp_path}"]) == 2
    assert "no CUDA device" in capsys.readouterr().err


def test_a_parameter_that_is_nothing_of_the_module(tmp_path, capsys, monkeypatch):
    make_case = own_sizes.make_case
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(own_sizes, "make_case", lambda source, seed, device: make_case(source, seed, "cpu"))
    folder = tmp_path / "level1"
    folder.mkdir()
    (folder / "1_scale.py").write_text(SCALE)
    (folder / "1_scale.tgl").write_text("kernel scale(x: f32[...], bias: f32[N]) -> (y: f32[...]) { y[...] = x[...] }\n")
    assert cli.main(["launches", f"--root={tmp_path}", f"--programs={tmp_path}"]) == 1
    assert "refused: 'bias'" in capsys.readouterr().out
