"""bench/kernelbench/expected.py: expected times beside a page of measured ones."""
import importlib.util
from pathlib import Path

import pytest
from conftest import RIGHT, TREE

from tegula_eval.program import library

try:
    BUILD = Path(library.command_path()).parents[1]
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)

PAGE = """
| task | verdict | tegula us | at TF32 us |
|---|---|---:|---:|
| level1/3_Scale | {verdict} | 1000 | - |
"""


@pytest.fixture
def ask(tmp_path, root):
    place = importlib.util.spec_from_file_location("expected_script", TREE / "bench/kernelbench/expected.py")
    script = importlib.util.module_from_spec(place)
    place.loader.exec_module(script)
    (tmp_path / "level1").mkdir()

    def ask(program=RIGHT, verdict="right"):
        (tmp_path / "level1" / "3_Scale.tgl").write_text(program)
        (tmp_path / "times.md").write_text(PAGE.format(verdict=verdict))
        return script.main([f"--root={root}", f"--programs={tmp_path}", "--level=1", f"--times={tmp_path / 'times.md'}",
                            "--machine=h200", f"--build={BUILD}"])
    return ask


def test_a_time_beside_the_measured_one(ask, capsys):
    assert ask() == 0
    told = capsys.readouterr().out
    row = next(line for line in told.splitlines() if line.startswith("| level1/3_Scale | 1,000 |"))
    expected, ratio = (float(cell) for cell in row.strip("|").split("|")[2:])
    assert 1 < expected < 100 and ratio == pytest.approx(expected/1000, abs=0.01)
    assert "1 tasks on h200: 0% within 25 %, 0% within a factor of 2; 0 without" in told


def test_without_any_time(ask, capsys):
    for wrong in ({"program": "kernel"}, {"program": RIGHT.replace("x:", "z: f32[Q], x:")}, {"verdict": "wrong"}):
        with pytest.raises(SystemExit) as ended:
            ask(**wrong)
        assert ended.value.code == 2
    assert "has no times of these tasks" in capsys.readouterr().err
