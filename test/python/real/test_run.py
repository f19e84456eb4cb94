"""The command bench/real: what it finds wrong, and that no kernel ends the run of the others."""
import os
import sys
from pathlib import Path

import pytest
import torch

TREE = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(TREE / "bench"), str(TREE / "python")]

from real import __main__ as command  # noqa: E402
from real import judge, suite, table, worker  # noqa: E402

KERNELS = suite.load()
ROW = {"case": "a", "group": "decode", "right": True, "errors": {"y": 1e-3}, "bound": 4.0,
       "times": {"tegula": 10.0, "eager": 20.0, "torch.compile": 15.0, "Liger": 5.0},
       "launches": [{"name": "y", "strategy": "general", "bound": 4.0, "reasons": ["contraction: few rows"]}]}


def test_each_kernel_has_a_program_and_each_program_a_kernel():
    assert {kernel.file for kernel in KERNELS.values()} == set(suite.PROGRAMS.glob("*.tgl"))
    assert {kernel.group for kernel in KERNELS.values()} == set(suite.CLASSES)
    for kernel in KERNELS.values():
        assert kernel.small.keys() == kernel.full.keys(), kernel.name
        assert kernel.make.__doc__, kernel.name
        assert kernel.file.read_text().split("(")[0].split()[-1] == kernel.name


@pytest.mark.parametrize("name", ["decode_gqa", "rms_norm_backward", "fp8_token_quant", "gated_delta_step"])
def test_an_element_that_is_off_is_found(monkeypatch, name):
    results = judge.Compiled.results

    def partly(self):
        found = results(self)
        last = found[0][1].view(-1)[-1:]
        last.copy_(-3e2 if last.float() > 0 else 3e2)
        return found
    check = lambda: judge.check(KERNELS[name], KERNELS[name].case(suite.Data("cpu"), small=True), "cpu", "")  # noqa: E731
    assert check()[1]
    monkeypatch.setattr(judge.Compiled, "results", partly)
    assert not check()[1]


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_no_number_is_an_error(wrong):
    found, wanted = torch.ones(4), torch.ones(4)
    found[2] = wrong
    for measure in judge.norm_error, judge.worst_error:
        assert not judge.errors(KERNELS["decode_gqa"], [("y", found)], [wanted], measure)[1]
        assert judge.errors(KERNELS["decode_gqa"], [("y", wanted)], [wanted], measure)[1]


def test_exit_codes(capsys):
    assert command.main(["--check", "--only=merge_states"]) == 0
    assert "1 kernels, 0 wrong" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        command.main(["--check", "--only=no_such_kernel"])
    assert stopped.value.code == 2 and "there is no no_such_kernel" in capsys.readouterr().err
    assert command.main(["--target=emulate", "--tegula=/no/such/program", "--only=merge_states"]) == 3
    assert "--tegula names the program" in capsys.readouterr().err
    if not torch.cuda.is_available():
        assert command.main(["--only=merge_states"]) == 3


WORKER = '''
import json, os, sys, time
def say(**row):
    print(json.dumps(row), flush=True)
[only] = [one[7:] for one in sys.argv if one.startswith("--only=")]
names = only.split(",") if only else ["good", "bad", "slow", "last"]
say(names=names)
for name in names:
    say(begin=name)
    if name == "bad":
        os._exit(7)
    if name == "slow":
        time.sleep(60)
    say(case=name, group="g", right=True, errors={})
'''


def test_a_process_that_ends_or_hangs_costs_one_kernel(tmp_path, monkeypatch, capsys):
    (tmp_path / "worker.py").write_text(WORKER)
    monkeypatch.setattr(worker, "HERE", tmp_path / "worker.py")
    assert command.main(["--check", "--deadline=3"]) == 4
    told = capsys.readouterr().out
    assert "good: right" in told and "last: right" in told
    assert "bad: FAILED ended the process: exit code 7" in told
    assert "slow: FAILED took longer than 3 s" in told
    assert "4 kernels, 2 wrong: bad, slow" in told


def test_no_kernel_is_begun_after_the_budget(capsys):
    assert command.main(["--check", "--class=moe", "--budget=-1"]) == 0
    told = capsys.readouterr().out
    assert f"--only={','.join(name for name, one in KERNELS.items() if one.group == 'moe')}" in told and "0 kernels" in told


def test_parts_are_all():
    options = command.arguments(["--check"])[1]
    parts = []
    for part in range(1, 4):
        options.part = f"{part}/3"
        parts += [kernel.name for kernel in worker.selected(KERNELS, options)]
    assert sorted(parts) == sorted(KERNELS)


def test_others_times_are_those_of_an_earlier_table_where_they_were_shorter():
    page = ("| a | moe | 9 | 1,500 | 7 | FLA chunk 300; Liger (in place) 20 | 0.1 | 1 | 10 % |\n"
            "| b | moe | 9 | 1 | - | other 2 | 0.1 | 1 | 10 % |\n")
    rows = [{"device": "a GPU"}, {"case": "c", "times": {"tegula": 5.0, "eager": 6.0}},
            {"case": "a", "times": {"tegula": 10.0, "eager": 2000.0, "torch.compile": 6.0, "FLA chunk": 310.0, "Liger (in place)": 19.0}}]
    told = table.with_shorter(rows, page)
    assert told[:2] == rows[:2]
    assert table.with_shorter([{"case": "b", "times": {"tegula": 3.0}}], page)[0]["times"] == {"tegula": 3.0, "eager": 1.0, "other": 2.0}
    assert told[2]["times"] == {"tegula": 10.0, "eager": 1500.0, "torch.compile": 6.0, "FLA chunk": 300.0, "Liger (in place)": 19.0}


def test_the_table_compares_with_the_fastest_and_says_why():
    other = {**ROW, "case": "b", "times": {"tegula": 5.0, "eager": 10.0}, "missing": {"Liger": "ImportError: no module"}}
    told = table.times([{"device": "a GPU"}, ROW, other, {"case": "c", "right": False, "error": "Refused: no"}])
    assert "| a | decode | 10 | 20 | 15 | Liger 5 | 0.5 | 4 | 40 % |" in told
    assert "| b | decode | 5 | 10 | - | - | 2 | 4 | 80 % |" in told
    assert "2 kernels: geometric mean of *best other / tegula* 1; 1 at 1 or more, 1 below 0.8; beside eager mode 2" in told
    assert "c is not right: Refused: no" in told and "b: no Liger (ImportError: no module)" in told
    assert "- a, 10 us, bound 4\n  - y by general, 4 us at least; not contraction: few rows" in told
    assert "- b, " not in told


def test_the_least_time_counts_bytes_and_operations():
    from real import timing
    case = suite.Case({}, None, bytes=1000, operations={"bf16": 10, "f32": 10})
    assert timing.bound(case, {"copy": 1e9, "bf16": 1e9, "f32": 1e9}) == pytest.approx(1)
    assert timing.bound(case, {"copy": 1e9, "bf16": 1e9, "f32": 2e6}) == pytest.approx(5.01)


class Clock:
    """Calls everything once and says made-up times."""

    def rates(self):
        return {"copy": 1e9, "bf16": 1e9, "f32": 1e9, "f8": 2e9, "i8": 2e9}

    def medians(self, calls, seconds):
        for call in calls.values():
            call()
        return {name: float(place + 1) for place, name in enumerate(calls)}


@pytest.fixture
def measure():
    from real.measure import Measure
    options = command.arguments(["--no-compile",
                                 f"--tegula={os.environ.get('TEGULA_COMMAND', TREE / 'build/dev/bin/tegula')}"])[1]
    return Measure(options, Clock(), target="cpu")


# An inout, a constant, a backward pass, integers, and one whose peer is another product.
@pytest.mark.parametrize("name", ["adamw", "topk_topp", "rms_norm_backward", "histogram_256", "w4a16_linear"])
def test_a_measured_row(measure, name):
    row = {"case": name, "group": KERNELS[name].group}
    measure.run(KERNELS[name], KERNELS[name].case(suite.Data("cpu"), small=True), row)
    assert row["right"] and row["times"]["tegula"] == 1 and row["times"]["eager"] == 2 and row["bound"] > 0, row
    assert all(one["strategy"] for one in row["launches"]), row
    assert name in table.times([row])


def test_what_is_missing_or_another_result_is_not_compared(measure):
    case = KERNELS["merge_states"].case(suite.Data("cpu"), small=True)

    def absent():
        import no_such_package  # noqa: F401
    case.peers = {"absent": absent, "other": lambda: lambda: 2*case.tensors["a"],
                  "same": lambda: lambda: case.eager(**case.tensors)}
    row = {"case": "merge_states", "group": "decode"}
    measure.run(KERNELS["merge_states"], case, row)
    assert row["times"].keys() == {"tegula", "eager", "same"}
    assert "no_such_package" in row["missing"]["absent"] and "another result" in row["missing"]["other"]


def test_a_kernel_that_is_timed_alone(measure):
    measure.options.alone = True
    rows = []
    for name in "adamw", "w4a16_linear":
        rows.append({"case": name, "group": KERNELS[name].group})
        measure.run(KERNELS[name], KERNELS[name].case(suite.Data("cpu"), small=True), rows[-1])
    assert all(row["right"] and row["times"] == {"tegula": 1} and "missing" not in row for row in rows), rows
    assert "adamw: right" in table.line(rows[0]) and "best other" not in table.line(rows[0])
    assert "- adamw alone: 1 us" in table.times(rows)
    measure.options.alone = False
    rows.append({"case": "adamw", "group": "optimisers"})
    measure.run(KERNELS["adamw"], KERNELS["adamw"].case(suite.Data("cpu"), small=True), rows[-1])
    assert "1 kernels: geometric mean of *best other / tegula* 2" in table.times(rows)
