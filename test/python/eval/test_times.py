"""tegula-eval time: the way of a device, with the CPU as the device."""
import io
import json
import os
import re
import signal
import subprocess
import sys

import pytest
import torch
from conftest import RIGHT, SCALE, TREE, module

from tegula_eval import cli
from tegula_eval.commands import display, exit_codes
from tegula_eval.judge import own_sizes
from tegula_eval.program import runner
from tegula_eval.records import baseline, times_table
from tegula_eval.rule import tasks, verdict
from tegula_eval.timing import at_own_sizes

try:
    runner.library_path()
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)

SMALL = SCALE.replace("1024 * 4", "33").replace("features = 512", "features = 17")
NEGATE = "kernel negate(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = -x[i, j] }"
OPTIONS = {"device": "cpu", "threads": 1, "turns": 2, "compiled": False, "tf32_off": True}


@pytest.fixture
def bench(tmp_path):
    """Writes tasks and programs, runs the command on them; its exit code and records by task."""
    def write(number, task, program):
        for kind, text, suffix in (("tasks", task, "py"), ("programs", program, "tgl")):
            folder = tmp_path / kind / "level1"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number}_task.{suffix}").write_text(text)

    def run(*more):
        code = cli.main(["time", f"--root={tmp_path / 'tasks'}", f"--programs={tmp_path / 'programs'}",
                         f"--out={tmp_path / 'out'}", "--target=cpu", "--turns=3", "--no-compiled", "--plain", *more])
        lines = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text().splitlines()]
        return code, {int(one["task"].split("/")[1].split("_")[0]): one for one in lines}
    run.write, run.folder = write, tmp_path
    return run


def own_size(task, program, **job):
    job = {"task": task, "program": program, "program_name": "a.tgl", "secret": "s", "key": "k", **job}
    return own_sizes.OwnSize(job, OPTIONS, None, lambda name: None).judge_and_time()


def test_right_wrong_and_refused(bench, capsys):
    bench.write(1, SMALL, RIGHT)
    bench.write(2, SMALL, RIGHT.replace("relu(", "abs("))
    bench.write(3, module("return -x"), "kernel no(")
    bench.write(4, module("return -x + torch.nn.functional.conv1d(x[None, None, 0], torch.ones(1, 1, 1)).sum()"), NEGATE)
    table = bench.folder / "times.tsv"
    table.write_text("level\ttask\teager_ms\tcompiled_ms\n1\t1_task\t1000\t-\n1\t2_task\t5\t5\n")
    code, records = bench(f"--baseline={table}")
    assert code == 1
    assert [records[number]["outcome"] for number in (1, 2, 3, 4)] == ["right", "wrong", "refused", "wrong"]
    timing, case = records[1]["timing"], records[1]["cases"][0]
    assert case["reference"] == "float64" and timing["turns"] >= 1 and "failed" not in timing
    assert timing["program_s"] > 0 and timing["eager_s"] > 0
    assert timing["bytes"] == 4 * (33 * 17 + 34 * 17 + 34 + 33 * 34)
    assert records[2]["cases"][0]["wrong"] and records[2]["timing"] is None
    told = capsys.readouterr().out
    assert re.search(r"^\[\d/4\] level1/1_task: right \(\d+\.\d s\): [\d.]+ us, eager [\d.]+ us \([\d.]+\)$", told, re.M), told
    assert re.search(r"^\[\d/4\] level1/2_task: wrong \(value\): ", told, re.M)
    assert "1 of 4 right" in told and "recorded: times.tsv" in told and "rec. eager" in told
    page = (bench.folder / "out" / "times.md").read_text()
    assert "| level1/2_task | wrong (value) |" in page and "recorded eager us" in page and "1000000" in page
    # A failure counts as a hundredth: the mean of all is below that of the right ones.
    lines = times_table.speeds(list(records.values()), baseline.read(table))
    assert any("of 1 timed" in line and "of 4 with failures" in line for line in lines)


def test_goes_on_where_it_was_stopped(bench, capsys):
    for number in (1, 2):
        bench.write(number, SMALL.replace("33", str(30 + number)), RIGHT)
    assert bench("--seconds=0")[0] == 1
    assert "2 programs are left" in capsys.readouterr().out
    code, records = bench()
    assert code == 0 and len(records) == 2
    first = records[1]["timing"]
    bench.write(2, SMALL, RIGHT)
    code, records = bench()
    assert code == 0 and records[1]["timing"] == first
    assert len((bench.folder / "out" / "results.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_the_table_of_what_was_done(bench, number):
    bench.write(1, SMALL, RIGHT)
    bench.write(2, module("import time; time.sleep(6000) if x.device.type != 'meta' else 0; return -x"), NEGATE)
    command = [sys.executable, "-m", "tegula_eval", "time", f"--root={bench.folder / 'tasks'}", "--target=cpu", "--plain",
               f"--programs={bench.folder / 'programs'}", f"--out={bench.folder / 'out'}", "--no-compiled", "--deadline=6000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
                          env={**os.environ, "PYTHONPATH": str(TREE / "python")}) as run:
        first = run.stdout.readline()
        assert re.match(r"\[1/2\] level1/1_task: right .* us, eager .* us", first), first + run.stderr.read()
        if number == signal.SIGINT:  # a terminal sends it to all of them
            os.killpg(run.pid, number)
        else:
            run.send_signal(number)
        told, errors = run.communicate(timeout=60)
    assert run.returncode == exit_codes.STOPPED and "the same command goes on from here" in errors, errors
    assert "2_task" not in told and re.search(r"^1/1 +right +[\d.]+ ", told, re.M), told
    assert "1 programs are left" in told and "1 of 1 right" in told, told
    assert "| level1/1_task | right |" in (bench.folder / "out" / "times.md").read_text()
    assert len((bench.folder / "out" / "results.jsonl").read_text().splitlines()) == 1


def test_a_line_has_the_times_of_each_side():
    timing = {"program_s": 542e-6, "program_tf32_s": 301e-6, "eager_s": 1210e-6, "eager_ratio": 4.02, "eager_f32_s": 2e-3,
              "eager_f32_ratio": 3.69, "compile_s": 90e-6, "compile_ratio": 0.3}
    record = {"task": "level1/1_a", "outcome": "right", "flags": [], "seconds": 1.84, "timing": timing}
    assert display.line(record) == ("level1/1_a: right (1.8 s): 542 us, at TF32 301 us, eager 1210 us (4.02), "
                                    "without TF32 2000 us (3.69), torch.compile 90.0 us (0.30)")
    del timing["program_tf32_s"], timing["eager_f32_ratio"], timing["compile_ratio"]
    assert times_table.medians(record) == "542 us, eager 1210 us (4.02)"
    assert display.line({**record, "timing": None}) == "level1/1_a: right (1.8 s)"
    timing["failed"] = "turn 1: the timed call's result has another shape"
    assert times_table.medians(record) == "wrong while timed: turn 1: the timed call's result has another shape"



def test_a_terminal_keeps_the_lines_with_times():
    shown, timing = display.Live(2, 0), {"program_s": 542e-6, "eager_s": 1210e-6, "eager_ratio": 2.23}
    shown.live.console.file = io.StringIO()
    with shown:
        for name, times in (("1_a", timing), ("2_b", None)):
            record = {"task": f"level1/{name}", "outcome": "right", "flags": [], "seconds": 1.0, "timing": times}
            shown.begin(record["task"])
            shown.end(record)
            shown.done(record["task"])
    told = shown.live.console.file.getvalue()
    assert "level1/1_a: right (1.0 s): 542 us, eager 1210 us (2.23)" in told and "2_b: right" not in told


def test_what_ends_the_process_is_the_outcome_of_its_task_alone(bench):
    die = "import os; os.kill(os.getpid(), 11) if x.device.type != 'meta' else 0; return -x"
    bench.write(1, module(die), NEGATE)
    bench.write(2, module("import time; time.sleep(6000) if x.device.type != 'meta' else 0; return -x"), NEGATE)
    bench.write(3, module("return -x"), NEGATE)
    for deadline in (3, 60):  # on a busy machine other stages may take longer than the first
        code, records = bench(f"--deadline={deadline}", "--retry=timeout")
        told = [(records[number]["outcome"], records[number]["reason"]) for number in (1, 2, 3)]
        if told[0][0] == "crashed" and told[1] == ("timeout", "eager") and told[2][0] == "right":
            break
    assert code == 1 and told == [("crashed", "eager"), ("timeout", "eager"), ("right", "")]


def test_float64_that_takes_too_long_is_left_out(bench):
    bench.write(1, module("import time; time.sleep(6000 if x.dtype == torch.float64 else 0); return -x"), NEGATE)
    for deadline in (3, 60):
        code, records = bench(f"--deadline={deadline}", "--retry=timeout")
        if code == 0:
            break
    case = records[1]["cases"][0]
    assert code == 0 and case["reference"] == "float32" and "deadline" in case["reference_why"]


def test_without_float64_the_error_of_float32_counts(monkeypatch):
    tried = []

    def no_room(model):
        tried.append(1)
        raise torch.OutOfMemoryError("CUDA out of memory")
    monkeypatch.setattr(own_sizes, "in_float64", no_room)
    right = own_size(SMALL, RIGHT)
    case = right["cases"][0]
    assert right["outcome"] == "right" and case["reference"] == "float32" and len(tried) == 2
    assert 1e-9 < case["reference_error"] < 1e-5
    for program in (RIGHT.replace("relu(", "abs("), RIGHT.replace("factor*", "1.0001*factor*")):
        assert own_size(SMALL, program)["outcome"] == "wrong"


def test_module_that_writes_into_its_input():
    for text, outcome in ((NEGATE, "right"), (NEGATE.replace("-x", "x"), "wrong")):
        assert own_size(module("return x.neg_()"), text)["outcome"] == outcome


KEEPS = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.hidden = torch.nn.Linear(6, 6), torch.zeros(5, 6)

    def forward(self, x, h):
        self.hidden.copy_(h)
        self.hidden = torch.tanh(self.linear(x + self.hidden))
        return self.hidden

def get_inputs():
    return [torch.rand(5, 6), torch.rand(5, 6)]

def get_init_inputs():
    return []
"""
OF_KEEPS = """
kernel k(x: f32[M, K], h: f32[M, K], linear_weight: f32[N, K], linear_bias: f32[N]) -> (y: f32[M, N]) {
  y[i, j] = tanh(sum((x[i, k] + h[i, k])*linear_weight[j, k] for k) + linear_bias[j])
}
"""


def test_module_that_keeps_a_tensor():
    """Beside parameters and buffers: it is in float64 for the reference alone, not when eager mode is timed."""
    record = own_size(KEEPS, OF_KEEPS)
    assert record["outcome"] == "right" and record["cases"][0]["reference"] == "float64", record
    assert "failed" not in record["timing"]


def test_random_and_dropout():
    assert own_size(module("return -x + torch.rand_like(x)"), NEGATE)["outcome"] == "unjudged"
    record = own_size(module("return -torch.nn.Dropout(0.5)(x)"), NEGATE)
    assert record["outcome"] == "unjudged" and record["flags"] == ["random"]
    text = module("return self.drop(x)").replace("    def forward", "    def __init__(self, p):\n        super()."
                                                 "__init__()\n        self.drop = torch.nn.Dropout(p)\n\n    def forward")
    record = own_size(text.replace("return []", "return [0.5]"), NEGATE.replace("-x", "x"))
    assert record["outcome"] == "right" and record["flags"] == ["dropout-off"]


def test_torch_compile_that_fails_is_told(monkeypatch):
    def fails(model):
        raise RuntimeError("no compiler")
    monkeypatch.setattr(torch, "compile", fails)
    job = {"task": SMALL, "program": RIGHT, "program_name": "a.tgl", "secret": "s", "key": "k"}
    record = own_sizes.OwnSize(job, {**OPTIONS, "compiled": True}, None, lambda name: None).judge_and_time()
    assert record["timing"]["compile_failed"] == "RuntimeError: no compiler" and record["timing"]["eager_s"] > 0


def test_result_of_a_timed_call_is_looked_at():
    from tegula_eval.timing.at_own_sizes import _differs
    x = torch.randn(100)
    assert not _differs([x], [x + 1e-6 * torch.randn(100)], [1e-6])
    assert _differs([x], [torch.zeros(100)], [1e-6]) and _differs([x], [x * 1.01], [1e-6])
    assert _differs([x], [x[:50]], [0.0]) and _differs([torch.arange(9)], [torch.zeros(9).long()], [0.0])


def test_parts_are_compared_as_the_whole(monkeypatch):
    torch.manual_seed(0)
    exact = torch.randn(7, 33, dtype=torch.float64)
    expected = exact.float()
    wrong = expected.clone()
    wrong[5, 30:] += 1e-3
    whole = [verdict.judge(one, expected, exact, 10) for one in (expected, wrong)]
    measured = verdict.measure_error(wrong, exact)
    monkeypatch.setattr(verdict, "CHUNK", 10)
    parts = [verdict.judge(one, expected, exact, 10) for one in (expected, wrong)]
    assert parts[0].right and not parts[1].right and parts[1].wrong == whole[1].wrong
    assert parts[1].pattern == whole[1].pattern and parts[1].wrong_share == whole[1].wrong_share
    again = verdict.measure_error(wrong, exact)
    assert again.at == measured.at and again.worst == measured.worst and again.norm == pytest.approx(measured.norm)


def test_tables_that_are_none(tmp_path):
    for name, text in (("a.tsv", "no table"), ("b.jsonl", "{"), ("c.jsonl", "[]\n"), ("d.tsv", "")):
        (tmp_path / name).write_text(text)
        with pytest.raises(tasks.TaskError):
            baseline.read(tmp_path / name)
    with pytest.raises(tasks.TaskError):
        baseline.read(tmp_path / "missing.tsv")
    (tmp_path / "run.jsonl").write_text(json.dumps({"task": "level1/1_a", "timing": {"eager_s": 2.0}}) + "\n")
    assert baseline.read(tmp_path / "run.jsonl").of("level1/1_a") == {"eager": 2.0}


CONVOLUTION = "kernel conv(x: f32[N, K], w: f32[O, K, 1]) -> (y: f32[N, O]) { y[n, o] = sum(x[n, k] * w[o, k, 0] for k) }"
ROUNDS = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.rand(8, 64, 1))
    def forward(self, x):
        low = torch.backends.cudnn.allow_tf32 and x.dtype == torch.float32
        x = x.bfloat16().float() if low else x
        return torch.nn.functional.conv1d(x[:, :, None], self.w)[:, :, 0]
def get_inputs():
    return [torch.rand(33, 64)]
def get_init_inputs():
    return []
"""


def test_what_is_wrong_at_tf32_alone_is_timed_without(monkeypatch):
    compile_for = own_sizes.compile_for

    def other_at_tf32(program, binding, target, options, precision=None):
        text = CONVOLUTION.replace("sum(", "1.5*sum(") if precision else CONVOLUTION
        return compile_for(runner.Program(text, "a.tgl"), binding, target, options, precision)
    monkeypatch.setattr(own_sizes, "compile_for", other_at_tf32)
    job = {"task": ROUNDS, "program": CONVOLUTION, "program_name": "a.tgl", "secret": "s", "key": "k"}
    record = own_sizes.OwnSize(job, {**OPTIONS, "precision": "equal"}, None, lambda name: None).judge_and_time()
    assert record["outcome"] == "right" and [one["outcome"] for one in record["cases"]] == ["right", "wrong"]
    assert record["timing"]["program_s"] > 0 and "program_tf32_s" not in record["timing"]
    page = times_table.as_markdown([{**record, "task": "level1/1_a", "level": 1}], {}, baseline.read(None))
    assert "wrong at TF32, so timed without" in page


def test_a_module_that_rounds_is_timed_at_its_own_precision_too():
    def record(task, program, precision):
        job = {"task": task, "program": program, "program_name": "a.tgl", "secret": "s", "key": "k"}
        return own_sizes.OwnSize(job, {**OPTIONS, "precision": precision}, None, lambda name: None).judge_and_time()
    both = record(ROUNDS, CONVOLUTION, "equal")
    assert both["outcome"] == "right" and [one["variant"] for one in both["cases"]] == ["own", "tf32"]
    timing = both["timing"]
    assert timing["eager_f32_s"] > 0 and "failed" not in timing and len(both["kernels"]) == 2
    page = times_table.as_markdown([{**both, "task": "level1/1_a", "level": 1}], {}, baseline.read(None))
    assert "at TF32 us" in page
    one = record(ROUNDS, CONVOLUTION, "f32")
    assert "program_tf32_s" not in one["timing"] and len(one["cases"]) == 1
    exact = record(ROUNDS.replace("torch.backends.cudnn.allow_tf32 and", "False and"), CONVOLUTION, "equal")
    assert "program_tf32_s" not in exact["timing"] and exact["outcome"] == "right"
    ratios = at_own_sizes._summary({"program": [2.0], "program_tf32": [1.0], "eager": [3.0], "eager_f32": [4.0]})
    assert ratios["eager_ratio"] == 3 and ratios["eager_f32_ratio"] == 2
    wrong = record(ROUNDS, CONVOLUTION.replace("sum(", "1.5*sum("), "equal")
    assert wrong["outcome"] == "wrong"


@torch.library.custom_op("tegula_test::convolution", mutates_args=())
def convolution(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """As cuDNN's: of operands that are rounded where it may."""
    if torch.backends.cudnn.allow_tf32 and x.dtype == torch.float32:
        x, w = x.bfloat16().float(), w.bfloat16().float()
    return torch.nn.functional.conv1d(x, w)


@torch.library.custom_op("tegula_test::cudnn_rnn", mutates_args=())
def recurrent(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    low = torch.backends.cudnn.allow_tf32 and x.dtype == torch.float32
    return (x.bfloat16().float() if low else x) * w


@pytest.mark.parametrize("forward, rounded, precision", [
    (lambda x, w, v: convolution(x, w), {"convolution"}, "tf32"),
    (lambda x, w, v: convolution(x, w).sum(-1) @ v, {"convolution"}, "conv_tf32"),
    (lambda x, w, v: torch.nn.functional.linear(convolution(x, w).transpose(1, 2), v.T), {"convolution"}, "conv_tf32"),
    (lambda x, w, v: torch.nn.functional.scaled_dot_product_attention(*[convolution(x, w)]*3), {"convolution"}, "conv_tf32"),
    (lambda x, w, v: recurrent(x, w[0, 0, 0]).sum(-1) @ v[:64], {"cudnn_rnn"}, "tf32"),
    (lambda x, w, v: (recurrent(x, w[0, 0, 0]).mean() + convolution(x, w)).sum(-1) @ v,
     {"cudnn_rnn", "convolution"}, "conv_tf32"),
    (lambda x, w, v: torch.nn.functional.conv1d(x, w).sum(-1) @ v, set(), "conv_tf32"),
])
def test_products_are_rounded_where_the_module_rounds(forward, rounded, precision):
    torch.manual_seed(0)
    tensors = torch.rand(3, 64, 9), torch.rand(65, 64, 3), torch.rand(65, 5)
    with own_sizes.Seen(asks_rounding=True) as seen:
        forward(*tensors)
    assert seen.rounded == rounded and seen.precision == precision and seen.convolves
    torch.backends.cuda.matmul.allow_tf32 = True  # then matrix products round as well
    try:
        assert seen.precision == "tf32"
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


def test_a_module_with_products_too_rounds_convolutions_alone(monkeypatch):
    task = ROUNDS.replace("self.w =", "self.v = torch.nn.Parameter(torch.rand(8, 4)); self.w =").replace(
        "[:, :, 0]\n", "[:, :, 0] @ self.v\n")
    program = """kernel both(x: f32[N, K], w: f32[O, K, 1], v: f32[O, M]) -> (y: f32[N, M]) {
      h[n, o, i in 1] = sum(x[n, k] * w[o, k, i] for k)
      y[n, m] = sum(h[n, o, 0] * v[o, m] for o)
    }"""
    asked, compile_for = [], own_sizes.compile_for

    def told(program, binding, target, options, precision=None):
        asked.append(precision)
        return compile_for(program, binding, target, options, precision)
    monkeypatch.setattr(own_sizes, "compile_for", told)

    def record(text, precision):
        job = {"task": text, "program": program if text == task else CONVOLUTION, "program_name": "a.tgl",
               "secret": "s", "key": "k"}
        return own_sizes.OwnSize(job, {**OPTIONS, "precision": precision}, None, lambda name: None).judge_and_time()
    both = record(task, "equal")
    assert both["outcome"] == "right" and asked == [None, "conv_tf32"]
    assert [(one["variant"], one.get("precision")) for one in both["cases"]] == [("own", None), ("tf32", "conv_tf32")]
    assert both["timing"]["program_tf32_s"] > 0
    page = times_table.as_markdown([{**both, "task": "level3/5_a", "level": 3}], {}, baseline.read(None))
    assert "convolutions alone, since the module has matrix products: 3/5" in page
    alone = record(ROUNDS, "equal")
    assert asked[2:] == [None, "tf32"] and alone["cases"][1]["precision"] == "tf32"
    page = times_table.as_markdown([{**alone, "task": "level3/5_a", "level": 3}], {}, baseline.read(None))
    assert "convolutions alone" not in page
    # Asked for, it is the precision of the program as it is, and of what it is held against.
    whole = record(task, "conv_tf32")
    assert whole["outcome"] == "right" and len(whole["cases"]) == 1 and "lower-precision" not in whole["flags"]
