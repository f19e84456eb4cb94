"""print and assert of a program in calls from Python."""

import math
import pickle

import pytest
import torch

import tegula

TEXT = """kernel running(x: f32[T, N]) -> (y: f32[T, N]) {
  state total[i in N] = 0.0
  for t in 0:T {
    total[i] = total[i] + x[t, i]
    print("total", total[i] for i in 1)
    assert(total[i] < 4, "too large")
    y[t, i] = log(total[i])
  }
}"""


def test_prints_go_to_the_observer():
    seen = []
    running = tegula.compile(TEXT, file_name="running.tgl", checked=True, observer=seen.append)
    x = torch.ones(3, 2)
    assert torch.equal(running(x), tegula.compile(TEXT)(x))
    assert [one.indices for one in seen] == [{"t": 0, "i": 0}, {"t": 1, "i": 0}, {"t": 2, "i": 0}]
    assert [one.values for one in seen] == [{"total[i]": 1.0}, {"total[i]": 2.0}, {"total[i]": 3.0}]
    assert seen[0].texts == ("total",) and seen[0].statement.startswith("print(")
    assert str(seen[0]) == "running.tgl:5:5: t=0, i=0: total, total[i] = 1"


def test_prints_go_to_standard_output(capsys):
    tegula.compile(TEXT, file_name="running.tgl", checked=True)(torch.ones(25, 1) / 100)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "running.tgl:5:5: t=0, i=0: total, total[i] = 0.01"
    assert len(lines) == 21 and lines[-1] == "running.tgl:5:5: ... and 5 more points"


def test_a_failed_assertion_holds_the_values():
    running = tegula.compile(TEXT, checked=True, observer=lambda one: None)
    with pytest.raises(tegula.AssertionFailed, match="assertion fails at t=1, i=1: too large") as caught:
        running(torch.tensor([[0.0, 3.0], [0.0, 3.0], [0.0, 3.0]]))
    failed = caught.value
    assert isinstance(failed, tegula.LaunchError) and isinstance(failed, AssertionError)
    assert failed.kind == "assert" and failed.message == "too large" and failed.points == 2
    assert failed.observation.indices == {"t": 1, "i": 1} and failed.observation.values == {"total[i]": 6.0}
    assert failed.diagnostics[0].code == "C0004"
    again = pickle.loads(pickle.dumps(failed))
    assert again.observation == failed.observation and str(again) == str(failed)


def test_the_first_nan_and_what_is_not_finite():
    quiet = {"observer": lambda one: None}
    x = torch.tensor([[0.0], [-1.0]])
    with pytest.raises(tegula.AssertionFailed, match="the first NaN") as caught:
        tegula.compile(TEXT, checked="nan", **quiet)(x)
    assert caught.value.kind == "watch" and caught.value.observation.indices == {"t": 1, "i": 0}
    assert math.isnan(caught.value.observation.values["y[t, i]"])
    with pytest.raises(tegula.AssertionFailed, match="not finite") as caught:
        tegula.compile(TEXT, checked="finite", **quiet)(x)
    assert caught.value.observation.values == {"y[t, i]": -math.inf}
    tegula.compile(TEXT)(x)
    with pytest.raises(ValueError, match="expected checked"):
        tegula.compile(TEXT, checked="inf")


def test_arguments_are_those_of_the_program():
    kernel = tegula.compile(TEXT, checked=True)
    assert [one["name"] for one in kernel.compiled().description["arguments"]] == ["x", "y"]
