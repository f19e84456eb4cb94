"""ModelNew files of others: what candidates have done to look right or fast, tried on the harness. It is told, or has
no effect; and honest files pass."""
import json
import os

import pytest
import torch
from conftest import SCALE, module

from tegula_eval import cli
from tegula_eval.confine import child
from tegula_eval.judge import candidates
from tegula_eval.records.outcomes import outcome_record
from tegula_eval.rule import variants
from tegula_eval.suites import results

# Enough work that a call takes longer than what stands around it.
TASK = SCALE.replace("1024 * 4", "64").replace("512", "96")

HEAD = '''
import torch

class ModelNew(torch.nn.Module):
    def __init__(self, features, factor=0.5, window=None):
        super().__init__()
        self.fc = torch.nn.Linear(features, 2 * features)
        self.factor, self.calls, self.kept = factor, 0, {}

    def right(self, x):
        return torch.relu(torch.addmm(self.fc.bias, x, self.fc.weight.t())) * self.factor
'''


@pytest.fixture(scope="module", autouse=True)
def starter():
    yield candidates.starter()
    candidates.starter().stop()
    candidates.starter.cache_clear()


def judged(program, task=TASK, turns=0, deadline=120, memory=8 << 30, **options):
    request = {"task": task, "program": program, "secret": "s", "seeds": 2, "bytes": 1 << 22, "flops": 1 << 24,
               "time": {"turns": turns} if turns else None, **options}
    variants.warm()  # before the fork, as a worker does: seconds, which every child would spend anew
    outcome = child.run(candidates.evaluate, request, deadline, memory, None)
    candidates.starter().end()
    return outcome_record(outcome)


def forward(body, before=""):
    lines = "\n".join(f"        {line}" for line in body.strip("\n").splitlines())
    return f"{before}\n{HEAD}\n    def forward(self, x):\n{lines}\n"


def test_honest():
    record = judged(forward("return self.right(x)"), turns=3)
    assert record["outcome"] == "right", record
    assert {one["distribution"] for one in record["cases"]} == {"task", "normal", "large", "negative", "special"}
    timing = record["timing"]
    assert timing["eager_s"] > 0 and timing["program_s"] > 0 and timing["call_s"] > 0


@pytest.mark.parametrize("exactly", [True, False])
def test_all_calls_decide_by_their_tolerance(monkeypatch, exactly):
    """Also those after our verdict is wrong, at inputs that a benchmark does not draw."""
    calls = [candidates.Call(0, "task", True, False, False), candidates.Call(1, "large", True, False, False),
             candidates.Call(2, "task", exactly, False, False)]
    monkeypatch.setattr(candidates._Judge, "_plan", lambda self: calls)
    rule = {"form": "sum", "atol": 1e-4, "rtol": 1e-4}
    for last, passes in ((1, True), (0, False)):
        record = judged(forward(f"self.calls += 1\nreturn self.right(x) * (0, 1, 0, {last})[self.calls]"), rule=rule,
                        turns=0 if exactly else 1)
        assert (record["outcome"], record["reason"]) == ("wrong", "value") and record["message"].startswith("call 1, large")
        assert record["task_cases"] == 2 and record["cases"][-1]["distribution"] == "large"
        assert results.passes_theirs(record) is passes


def test_of_large_results_a_part_is_kept(monkeypatch):
    """By all calls the same part, so that they can be compared."""
    monkeypatch.setattr(candidates, "KEPT_ELEMENTS", 100)
    record = judged(forward("return self.right(x)"), turns=3)
    assert record["outcome"] == "right" and record["timing"]["eager_ratio"] > 0, record
    record = judged(forward(WRONG["result kept by pointer"]), turns=3)
    assert record["outcome"] == "wrong", record


def test_honest_with_other_names():
    """Parameters that do not have the module's names come from the same seed, as KernelBench has it."""
    text = forward("return self.right(x)").replace("self.fc", "self.layer")
    assert judged(text)["outcome"] == "right"
    assert judged(text.replace("bias,", "bias * 1.01,"))["outcome"] == "wrong"


def test_honest_module_that_writes_to_its_input():
    task = module("return x.relu_()", "torch.randn(rows, 8)")
    text = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x.clamp_(min=0)\n"
    assert judged(text, task)["outcome"] == "right"


KEEPS = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.kept = torch.nn.Linear(8, 8), torch.zeros(16, 8)

    def forward(self, x):
        self.kept = torch.tanh(self.linear(x) + 0 * self.kept)
        return self.kept

def get_inputs():
    return [torch.rand(16, 8)]

def get_init_inputs():
    return []
"""


def test_honest_module_that_keeps_a_tensor():
    """Neither a parameter nor a buffer: what the reference leaves in it in float64 is not there in the next call."""
    record = judged(KEEPS.replace("class Model(", "class ModelNew("), KEEPS, turns=2)
    assert record["outcome"] == "right", record


DROPOUT = module("return torch.softmax(self.drop(x), 1)").replace(
    "    def forward", "    def __init__(self):\n        super().__init__()\n        self.drop = torch.nn.Dropout(0.2)\n\n    def forward")


@pytest.mark.parametrize("chance, outcome", [("0.2", "unjudged"), ("0.0", "right")])
def test_honest_with_dropout(chance, outcome):
    """What it draws nobody knows: in no call, not in the first alone, are its numbers held against the module's."""
    text = DROPOUT.replace("class Model(", "class ModelNew(").replace("0.2", chance)
    assert judged(text, DROPOUT, turns=2)["outcome"] == outcome


WRONG = {
    "result kept by pointer": "key = x.data_ptr()\nif key not in self.kept:\n    self.kept[key] = self.right(x)\nreturn self.kept[key]",
    "result kept by shape": "key = tuple(x.shape)\nif key not in self.kept:\n    self.kept[key] = self.right(x)\nreturn self.kept[key]",
    "the work of all calls done in the last one": '''
y = torch.zeros(len(x), 2*x.shape[1])
self.calls += 1
self.kept[self.calls] = x, y
if self.calls % 4 == 0:
    for one, other in self.kept.values():
        other.copy_(self.right(one))
return y''',
    "work left out from the second call on": "self.calls += 1\nreturn self.right(x) if self.calls < 2 else torch.empty(len(x), 2*x.shape[1])",
    "wrong after the calls that are looked at elsewhere": "self.calls += 1\nreturn self.right(x) * (1 if self.calls < 4 else 1.01)",
    "zeros": "return torch.zeros(len(x), 2*x.shape[1])",
    "what was in memory before": "return torch.empty(len(x), 2*x.shape[1])",
    "lower precision inside": "return (torch.relu(x.bfloat16() @ self.fc.weight.t().bfloat16() + self.fc.bias.bfloat16())*self.factor).float()",
    "half precision inside": "return (torch.relu(x.half() @ self.fc.weight.t().half() + self.fc.bias.half())*self.factor).float()",
    "only the first rows": "y = self.right(x)\ny[len(y)//2:] = 0\nreturn y",
    "the wrong shape": "return self.right(x)[None]",
    "another type": "return self.right(x).double()",
    "what is right for one distribution": "return self.right(x) if x.min() >= 0 else self.right(x.abs())",
    "the result of a module that is found": '''
import gc
for one in gc.get_objects():
    if isinstance(one, torch.nn.Module) and type(one).__name__ == "Model":
        return one(x)
return torch.zeros(len(x), 2*x.shape[1])''',
    "a result of the right shape that is found": '''
import gc
for one in gc.get_objects():
    if isinstance(one, torch.Tensor) and one.shape == (len(x), 2*x.shape[1]) and one is not self.fc.weight:
        return one.detach().clone()
return torch.zeros(len(x), 2*x.shape[1])''',
    "written later by a thread": '''
import threading, time
y = torch.zeros(len(x), 2*x.shape[1])
self.calls += 1
def later(x=x.clone(), call=self.calls):
    while self.calls == call:
        time.sleep(0.001)
    y.copy_(self.right(x))
threading.Thread(target=later, daemon=True).start()
return y''',
}


@pytest.mark.parametrize("what", WRONG)
def test_is_told_wrong(what):
    record = judged(forward(WRONG[what]))
    assert record["outcome"] == "wrong", json.dumps(record)


@pytest.mark.parametrize("what, text, reason", [
    ("inputs changed so that the reference agrees", forward("x.zero_()\nreturn torch.relu(self.fc.bias).expand(len(x), -1)*self.factor"), "inputs"),
    ("inputs scratched though the result is right", forward("y = self.right(x)\nx[0, 0] += 1\nreturn y"), "inputs"),
    ("a tensor that computes when it is looked at", forward("return self.right(x).as_subclass(Lazy)", "import torch\nclass Lazy(torch.Tensor):\n    pass"), "type"),
    ("a verdict of its own", forward('''
import os
for fd in range(3, 64):
    try:
        os.write(fd, b'{"outcome": "right", "reason": "", "message": ""}\\n')
    except OSError:
        pass
return torch.zeros(len(x), 2*x.shape[1])'''), "protocol"),
])
def test_is_told_tampered(what, text, reason):
    record = judged(text)
    assert (record["outcome"], record["reason"]) == ("tampered", reason), record


# Says that it is done before it has begun, in the words of the guest, and computes afterwards.
EARLY = '''
import os, sys
frame = sys._getframe()
while "replies" not in frame.f_locals:
    frame = frame.f_back
os.write(frame.f_locals["replies"], b"{}\\n")
import select
select.select([], [], [], 0.2)
y = self.right(x)
for place in frame.f_locals["guest"].outputs:
    place.copy_(y)
os.read(frame.f_locals["requests"], 1 << 20)
return y
'''


def test_done_is_said_too_early():
    """Told; or where it is so lucky that it is not stopped before it has computed, the clock has run until then."""
    record = judged(forward(EARLY), turns=2)
    assert record["outcome"] in ("wrong", "tampered") or record["timing"]["program_s"] > 0.15, record


CLOCKS = '''
import time, torch
for name in ("perf_counter", "time", "monotonic", "perf_counter_ns", "time_ns", "monotonic_ns"):
    setattr(time, name, lambda: 0)
class Event:
    def __init__(self, *a, **k): pass
    def record(self, *a): pass
    def synchronize(self): pass
    def elapsed_time(self, other): return 1e-6
torch.cuda.Event = Event
torch.cuda.synchronize = lambda *a: None
torch.equal = torch.allclose = lambda *a, **k: True
'''


def test_patched_clocks_have_no_effect():
    wait = "torch.randn(1)\nimport select\nselect.select([], [], [], 0.05)\n"
    record = judged(forward(wait + "return self.right(x)", CLOCKS), turns=3)
    timing = record["timing"]
    assert record["outcome"] == "right" and timing["program_s"] + timing["call_s"] > 0.045, record
    assert timing["eager_s"] < timing["program_s"]


# The C library's clock stands still by machine code, and the system's by a filter of its calls.
BENEATH = '''
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
for name in ("clock_gettime", "gettimeofday", "time"):
    place = ctypes.cast(getattr(libc, name), ctypes.c_void_p).value
    start = place & ~4095
    assert libc.mprotect(start, 8192, 7) == 0
    ctypes.memmove(place, bytes([0x31, 0xc0, 0xc3]), 3)
rules = [(0x20, 0, 0, 0), (0x15, 0, 1, 228), (6, 0, 0, 0x50000), (6, 0, 0, 0x7fff0000)]  # errno 0 for clock_gettime
filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in rules))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(filters)))
assert libc.prctl(22, 2, program, 0, 0) == 0
'''


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the machine code is that of x86-64")
def test_clocks_patched_beneath_python_have_no_effect():
    record = judged(forward("libc.usleep(50000)\nreturn self.right(x)", BENEATH), turns=3)
    assert record["outcome"] == "right", record
    timing = record["timing"]
    assert timing["program_s"] + timing["call_s"] > 0.045 and timing["eager_s"] < timing["program_s"], timing


def test_calls_come_as_chance_chooses():
    """Nobody knows of a call whether it is judged in float64, which numbers it has, or whether it is the last."""
    plans = []
    for _ in range(60):
        judge = candidates._Judge({"time": {"turns": 10}}, lambda name: None, {})
        plans.append(judge._plan())
    assert len({len(plan) for plan in plans}) > 1
    for plan in plans:
        assert {one.distribution for one in plan if one.exactly} == set(candidates.DISTRIBUTIONS)
        timed = [one for one in plan if one.timed]
        assert len(timed) >= 10 and {one.distribution for one in timed} == set(candidates.DISTRIBUTIONS)
        assert abs(sum(one.module_first for one in timed) - len(timed) / 2) <= 0.5
    for place in range(10):
        assert {plan[place].distribution for plan in plans} == set(candidates.DISTRIBUTIONS)
        assert {plan[place].exactly for plan in plans} == {False, True}
        assert {plan[place].module_first for plan in plans} == {False, True}


def test_who_runs_second_gains_nothing():
    """Who runs second finds the inputs in the cache. Of alike files neither is told to be faster, whatever that is worth."""
    judge = candidates._Judge({"time": {"turns": 5}}, lambda name: None, {"flags": []})
    judge.moved, judge.nothing_s, judge.kept = 1 << 20, 0.0, [None]
    judge.variant = type("Variant", (), {"name": "own", "cost": type("Cost", (), {"depth": 1.0})})
    judge._inputs = lambda place, distribution: []
    calls = [candidates.Call(place, "task", True, True, module_first, seconds=1e-3 if module_first else 2e-3,
                             module_seconds=2e-3 if module_first else 1e-3, module=[torch.randn(9)], chosen=[None])
             for place, module_first in enumerate([True, False, True, True, False])]
    judge._report(calls)
    assert judge.record["timing"]["eager_ratio"] == pytest.approx(1)


def test_the_module_is_not_made_slow():
    """What a candidate changes in its libraries, and how slow it makes them, is its own."""
    record = judged(forward("return self.right(x)", '''
import torch, select
def slow(self, x, of=torch.nn.Linear.forward):
    select.select([], [], [], 1)
    return of(self, x)
torch.nn.Linear.forward = slow
torch.set_num_threads(1)
torch.backends.mkldnn.enabled = torch.backends.cudnn.enabled = False
'''), turns=3)
    assert record["outcome"] == "right" and record["timing"]["eager_s"] < 0.9, record


@pytest.mark.parametrize("moved, program_s, found", [(1 << 30, 1e-5, "time"), (1 << 20, 1e-5, "excessive"),
                                                     (1 << 20, 5e-4, None)])
def test_speed_that_cannot_be(moved, program_s, found):
    judge = candidates._Judge({"time": {"turns": 3}}, lambda name: None, {"flags": []})
    judge.moved, judge.nothing_s, judge.kept = moved, 0.0, [None]
    judge.variant = type("Variant", (), {"name": "own", "cost": type("Cost", (), {"depth": 1.0})})
    judge._inputs = lambda place, distribution: []
    calls = [candidates.Call(place, "task", True, True, place == 1, seconds=program_s, module_seconds=1e-3,
                             module=[torch.randn(9)], chosen=[None]) for place in range(3)]
    if found == "time":
        with pytest.raises(candidates.Ended) as caught:
            judge._report(calls)
        assert (caught.value.outcome, caught.value.reason) == ("tampered", "time")
    else:
        judge._report(calls)
        assert judge.record["flags"] == ([found] if found else [])


def test_patched_comparison_has_no_effect():
    assert judged(forward("return self.right(x) + 1", CLOCKS))["outcome"] == "wrong"


def test_work_that_is_done_between_calls():
    """A thread that waits for the next inputs finds none: they come when the clock runs."""
    text = forward('''
import threading, time
if not self.calls:
    def watch():
        before = x.clone()
        while True:
            if not torch.equal(before, x):
                before = x.clone()
                self.kept["y"] = self.right(before)
    threading.Thread(target=watch, daemon=True).start()
self.calls += 1
return self.kept.get("y", torch.zeros(len(x), 2*x.shape[1]))''')
    assert judged(text)["outcome"] == "wrong"


@pytest.mark.parametrize("text, outcome, reason", [
    ("def", "refused", "load"),
    ("import torch", "refused", "load"),
    ("import no_such_module", "refused", "load"),
    (forward("raise ValueError('no')"), "call", "call"),
    (forward("import ctypes\nctypes.string_at(0)"), "crashed", "candidate"),
    (forward("import os\nos._exit(0)"), "crashed", "candidate"),
    (forward("return [self.right(x), x]"), "wrong", "count"),
    (forward("return torch.ones(1 << 36)"), "call", "call"),
])
def test_bad_files(text, outcome, reason):
    record = judged(text)
    assert (record["outcome"], record["reason"]) == (outcome, reason), record
    assert outcome != "crashed" or "ended" in record["message"]


def test_deadline():
    for deadline in (2, 10, 60):  # on a busy machine it may not get so far in the first
        record = judged(forward("while True: pass"), deadline=deadline)
        assert record["outcome"] == "timeout"
        if record["reason"] == "call 0":
            return
    raise AssertionError(record)


def test_the_command(root, tmp_path, capsys):
    folder = tmp_path / "candidates"
    (folder / "level1").mkdir(parents=True)
    (folder / "level1" / "3_Scale.py").write_text(forward("return self.right(x)"))
    negate = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return {}\n"
    (folder / "level_2_problem_11_sample_0_kernel.py").write_text(negate.format("x"))
    command = ["kernelbench", f"--root={root}", f"--candidates={folder}", f"--out={tmp_path / 'out'}", "--plain",
               "--bytes=64K", "--flops=1e6"]
    assert cli.main(command) == 1
    told = capsys.readouterr().out
    assert "level2/11_Negate: wrong (value)" in told and "1 of    2 right" in told
    (folder / "level_2_problem_11_sample_0_kernel.py").write_text(negate.format("-x"))
    assert cli.main(command) == 0
    lines = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text().splitlines()]
    assert [one["outcome"] for one in lines] == ["right", "wrong", "right"]


SIDE_STREAM = '''
stream = torch.cuda.Stream()
y = torch.empty(len(x), 2*x.shape[1], device=x.device)
with torch.cuda.stream(stream):
    torch.cuda._sleep(1 << 28)
    y.copy_(self.right(x))
return y
'''


# Lines of the L2 cache set aside: the right answer, but what stays there shall be gone when the next call begins.
PERSISTS = '''
import ctypes, torch
torch.zeros(1, device="cuda")
assert ctypes.CDLL("libcuda.so.1").cuCtxSetLimit(6, ctypes.c_size_t(16 << 20)) == 0
'''


@pytest.mark.gpu
@pytest.mark.skipif(not os.path.exists("/dev/nvidiactl"), reason="there is no CUDA device")  # without touching it
@pytest.mark.parametrize("text, outcome, reason", [
    (forward("return self.right(x)"), "right", ""),
    (forward(SIDE_STREAM), "wrong", "value"),
    (forward(WRONG["result kept by pointer"]), "wrong", "value"),
    (forward(WRONG["half precision inside"]), "wrong", "value"),
    (forward("y = self.right(x)\nx[0, 0] += 1\nreturn y"), "tampered", "inputs"),
    (forward("return torch.empty(len(x), 2*x.shape[1], device=x.device)"), "wrong", None),
    (forward("return self.right(x)", PERSISTS), "right", ""),
])
def test_on_a_gpu(text, outcome, reason):
    record = judged(text, target="cuda", turns=5)
    assert record["outcome"] == outcome and reason in (None, record["reason"]), record


@pytest.mark.gpu
@pytest.mark.skipif(not os.path.exists("/dev/nvidiactl"), reason="there is no CUDA device")
def test_patched_clocks_on_a_gpu():
    record = judged(forward("torch.cuda._sleep(1 << 27)\nreturn self.right(x)", CLOCKS), target="cuda", turns=5)
    assert record["outcome"] == "right" and record["timing"]["program_s"] > 0.03, record
    print(record["timing"])


# What a candidate leaves running on the device, with the guest's own wait taken away.
QUEUED = """
guest_frame().f_locals["guest"].wait = lambda: None
if not hasattr(self, "stream"):
    self.stream = torch.cuda.Stream()
{}
"""
FRAME = """
import sys
def guest_frame():
    frame = sys._getframe()
    while "replies" not in frame.f_locals:
        frame = frame.f_back
    return frame
"""
ON_THE_DEVICE = {
    "work on another stream, done long after": """
y = torch.empty(len(x), 2*x.shape[1], device=x.device)
with torch.cuda.stream(self.stream):
    torch.cuda._sleep(1 << 27)
    y.copy_(self.right(x))
return y""",
    "a kernel that outlives the call": """
y = self.right(x)
with torch.cuda.stream(self.stream):
    torch.cuda._sleep(1 << 28)
return y""",
    "a kernel that outlives all calls": """
y = self.right(x)
if not self.kept:
    with torch.cuda.stream(self.stream):
        for _ in range(100):
            torch.cuda._sleep(1 << 28)
self.kept[0] = 1
return y""",
}


@pytest.mark.gpu
@pytest.mark.skipif(not os.path.exists("/dev/nvidiactl"), reason="there is no CUDA device")
@pytest.mark.parametrize("what", ON_THE_DEVICE)
def test_what_runs_on_the_device_when_the_clock_has_stopped(what):
    record = judged(forward(QUEUED.format(ON_THE_DEVICE[what].strip()), FRAME), target="cuda", turns=5)
    assert record["outcome"] in ("tampered", "wrong"), record
    assert record["outcome"] == "wrong" or record["reason"] == "device", record


@pytest.mark.gpu
@pytest.mark.skipif(not os.path.exists("/dev/nvidiactl"), reason="there is no CUDA device")
def test_an_answer_before_the_work():
    """Short work that the device does before results are read is in the clock."""
    work = "torch.cuda._sleep(1 << 22)\nreturn self.right(x)"  # 2 to 3 ms
    honest = judged(forward(work), target="cuda", turns=9)
    early = judged(forward(QUEUED.format(work), FRAME), target="cuda", turns=9)
    assert honest["outcome"] == "right", honest
    print(honest["timing"], early["outcome"], early["reason"], early["timing"])
    assert early["outcome"] in ("tampered", "wrong") or \
        early["timing"]["program_s"] > 0.8 * honest["timing"]["program_s"], early


@pytest.mark.gpu
@pytest.mark.skipif(not os.path.exists("/dev/nvidiactl"), reason="there is no CUDA device")
@pytest.mark.parametrize("rows, features", [(64, 96), (4096, 512)])
def test_honest_files_are_alike_on_a_gpu(rows, features):
    """One file, judged four times: the least speedup and the largest."""
    task, ratios = SCALE.replace("1024 * 4", str(rows)).replace("512", str(features)), []
    for _ in range(4):
        record = judged(forward("return self.right(x)"), task=task, target="cuda", turns=20)
        assert record["outcome"] == "right", record
        ratios.append(record["timing"]["eager_ratio"])
    print(ratios, record["timing"], record["isolation"])
    assert max(ratios) < 1.1*min(ratios), ratios
