"""`tegula-eval run`: what counts in a score and what does not, on KernelBench's form and FlashInfer-Bench's."""
import json
import os
import re
import signal
import sys
import threading
import time
import warnings

import pytest
import torch
from conftest import RIGHT, SCALE
from suite_files import (RMS, flashinfer, outcomes, records, rms_definition, run, safetensors, workload)

from tegula_eval import cli
from tegula_eval.commands import exit_codes
from tegula_eval.program import library, runner
from tegula_eval.suites import apply, definitions, flashinfer_bench, multikernelbench, results
from tegula_eval.suites.suite import make_task

try:
    runner.library_path()
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)

NEGATE = "kernel negate(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = -x[i, j] }"
SUITE = "flashinfer-bench"


@pytest.fixture
def programs(tmp_path):
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "rmsnorm.tgl").write_text(RMS)
    return folder


def test_kernelbench(root, tmp_path, capsys):
    """One right, one wrong, one without a program, one whose own file is broken: the last does not count."""
    (root / "level1" / "4_None.py").write_text(SCALE)
    (root / "level1" / "5_Broken.py").write_text("def")
    programs = tmp_path / "programs"
    (programs / "level1").mkdir(parents=True)
    (programs / "level1" / "3_Scale.tgl").write_text(RIGHT)
    (programs / "level1" / "5_Broken.tgl").write_text(RIGHT)
    (programs / "11_Negate.tgl").write_text(NEGATE.replace("-x", "x"))
    code, told = run("kernelbench", root, tmp_path / "out", f"--programs={programs}", "--time", "--timed-turns=2")
    assert code == exit_codes.NOT_RIGHT
    assert outcomes(told) == {"level1/3_Scale": "right", "level1/4_None": "no program", "level1/5_Broken": "task",
                              "level2/11_Negate": "wrong"}
    assert (told["ours"]["tasks"], told["ours"]["judged"], told["ours"]["right"]) == (4, 3, 1)
    assert dict(told["theirs"])["correct"] == pytest.approx(1 / 3)
    assert told["groups"]["level1"]["ours"]["right"] == 1 and "fast_p" in told["ours"]
    said = capsys.readouterr().out
    assert "kernelbench: 1 of 3 right (33.3 %)" in said and "not counted: 1 of 4 tasks" in said
    assert "| kernelbench | 4 | 3 | 1 |" in (tmp_path / "out" / "suites.md").read_text()


def test_all_workloads_must_pass(tmp_path, programs):
    """A program that is right at one of two workloads is not right; nothing is done again the second time."""
    definition = rms_definition()
    folder = flashinfer(tmp_path / "trace", definition, workload("a", {"batch_size": 7}), workload("b", {"batch_size": 40}))
    out = tmp_path / "out"
    code, told = run(SUITE, folder, out, f"--programs={programs}")
    assert code == exit_codes.RIGHT and outcomes(told) == {"rmsnorm_h32": "right"}
    assert dict(told["theirs"])["workloads passed"] == 1 and len(records(out, SUITE)) == 2
    assert {case["theirs"]["passes"] for one in records(out, SUITE) for case in one["cases"] if case["distribution"] == "task"} == {True}
    assert run(SUITE, folder, out, f"--programs={programs}")[0] == 0 and len(records(out, SUITE)) == 2
    (programs / "rmsnorm.tgl").write_text(RMS.replace("* weight[j]", "* where(M >= 40, 0.5, weight[j])"))
    code, told = run(SUITE, folder, out, f"--programs={programs}", "--own", "--seeds=1")
    assert code == exit_codes.NOT_RIGHT and outcomes(told) == {"rmsnorm_h32": "wrong"}
    assert told["tasks"][0]["at"] == "rmsnorm_h32@b" and told["tasks"][0]["right_parts"] == 1
    assert dict(told["theirs"]) == {"definitions passed": 0, "workloads passed": 0.5,
                                    "mean speedup over the reference": None, "workloads faster than it": None}


@pytest.mark.parametrize("change, what", [
    (dict(reference="import torch\ndef run(hidden_states, weight):\n    raise ValueError('no')"), "task"),
    (dict(reference="import torch\ndef run(hidden_states, weight):\n    return torch.rand_like(hidden_states)"), "unjudged"),
    (dict(reference=7), "task"), (dict(axes={"batch_size": {"type": "odd"}}), "task"),
])
def test_a_reference_that_fails_is_no_success(tmp_path, programs, change, what):
    folder = flashinfer(tmp_path / "trace", rms_definition(**change), workload("a", {"batch_size": 7}))
    code, told = run(SUITE, folder, tmp_path / "out", f"--programs={programs}")
    if told is None:  # no program is left to judge
        assert code == exit_codes.WRONG_CALL
        return
    assert code == exit_codes.NOT_RIGHT and list(outcomes(told).values()) == [what]
    assert told["ours"]["judged"] == 0 and dict(told["theirs"])["definitions passed"] is None


def test_nothing_to_do_is_no_success(tmp_path, programs, capsys):
    empty = tmp_path / "empty"
    (empty / "definitions").mkdir(parents=True)
    assert run(SUITE, empty, tmp_path / "out", f"--programs={programs}")[0] == exit_codes.WRONG_CALL
    assert "holds no definition" in capsys.readouterr().err
    folder = flashinfer(tmp_path / "trace", rms_definition())
    assert run(SUITE, folder, tmp_path / "out", f"--programs={programs}")[0] == exit_codes.WRONG_CALL
    assert run(SUITE, folder, tmp_path / "out", f"--programs={programs}", "--tasks=gemm*")[0] == exit_codes.WRONG_CALL
    assert "none of 1 tasks is 'gemm*'" in capsys.readouterr().err
    for more, what in (((), "one of --programs"), ((f"--candidates={programs}", "--solutions=made"), "are solutions already")):
        assert run(SUITE, folder, tmp_path / "out", *more)[0] == exit_codes.WRONG_CALL
        assert what in capsys.readouterr().err
    assert run("kernelbench", tmp_path, tmp_path / "out", f"--programs={programs}", "--solutions=made")[0] == exit_codes.WRONG_CALL
    assert run(SUITE, tmp_path / "not", tmp_path / "out", f"--programs={programs}")[0] == exit_codes.WRONG_CALL
    assert cli.main(["run", f"--suite={SUITE}", str(folder), "--list"]) == 0
    assert "rmsnorm_h32: it has no workload" in capsys.readouterr().out


def test_workloads_that_are_broken_are_told_by_what_they_name(tmp_path):
    """Whatever the file is called; one of which nobody knows whose it is, as a task of its own."""
    folder = flashinfer(tmp_path, rms_definition(), workload("a", {"batch_size": 7}))
    flashinfer(folder, rms_definition("rmsnorm_other"), workload("a", {"batch_size": 7}))
    path = folder / "workloads" / "rmsnorm" / "rmsnorm_h32.jsonl"
    text = path.read_text()
    for broken in ("{", '{"workload": {}}\n', '{"definition": ["a"], "workload": {}}\n'):
        path.rename(path.with_name("more.jsonl")).write_text(text + broken)
        path = path.with_name("more.jsonl")
        problems = {one.name: one.problem for one in flashinfer_bench.find([folder])}
        assert "a line is no workload" in problems["rmsnorm_h32"] and not problems["rmsnorm_other"]
    path.write_text("{")
    problems = {one.name: one.problem for one in flashinfer_bench.find([folder])}
    assert "a line is no workload" in problems["workloads/rmsnorm/more.jsonl"] and not problems["rmsnorm_other"]


def test_a_result_of_another_type_is_wrong(tmp_path, programs):
    (programs / "rmsnorm.tgl").write_text(RMS.replace("output: T[M, N]", "output: f32[M, N]").replace("= T(", "= f32("))
    folder = flashinfer(tmp_path / "trace", rms_definition(), workload("a", {"batch_size": 7}))
    _, told = run(SUITE, folder, tmp_path / "out", f"--programs={programs}")
    assert [(one["outcome"], one["reason"]) for one in told["tasks"]] == [("wrong", "dtype")]


GATHER = {"name": "gather_d8", "op_type": "gather", "axes": {"n": {"type": "var"}, "m": {"type": "var"},
                                                            "d": {"type": "const", "value": 8}},
          "inputs": {"x": {"shape": ["n", "d"], "dtype": "float32"}, "at": {"shape": ["m"], "dtype": "int32"},
                     "scale": {"shape": None, "dtype": "float32"}},
          "outputs": {"y": {"shape": ["m", "d"], "dtype": "float32"}},
          "reference": "def run(x, at, scale):\n    return {'y': x[at.long()] * scale}"}
GATHERED = "kernel gather(x: f32[N, D], at: i32[M], scale: f32) -> (y: f32[M, D]) { y[i, j] = scale * x[at[i], j] }"


def test_tensors_of_a_workload(tmp_path, programs, capsys):
    """They come out of a file below the folder; what lies elsewhere is not read, and what is damaged is told."""
    (programs / "gather.tgl").write_text(GATHERED)
    folder = tmp_path / "trace"
    safetensors(folder / "blob" / "a.safetensors", at=torch.tensor([3, 0, 3], dtype=torch.int32))
    safetensors(tmp_path / "outside.safetensors", at=torch.tensor([1, 1, 1], dtype=torch.int32))
    os.symlink(tmp_path / "outside.safetensors", folder / "blob" / "link.safetensors")
    (folder / "blob" / "pointer.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n")
    (folder / "blob" / "cut.safetensors").write_bytes((folder / "blob" / "a.safetensors").read_bytes()[:-1])

    def one(uuid, path, m=3):
        return workload(uuid, {"n": 5, "m": m}, scale={"type": "scalar", "value": 0.5},
                        at={"type": "safetensors", "path": path, "tensor_key": "at"})
    flashinfer(folder, GATHER, one("right", "blob/a.safetensors"))
    code, told = run(SUITE, folder, tmp_path / "out", f"--programs={programs}")
    assert code == exit_codes.RIGHT, told
    flashinfer(folder, GATHER, one("above", "../outside.safetensors"), one("link", "blob/link.safetensors"),
               one("absolute", str(tmp_path / "outside.safetensors")), one("pointer", "blob/pointer.safetensors"),
               one("cut", "blob/cut.safetensors"), one("shape", "blob/a.safetensors", 4))
    code, told = run(SUITE, folder, tmp_path / "out", f"--programs={programs}")
    assert code == exit_codes.NOT_RIGHT and told["ours"]["judged"] == 0
    said = {one["task"].rpartition("@")[2]: one["message"] for one in records(tmp_path / "out", SUITE) if one["outcome"] == "task"}
    assert all("is outside of" in said[name] for name in ("above", "link", "absolute"))
    assert "Git LFS" in said["pointer"] and "is cut off" in said["cut"] and "the definition says" in said["shape"]


@pytest.mark.parametrize("text", ["__import__('os')", "a.b", "a if a else a", "'a'", "a(1)", "[a]", "lambda: a"])
def test_expressions_are_arithmetic(text):
    with pytest.raises(definitions.TaskError):
        definitions.arithmetic(text, {"a": 1})
    assert definitions.value_of("(a + 2)*b // 3", {"a": 4, "b": 5}) == 10


def test_solutions_and_traces(tmp_path, programs):
    """A right program becomes a solution whose run() writes into what it is given; that solution is right too."""
    folder = flashinfer(tmp_path / "trace", rms_definition(), workload("a", {"batch_size": 7}), workload("b", {"batch_size": 3}))
    code, _ = run(SUITE, folder, tmp_path / "out", f"--programs={programs}", f"--solutions={tmp_path / 'made'}", "--own",
                  "--time", "--timed-turns=2")
    assert code == exit_codes.RIGHT
    [path] = (tmp_path / "made").glob("solutions/**/*.json")
    [lines] = (tmp_path / "made").glob("traces/**/*.jsonl")
    solution = json.loads(path.read_text())
    traces = [json.loads(line) for line in lines.read_text().splitlines()]
    assert solution["definition"] == "rmsnorm_h32" and solution["spec"]["destination_passing_style"] is True
    assert "def run(hidden_states, weight, output):" in solution["sources"][0]["content"]
    assert [one["workload"]["uuid"] for one in traces] == ["a", "b"]
    assert all(one["evaluation"]["status"] == "PASSED" and one["evaluation"]["performance"]["latency_ms"] > 0 for one in traces)
    # What a wrong program leaves: traces that say so, no solution.
    (programs / "rmsnorm.tgl").write_text(RMS.replace("weight[j]", "0.5"))
    run(SUITE, folder, tmp_path / "out2", f"--programs={programs}", f"--solutions={tmp_path / 'wrong'}")
    assert not list((tmp_path / "wrong").glob("solutions/**/*.json"))
    [lines] = (tmp_path / "wrong").glob("traces/**/*.jsonl")
    assert {json.loads(line)["evaluation"]["status"] for line in lines.read_text().splitlines()} == {"INCORRECT_NUMERICAL"}


def solution_file(folder, text, passes_outputs=True, language="python", **more):
    folder.mkdir(exist_ok=True)
    (folder / "rmsnorm_h32.json").write_text(json.dumps({
        "name": "s", "definition": "rmsnorm_h32", "author": "a", "spec": {
            "language": language, "target_hardware": ["x"], "entry_point": "main.py::run",
            "destination_passing_style": passes_outputs}, "sources": [{"path": "main.py", "content": text}], **more}))
    return folder


def test_solutions_of_others(tmp_path):
    """Judged as candidates are: right, wrong, in a language that is not judged here, for another definition."""
    folder = flashinfer(tmp_path / "trace", rms_definition(), workload("a", {"batch_size": 7}))
    own = "from math import nan\n" + __import__("suite_files").RMS_REFERENCE.replace("def run", "def reference")
    passing = own + "\ndef run(hidden_states, weight, output):\n    output.copy_(reference(hidden_states, weight))\n"
    made = solution_file(tmp_path / "made", passing)
    assert run(SUITE, folder, tmp_path / "out", f"--candidates={made}")[0] == exit_codes.RIGHT
    solution_file(made, own + "\ndef run(hidden_states, weight, output):\n    output.zero_()\n")
    code, told = run(SUITE, folder, tmp_path / "out", f"--candidates={made}")
    assert code == exit_codes.NOT_RIGHT and outcomes(told) == {"rmsnorm_h32": "wrong"}
    for more in (dict(language="cuda"), dict(definition="other")):
        code, told = run(SUITE, folder, tmp_path / "out", f"--candidates={solution_file(made, passing, **more)}")
        assert code == exit_codes.NOT_RIGHT and outcomes(told) == {"rmsnorm_h32": "unjudged"} and told["ours"]["judged"] == 0


def test_failed_infrastructure_does_not_count():
    """Nor does it hide what the program does wrong elsewhere."""
    task = make_task("t", "g", [("a", "", {}, {}), ("b", "", {}, {})])

    def outcome(*ones):
        made = {f"t@{name}": {"outcome": one, "reason": "", "cases": []} for name, one in zip("ab", ones) if one}
        return results.of_task(task, made, True)
    assert outcome("right", "right").right and not outcome("right", None).known
    assert not outcome("right", "missing").known and not outcome("failed", "right").right
    assert outcome("task", "wrong").known and outcome("task", "wrong").outcome == "wrong"
    assert results.ours([outcome("missing", "right")])["judged"] == 0 and results.share(0, 0) is None
    assert not results.of_task(make_task("t", "g", []), {}, True).known


@pytest.mark.parametrize("outcome, reason, planned, passes", [
    ("right", "", 1, True), ("wrong", "value", 1, True), ("wrong", "not-finite", 1, True), ("wrong", "value", 2, False),
    ("right", "", 2, False), ("wrong", "shape", 1, False), ("tampered", "time", 1, False), ("call", "subscript", 1, False),
    ("crashed", "run", 1, False), ("timeout", "", 1, False), ("internal", "E9", 1, False), ("binding", "left-over", 1, False)])
def test_what_ends_otherwise_does_not_pass(outcome, reason, planned, passes):
    record = {"task": "t", "outcome": outcome, "reason": reason, "timing": None, "task_cases": planned,
              "cases": [{"distribution": "task", "theirs": {"passes": True}}]}
    one = results.of_task(make_task("t", "g", [("own", "", {}, {})]), {"t": record}, True)
    assert one.known and one.passes_theirs() is passes and results.correctness([one]) == passes
    built = outcome not in ("internal", "binding")
    assert dict(multikernelbench.score([one]))["Compile@1"] == built


def test_a_run_that_is_stopped_keeps_its_results(tmp_path, programs, capsys):
    slow = rms_definition("slow_h32", reference="import time\ntime.sleep(600)\n" + rms_definition()["reference"])
    folder = flashinfer(tmp_path / "trace", rms_definition(), workload("a", {"batch_size": 7}))
    flashinfer(folder, slow, workload("a", {"batch_size": 7}))
    (programs / "slow.tgl").write_text(RMS)
    lines = tmp_path / "out" / SUITE / "results.jsonl"

    def stop():
        while not (lines.exists() and lines.read_text().endswith("\n")):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGTERM)
    threading.Thread(target=stop, daemon=True).start()
    code, told = run(SUITE, folder, tmp_path / "out", f"--programs={programs}")
    assert code == exit_codes.STOPPED and told["stopped"]
    assert outcomes(told) == {"rmsnorm_h32": "right", "slow_h32": "left"} and len(records(tmp_path / "out", SUITE)) == 1
    said = capsys.readouterr()
    assert "1 of 1 right (100.0 %), stopped before the end" in said.out and "the same command goes on" in said.err


def solutions_of(tmp_path, programs):
    folder = flashinfer(tmp_path / "trace", rms_definition(), workload("a", {"batch_size": 7}))
    assert run(SUITE, folder, tmp_path / "out", f"--programs={programs}", f"--solutions={tmp_path / 'made'}", "--seeds=1")[0] == 0
    return apply.enable(folder, tmp_path / "made")


@pytest.fixture
def package(monkeypatch):
    """The package tegula of the build tree, which a solution imports."""
    place = library.package_path()
    if place is None:
        pytest.skip("the build tree has no package tegula")
    monkeypatch.setattr(sys, "path", [str(place), *sys.path])


def test_apply(tmp_path, programs, package):
    """The program runs on what the definition says. Anything else goes to the fallback, and is told once."""
    x, weight = torch.randn(5, 32).bfloat16(), torch.rand(32).bfloat16()
    space = {}
    exec(rms_definition()["reference"], space)
    called = []

    @apply.apply("rmsnorm_h32")
    def norm(hidden_states, weight):
        called.append(hidden_states.shape)
        return "fallback"
    with solutions_of(tmp_path, programs) as solutions, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(norm(x, weight), space["run"](x, weight))
        assert torch.equal(norm(x, weight=weight), space["run"](x, weight)) and not called
        output = torch.full_like(x, 7)
        assert apply.apply("rmsnorm_h32", args=(x, weight, output)) is None
        assert torch.equal(output, space["run"](x, weight))
        warnings.simplefilter("default")
        for given, why in (((x[:, :16], weight), "has 16 for the axis 'hidden_size', which is 32"), ((x.float(), weight), "is bfloat16, not float32"),
                           ((x, weight[None]), "has 1 dims, not 2"), ((x, 3), "is a tensor, not int")):
            with pytest.warns(apply.Swapped, match=re.escape(why)):
                assert norm(*given) == "fallback"
        wants = weight.clone().requires_grad_()
        with pytest.warns(apply.Swapped, match="'weight' wants a gradient"):
            assert norm(x, wants) == "fallback"
        with pytest.warns(apply.Swapped, match="autocast is on for cpu"), torch.autocast("cpu"):
            assert norm(x, weight) == "fallback"
        with torch.no_grad():
            assert torch.equal(norm(x, wants), space["run"](x, weight))
        with pytest.warns(apply.Swapped, match="there is no solution for it"):
            assert apply.apply("gemm", args=(x,), fallback=lambda one: "own") == "own"
        warnings.simplefilter("error")
        assert norm(x.float(), weight) == "fallback"  # told already
        with pytest.raises(apply.Unfit, match="no fallback is given"):
            apply.apply("rmsnorm_h32", args=(x.float(), weight))
        # What a solution raises is not hidden.
        solutions.by_name["rmsnorm_h32"].run = lambda *_: 1 / 0
        with pytest.raises(ZeroDivisionError):
            norm(x, weight)
    assert norm(x, weight) == "fallback"  # no longer enabled
    with pytest.raises(apply.TaskError, match="holds no solution"):
        apply.enable(tmp_path / "trace", tmp_path)


def test_a_model_is_judged_at_all_workloads(tmp_path):
    """A turn that is right at one workload alone is not right; the report counts the best turn, pass@k beside it."""
    folder = flashinfer(tmp_path / "trace", rms_definition(), workload("a", {"batch_size": 7}), workload("b", {"batch_size": 40}))
    flashinfer(folder, rms_definition("rmsnorm_other"), workload("a", {"batch_size": 7}))
    once = RMS.replace("* weight[j]", "* where(M >= 40, 0.5, weight[j])")
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(json.dumps({"task": "rmsnorm_h32", "turn": turn, "answer": f"```\n{text}```"}) + "\n"
                               for turn, text in enumerate((once, RMS))))
    code, told = run(SUITE, folder, tmp_path / "out", f"--replay={answers}", "--turns=2", "--own", "--seeds=1")
    assert code == exit_codes.NOT_RIGHT and outcomes(told) == {"rmsnorm_h32": "right", "rmsnorm_other": "unanswered"}
    first, second, other = sorted(records(tmp_path / "out", SUITE), key=lambda one: (one["task"], one["asked"]["turn"]))
    assert [one["outcome"] for one in first["parts"]] == ["right", "wrong"] and first["outcome"] == "wrong"
    assert [one["outcome"] for one in second["parts"]] == ["right", "right"]
    assert told["ours"]["judged"] == 1 and told["model"]["pass_at"] == {"1": 1.0} and told["model"]["not_judged"] == 1
    assert dict(told["theirs"])["workloads passed"] == 1
    # Wrong by our verdict alone, at inputs that the suite does not draw: its own score counts all workloads.
    answers.write_text(json.dumps({"task": "rmsnorm_h32", "answer": f"```\n{RMS.replace('* weight[j]', '* where(hidden_states[i, j] > 50.0, 0.5, weight[j])')}```"}) + "\n")
    code, told = run(SUITE, folder, tmp_path / "far", f"--replay={answers}", "--turns=1", "--seeds=1", "--tasks=rmsnorm_h32")
    assert code == exit_codes.NOT_RIGHT and outcomes(told) == {"rmsnorm_h32": "wrong"}
    assert told["tasks"][0]["at"] == "rmsnorm_h32@a" and dict(told["theirs"])["workloads passed"] == 1
