"""examples/models: every module that has a program is swapped, serves all calls, and the logits are as accurate as before."""
import pathlib
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "examples" / "models"


@pytest.fixture(scope="module")
def measure():
    sys.path.insert(0, str(FOLDER))
    try:
        import measure
        yield measure
    finally:
        sys.path.remove(str(FOLDER))


@pytest.mark.filterwarnings("ignore::tegula.TegulaWarning")
@pytest.mark.parametrize("name, dtype, modules", [("decoder", "f32", 11), ("decoder", "bf16", 11), ("experts", "f32", 11),
                                                  ("state_space", "f32", 5), ("vision", "f32", 9)])
def test_model(measure, capsys, monkeypatch, device, name, dtype, modules):
    monkeypatch.setattr(measure, "TIMED", 1)
    found = []
    own = measure.measure
    monkeypatch.setattr(measure, "measure", lambda *how: found.append(own(*how)) or found[0])
    assert measure.main([name, f"--dtype={dtype}", f"--device={device}", "--steps=3"]) == 0
    [(rows, report)] = found
    (_, _, eager), (what, _, swapped) = rows
    assert what == "swapped" and swapped < 1.5 * eager < (1e-5 if dtype == "f32" else 0.1)
    assert len(report) == modules and all(one.calls >= 2 and not one.fallbacks for one in report)
    assert f"{modules} modules swapped" in capsys.readouterr().out


def test_refusals_are_told(measure, capsys, monkeypatch):
    monkeypatch.setitem(measure.PROGRAMS, "vision", {"layers.*.mlp": "mlp.tgl"})
    assert measure.main(["vision"]) == 1
    assert "layers.0.mlp: 'gate_weight' is no parameter" in capsys.readouterr().out
