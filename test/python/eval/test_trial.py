"""The same tasks in several languages: prompts, answers of files and of a record, one judge, and the table."""
import contextlib
import gzip
import json
import pickle
import threading
import time
import types

import pytest
import torch
from conftest import TREE

from tegula_eval import cli, nvrtc
from tegula_eval.confine import arena, child
from tegula_eval.judge import candidates, trial
from tegula_eval.model.answers import NoProgram
from tegula_eval.records import trial_table
from tegula_eval.records.outcomes import outcome_record
from tegula_eval.rule import variants
from tegula_eval.timing.device_turns import DeviceTurns
from tegula_eval.trial import languages

TASK = '''
import torch
import torch.nn as nn

class Model(nn.Module):
    """Rows turned round, scaled."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width))

    def forward(self, x):
        return x.flip(1) * self.weight

rows = 64
width = 80

def get_inputs():
    return [torch.randn(rows, width)]

def get_init_inputs():
    return [width]
'''
COPY = TASK.replace("x.flip(1) * self.weight", "x.t().contiguous()")
PROGRAM = "kernel turn(x: f32[M, N], weight: f32[N]) -> (y: f32[M, N]) {\n  y[i, j] = x[i, N - 1 - j]*weight[j]\n}\n"
MODULE = '''
import torch

class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(width))

    def forward(self, x):
        return RESULT
'''
RIGHT, WRONG = MODULE.replace("RESULT", "x.flip(1) * self.weight"), MODULE.replace("RESULT", "x * self.weight")


@pytest.fixture(scope="module", autouse=True)
def starter():
    yield
    if candidates.starter.cache_info().currsize:
        candidates.starter().stop()
        candidates.starter.cache_clear()


def judge(language, program, task=TASK, told=lambda stage: None, **options):
    candidates.starter()
    at = {"name": "own", "source": task, "changed": "", "bytes": 1 << 16, "flops": 0, "depth": 1.0}
    request = {"task": task, "program": program, "language": language, "secret": "s", "variants": [at], "time": None, **options}
    variants.warm()  # before the fork, as a worker does: seconds, which every child would spend anew
    outcome = child.run(trial.evaluate, request, 120, 8 << 30, None, told)
    candidates.starter().end()
    return outcome


def judged(language, program, task=TASK):
    return outcome_record(judge(language, program, task))


def test_prompts():
    for language in ("triton", "cuda"):
        text = languages.first_message(language, TASK, 3)
        assert "class ModelNew" in text and TASK.strip() in text
        page = (languages.PAGES / f"{language}.md").read_text()
        assert len(page.split()) <= 1800 and page.strip() in text
    assert languages.ending("tegula") == ".tgl" and languages.ending("cuda") == ".py"


@pytest.mark.parametrize("tasks,answers", [
    ("tasks", "programs/other"), ("round5/tasks", "programs-before"), ("round5/tasks", "programs"),
    *(("round6/tasks", f"answers/{language}") for language in ("tegula", "triton", "cuda"))])
def test_rounds_of_this_repository(tasks, answers):
    """The command that docs/teaching.md shows finds an answer for each task, a task for each answer, and an answer for each
    repair."""
    tasks = TREE / "bench/teaching" / tasks
    names = {path.stem for path in tasks.glob("*.py")}
    assert names and names == {path.stem for path in (tasks.parent / answers).iterdir()}
    assert names >= {path.stem for path in tasks.parent.glob(answers.replace("answers/", "repairs/") + "/*")}


def test_answer_of_a_model():
    assert languages.find_answer("cuda", f"So:\n```python\n{RIGHT}```\n") == RIGHT.strip("\n") + "\n"
    with pytest.raises(NoProgram, match="class"):
        languages.find_answer("triton", "```python\nprint(1)\n```")


def test_kernels_must_compute():
    """Torch may allocate, view and copy in forward; what it computes is told."""
    record = judged("triton", RIGHT)
    assert (record["outcome"], record["reason"]) == ("refused", "operators"), record
    assert "flip, mul" in record["message"]
    told = languages.next_message("triton", record, RIGHT)
    assert "flip, mul" in told and "whole file" in told
    copied = MODULE.replace("RESULT", "torch.empty_like(x.t()).copy_(x.t()).contiguous()")
    assert judged("cuda", copied, COPY)["outcome"] == "right"


def test_tensors_of_all_types_reach_an_answer():
    for dtype in (*arena.UNREADABLE, torch.float32, torch.bool):
        one = torch.randint(0, 2, (3, 4 * dtype.itemsize), dtype=torch.uint8).view(dtype).t()
        _, there = pickle.loads(arena.dumps(("load", {"a": one})))
        assert there["a"].dtype == dtype and torch.equal(arena.bits(there["a"]), arena.bits(one))


def test_buffer_in_float8():
    """And an input."""
    task = TASK.replace("self.weight = nn.Parameter(torch.rand(width))",
                        'self.register_buffer("weight", torch.rand(width).to(torch.float8_e4m3fn))') \
        .replace("x.flip(1) * self.weight", "x.float().flip(1) * self.weight.float()") \
        .replace("torch.randn(rows, width)", "torch.rand(rows, width).to(torch.float8_e4m3fn)")
    program = PROGRAM.replace("x: f32", "x: f8e4m3").replace("weight: f32", "weight: f8e4m3") \
        .replace("x[i, N - 1 - j]*weight[j]", "f32(x[i, N - 1 - j])*f32(weight[j])")
    record = judged("tegula", program, task)
    assert record["outcome"] == "right", record


def test_answers_of_files(tmp_path, capsys):
    """A first answer that is wrong, or refused, and a second one; languages beside each other."""
    for place, text in (("tasks/1_turn.py", TASK), ("tasks/2_again.py", TASK), ("answers/tegula/1_turn.tgl", PROGRAM),
                        ("answers/tegula/2_again.tgl", PROGRAM.replace("N - 1 - j", "N - j")),
                        ("answers/torch/1_turn.py", WRONG), ("repairs/torch/1_turn.py", RIGHT),
                        ("answers/torch/2_again.py", RIGHT)):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    run = tmp_path / "run"
    command = ["trial", f"--root={tmp_path}/tasks", "--language=tegula,torch", f"--answers={tmp_path}/answers",
               f"--repairs={tmp_path}/repairs", "--target=cpu", "--bytes=64K", "--timed-turns=3", "--plain",
               "--writer=a test", f"--out={run}"]
    assert cli.main(command) == 1
    told = json.loads((run / "summary.json").read_text())
    tegula, plain = told["tegula"], told["torch"]
    assert (tegula["tasks"], tegula["accepted"], tegula["right_first"], tegula["right"]) == (2, 1, 1, 1)
    assert (plain["tasks"], plain["accepted"], plain["right_first"], plain["right"]) == (2, 2, 1, 2)
    assert tegula["timed"] == 1 and tegula["speed"] > 0 and plain["timed"] == 2 and told["torch"]["everywhere"] == 1
    page = (run / "table.md").read_text()
    assert "Writer: a test." in page and "| 1_turn | right, " in page and "wrong, then right, " in page
    assert "expected" in (run / "messages/torch/1_turn.1.md").read_text()
    assert "whole program" in (run / "messages/tegula/2_again.1.md").read_text()
    capsys.readouterr()
    records = (run / "results.jsonl").read_text()
    assert cli.main(command) == 1 and (run / "results.jsonl").read_text() == records  # nothing is judged twice
    # On another machine, where the first answers' records are all that is left.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "results.jsonl").write_text(records)
    assert cli.main([*command[:-1], f"--out={elsewhere}"]) == 1
    assert (elsewhere / "results.jsonl").read_text() == records and (elsewhere / "table.md").read_text() == page
    capsys.readouterr()
    with gzip.open(tmp_path / "results.jsonl.gz", "wt") as packed:
        packed.write(records)
    for path in (run / "results.jsonl", tmp_path / "results.jsonl.gz"):
        assert cli.main(["trial", f"--table={path}", "--writer=a test"]) == 0 and capsys.readouterr().out == page
    assert cli.main(["trial", f"--table={run}/table.md"]) == 2 and "no results.jsonl" in capsys.readouterr().err


def test_answers_of_a_record(tmp_path):
    """As an endpoint gives them: a repair where the first answer is none."""
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/1_turn.py").write_text(TASK)
    said = [{"task": "torch/1_turn", "turn": 0, "answer": "I cannot."},
            {"task": "torch/1_turn", "turn": 1, "answer": f"```python\n{RIGHT}```"}]
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(one) + "\n" for one in said))
    assert cli.main(["trial", f"--root={tmp_path}/tasks", "--language=torch", f"--replay={tmp_path}/said.jsonl",
                     "--target=cpu", "--bytes=64K", "--no-time", "--plain", f"--out={tmp_path}/run"]) == 0
    records = [json.loads(line) for line in (tmp_path / "run/results.jsonl").read_text().splitlines()]
    assert [one["outcome"] for one in records] == ["no-program", "right"]
    assert "whole file" in records[1]["asked"]["message"]


def test_needs_cuda(tmp_path, capsys):
    (tmp_path / "1_turn.py").write_text(TASK)
    assert cli.main(["trial", f"--root={tmp_path}", "--language=tegula,triton", f"--answers={tmp_path}", "--target=cpu"]) == 2
    assert "answers in triton run on CUDA alone" in capsys.readouterr().err
    if not torch.cuda.is_available():
        assert cli.main(["trial", f"--root={tmp_path}", f"--answers={tmp_path}"]) == 2
        assert "torch sees no CUDA device" in capsys.readouterr().err
    assert cli.main(["trial", f"--root={tmp_path}", "--language=cpp", f"--answers={tmp_path}"]) == 2


def test_table_of_the_last_records(tmp_path):
    """An answer that was judged again, and found right: what a second one was told counts no more."""
    def line(turn, outcome):
        return json.dumps({"language": "cuda", "task": "cuda/a", "outcome": outcome, "reason": "r", "asked": {"turn": turn}}) + "\n"
    (tmp_path / "results.jsonl").write_text(line(0, "call") + line(1, "wrong") + line(0, "right"))
    assert [(one["asked"]["turn"], one["outcome"]) for one in trial_table.read(tmp_path / "results.jsonl")] == [(0, "right")]
    (tmp_path / "results.jsonl").write_text(line(0, "call") + line(1, "right"))
    assert len(trial_table.read(tmp_path / "results.jsonl")) == 2


def test_table_leaves_out_what_is_not_known():
    def record(language, task, turn, outcome, ratio=None):
        return {"language": language, "task": f"{language}/{task}", "outcome": outcome, "reason": "r", "asked": {"turn": turn},
                "timing": {"eager_ratio": ratio} if ratio else None}
    told = trial_table.summarize([record("cuda", "a", 0, "right", 4.0), record("cuda", "b", 0, "refused"),
                                  record("cuda", "b", 1, "right", 1.0), record("cuda", "c", 0, "unanswered"),
                                  record("tegula", "a", 0, "right", 0.5), record("tegula", "b", 0, "wrong")])
    assert told["cuda"] == {"tasks": 2, "lost": 1, "accepted": 1, "right_first": 1, "right": 2, "repaired": True, "timed": 2,
                            "speed": pytest.approx(2.0), "faster": 1, "everywhere": 1, "speed_everywhere": pytest.approx(4.0)}
    assert told["tegula"]["accepted"] == 2 and told["tegula"]["speed_everywhere"] == pytest.approx(0.5)


def test_turns_on_a_device(tmp_path):
    """Who measures waits for those who judge, and keeps others from beginning."""
    turns, seen = DeviceTurns(str(tmp_path)), []

    def measure():
        with turns.alone():
            seen.append("measures")

    def judge():
        with turns.beside_others():
            seen.append("judges")

    with turns.beside_others(), turns.beside_others():
        first = threading.Thread(target=measure)
        first.start()
        time.sleep(0.1)
        second = threading.Thread(target=judge)
        second.start()
        time.sleep(0.1)
        assert seen == []
    first.join(5)
    second.join(5)
    assert seen == ["measures", "judges"]


class Clock:
    """In place of child.py's `time`, which a test can move on."""
    gone = 0.0

    def monotonic(self):
        return time.monotonic() + self.gone


@pytest.mark.parametrize("stage", ["the device", "the device, alone"])
def test_waiting_for_a_turn_is_not_late(stage, tmp_path, monkeypatch):
    """Others have the device for longer than the deadline; whoever waits for the outcome hears of it again and again."""
    clock, seen = Clock(), []
    monkeypatch.setattr(child, "time", clock)
    monkeypatch.setattr(child, "BEAT_S", 0.01)
    turns, others = DeviceTurns(str(tmp_path)), contextlib.ExitStack()
    others.enter_context(turns.alone() if stage == "the device" else turns.beside_others())

    def told(name):
        seen.append(name)
        if seen[-3:] == [stage] * 3 and not clock.gone:
            clock.gone = 1000
            others.close()

    outcome = judge("torch", RIGHT, told=told, turns=str(tmp_path), time={"turns": 2})
    assert outcome_record(outcome)["outcome"] == "right" and clock.gone > outcome["seconds"], (outcome, seen)


@pytest.mark.parametrize("waits", [False, True])
def test_working_or_saying_so_is_late(waits, monkeypatch):
    """A function that may not wait, and what it does after a turn that it waited for."""
    clock = Clock()
    monkeypatch.setattr(child, "time", clock)

    def work(request, stage):
        stage("the device", waits=True)
        if waits:
            stage("works")
        threading.Event().wait()

    def told(name):
        clock.gone += 1000 * (name == ("works" if waits else "the device"))

    work.waits = waits
    outcome = child.run(work, {}, 120, None, told=told)
    assert (outcome["kind"], outcome["stage"]) == ("timeout", "works" if waits else "the device")


def test_arguments_of_kernels():
    assert nvrtc.extents("k", "grid", 7) == (7, 1, 1) and nvrtc.extents("k", "grid", (2, 3.0)) == (2, 3, 1)
    held = nvrtc.pack("k", [4, 8, 4, 8, 8, 1], (3, 5, 0.5, 0.5, None, True))
    assert [one.value for one in held] == [3, 5, 0.5, 0.5, None, 1]
    for sizes, given, text in (([4], (1, 2), "has 1 parameters, 2"), ([8], (torch.ones(1),), "argument 0 is a tensor on cpu, not on the GPU"),
                               ([2], (0.5,), "argument 0 is float")):
        with pytest.raises(nvrtc.CudaError, match=text):
            nvrtc.pack("k", sizes, given)


def test_headers_that_the_page_names():
    """Are in the packages that `./dev` installs beside a GPU, and in a toolkit."""
    try:
        nvrtc._compiler()
    except nvrtc.CudaError as error:
        pytest.skip(f"{error}: installed beside a GPU alone")
    page = (languages.PAGES / "cuda.md").read_text()
    names = ["cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "mma.h", "cooperative_groups.h", "block_scan.cuh", "block_reduce.cuh",
             "cub/block/block_radix_sort.cuh"]
    assert all(name in page for name in names)
    source = "".join(f"#include <{'cub/block/' * name.startswith('block')}{name}>\n" for name in names)
    assert nvrtc.cubin(source + 'extern "C" __global__ void k(float* x) { x[0] = 1.0f; }', "sm_90a")


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_integers_that_a_parameter_does_not_hold(size):
    """A parameter may have a sign or none."""
    least, most = -1 << 8 * size - 1, (1 << 8 * size) - 1
    for one in (least, -1, most >> 1, most):
        assert bytes(nvrtc.pack("k", [size], (one,))[0]) == (one % (most + 1)).to_bytes(size, "little")
    for one in (least - 1, most + 1, 10**40):
        with pytest.raises(nvrtc.CudaError, match=f"^k: argument 1 is {one}, which an integer of {size} bytes"):
            nvrtc.pack("k", [8, size], (0, one))


def test_floats_that_a_parameter_does_not_hold():
    infinite, nan, most = nvrtc.pack("k", [4, 4, 4], (float("-inf"), float("nan"), 3.4028235e38))
    assert infinite.value == float("-inf") and nan.value != nan.value and most.value < float("inf")
    assert nvrtc.pack("k", [8], (1e300,))[0].value == 1e300
    with pytest.raises(nvrtc.CudaError, match="argument 0 is -1e[+]300, which a float of 4 bytes"):
        nvrtc.pack("k", [4], (-1e300,))


@pytest.mark.parametrize("given", [0, -1, 1 << 31, (1 << 32) + 5, (2, 2.5), float("nan"), (), (1, 1, 1, 1)])
def test_extents_that_a_launch_does_not_have(given):
    with pytest.raises(nvrtc.CudaError, match="^k: the grid has one to three extents"):
        nvrtc.extents("k", "grid", given)


class Driver:
    """One kernel of three parameters, in place of a device's driver; notes what it is asked."""

    def __init__(self):
        self.asked = []

    def cuFuncGetParamInfo(self, function, place, offset, size):
        size._obj.value = (8, 4, 4)[min(place.value, 2)]
        return int(place.value >= 3)

    def __getattr__(self, name):
        return lambda *arguments: self.asked.append((name, arguments)) or 0


def test_launches(monkeypatch):
    driver = Driver()
    monkeypatch.setattr(nvrtc, "_driver", lambda: driver)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: types.SimpleNamespace(cuda_stream=0))
    kernel = nvrtc.Kernel(None, "k")
    kernel((5, 2), 256, None, 7, 0.5, shared=100 << 10)
    (_, attribute), (name, launch) = driver.asked[1:]
    assert attribute[1:] == (nvrtc.MAX_DYNAMIC_SHARED, 100 << 10) and name == "cuLaunchKernel"
    assert launch[1:8] == (5, 2, 1, 256, 1, 1, 100 << 10)
    kernel(5, (16, 16), None, 7, 0.5, cooperative=True)
    assert [name for name, _ in driver.asked[3:]] == ["cuLaunchCooperativeKernel"]
    for grid, block, number, shared, text in ((1 << 32, 1, 0, 0, "the grid has"), (1, 0, 0, 0, "the block has"),
                                              (1, 1, 1 << 32, 0, "argument 1 is 4294967296"),
                                              (1, 1, 0, 1 << 32, "shared is 4294967296"), (1, 1, 0, -1, "shared is -1")):
        with pytest.raises(nvrtc.CudaError, match=f"^k: {text}"):
            kernel(grid, block, None, number, 0.5, shared=shared)
    assert len(driver.asked) == 4
