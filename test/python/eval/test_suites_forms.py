"""`tegula-eval run` on small files in the form of each other benchmark, and our own programs (bench/suites/programs) on them."""
import ast
import json

import pytest
import suite_deck
import torch
from conftest import module
from suite_files import OWN_PROGRAMS, RMS, flashinfer, outcomes, records, rms_definition, run, safetensors, workload
from suite_operators import EMPTY, OPERATORS

from tegula_eval.commands import exit_codes
from tegula_eval.program import runner
from tegula_eval.rule import tolerance
from tegula_eval.rule.reference import make_case
from tegula_eval.suites import (backendbench, definitions, flashinfer_bench, kernelbench_com, results, robust_kbench, sol_execbench,
                                tritonbench)
from tegula_eval.suites.suite import make_task

try:
    runner.library_path()
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)


def programs(folder, **texts):
    for name, text in texts.items():
        path = folder / f"{name}.tgl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return f"--programs={folder}"


def test_sol_execbench(tmp_path):
    """A tolerance for each workload, an axis that is computed, inputs that the definition draws itself, the SOL score."""
    folder = tmp_path / "L1" / "rms"
    folder.mkdir(parents=True)
    definition = rms_definition(axes={"rows": {"type": "var"}, "batch_size": {"type": "expr", "expression": "rows * 2"},
                                      "hidden_size": {"type": "const", "value": 32}},
                                custom_inputs_entrypoint="draw",
                                reference=rms_definition()["reference"] + "\ndef draw(axes_and_scalars, device):\n"
                                "    return {'weight': torch.rand(axes_and_scalars['hidden_size'], device=device).bfloat16() + 1}\n")
    (folder / "definition.json").write_text(json.dumps(definition))
    one = workload("a", {"rows": 5}, weight={"type": "custom"}, hidden_states={"type": "random"})
    (folder / "workload.jsonl").write_text(json.dumps({**one, "tolerance": {"max_atol": 1e-2, "max_rtol": 1e-2}}) + "\n")
    code, told = run("sol-execbench", tmp_path, tmp_path / "out", programs(tmp_path / "p", rms=RMS), "--time", "--timed-turns=2",
                     f"--solutions={tmp_path / 'made'}")
    assert code == exit_codes.RIGHT and outcomes(told) == {"rms": "right"}
    score = dict(told["theirs"])
    assert score["problems passed"] == 1 and 0 < score["SOL score (eager mode as the baseline, our bound)"] <= 1
    [path] = (tmp_path / "made").glob("solutions/**/*.json")
    assert json.loads(path.read_text())["spec"]["languages"] == ["pytorch"]
    code, told = run("sol-execbench", tmp_path, tmp_path / "out2", programs(tmp_path / "p", rms=RMS.replace("1e-5", "0.5")))
    assert code == exit_codes.NOT_RIGHT and not told["tasks"][0]["theirs"]


def test_sol_score():
    assert sol_execbench.sol_score(2, 2, 1) == 0.5 and sol_execbench.sol_score(1, 2, 1) == 1
    assert sol_execbench.sol_score(3, 1, 1) == 0 and sol_execbench.sol_score(0.5, 2, 1) == 1
    assert sol_execbench.sol_score(4, 2, 1) == 0.25


REFERENCE = '''
import torch
OP_TYPE = "scale"
BATCH = 4
N = 8

class Model(torch.nn.Module):
    def __init__(self, batch, n):
        super().__init__()
        self.register_buffer("weight", torch.rand(n) + 1)

    def forward(self, x):
        return x * self.weight

def get_inputs():
    torch.manual_seed(0)
    return [torch.randn(BATCH, N)]

def get_init_inputs():
    return [BATCH, N]
'''
SCALED = "kernel scaled(x: f32[M, N], weight: f32[N]) -> (y: f32[M, N]) { y[i, j] = x[i, j] * weight[j] }"


def deck(root, **files):
    folder = root / "hard" / "problems-x" / "01_scale"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {
            "reference.py": REFERENCE,
            "shapes.py": 'SHAPES = [\n    {"batch": 3, "N": 8},  # small\n    {"batch": 5, "N": 16},\n]\n',
            "check.py": 'def main():\n    for shape in SHAPES:\n        reference.BATCH = shape["batch"]\n        reference.N = shape["N"]\n',
            "problem.yaml": "regime: memory\nbytes_formula: \"batch * N * 8\"\nhardware: [X1]\ntolerance:\n  float32: 0.001\n"
                            "forbidden:\n  - \"torch.compile\"\n", **files}.items():
        (folder / name).write_text(text)
    card = root / "hard" / "src" / "hardware" / "x1.py"
    card.parent.mkdir(parents=True, exist_ok=True)
    card.write_text("X1 = Card(peak_bandwidth_gb_s=100.0, peak_tflops_dense={\"bf16\": 7.0})\n")
    return root


def test_kernelbench_com(tmp_path):
    """Each shape is a workload; names of the reference are found in check.py; inputs are new although the task sets a seed."""
    root = deck(tmp_path / "site")
    code, told = run("kernelbench.com", root, tmp_path / "out", programs(tmp_path / "p", **{"01_scale": SCALED}), "--own", "--time",
                     "--timed-turns=2")
    assert code == exit_codes.RIGHT and outcomes(told) == {"01_scale": "right"} and told["tasks"][0]["group"] == "hard"
    assert 0 < dict(told["theirs"])["peak fraction"] < 1 and told["tasks"][0]["parts"] == 2
    texts = [one["request"]["task"] for one in records(tmp_path / "out", "kernelbench.com")]
    assert "BATCH = 3" in texts[0] and "BATCH = 5" in texts[1] and "N = 16" in texts[1]
    one, other = (make_case(texts[0], seed).inputs[0] for seed in (1, 2))
    assert not torch.equal(one, other)
    # A solution.py of theirs, and one that uses what is forbidden.
    (tmp_path / "01_scale").mkdir()
    (tmp_path / "01_scale" / "solution.py").write_text(REFERENCE)
    assert run("kernelbench.com", root, tmp_path / "out2", f"--candidates={tmp_path}")[0] == exit_codes.RIGHT
    (tmp_path / "01_scale" / "solution.py").write_text(REFERENCE + "\nfast = torch.compile\n")
    code, told = run("kernelbench.com", root, tmp_path / "out2", f"--candidates={tmp_path}")
    assert code == exit_codes.NOT_RIGHT and outcomes(told) == {"01_scale": "refused"} and told["ours"]["judged"] == 1


@pytest.mark.parametrize("files, what", [
    ({"shapes.py": "SHAPES = make()"}, "no SHAPES"), ({"shapes.py": 'SHAPES = [{"K": 3}]'}, "sets no K"),
    ({"reference.py": "class Model: pass"}, "called by step()"), ({"problem.yaml": "- a"}, "no dictionary"),
    ({"problem.yaml": "tolerance:\n  float32: [1]\n"}, "the tolerance of float32")])
def test_decks_that_cannot_be_read(tmp_path, files, what):
    [task] = kernelbench_com.find([deck(tmp_path, **files)])
    assert what in (task.problem or task.parts[0].problem)


def test_shapes_are_set_in_the_text():
    text = "A = 1; B = 2  # ü\nC = (3 +\n     4); é = 'ü'; D = 5\nA = 9\n"
    made = kernelbench_com._set(text, ast.parse(text), {"A": 5, "C": 6, "D": "x"})
    space: dict = {}
    exec(made, space)
    assert [space[name] for name in ("A", "B", "C", "é", "D")] == [5, 2, 6, "ü", "x"] and made.count("\n") >= text.count("\n")


def test_an_axis_that_is_a_quotient_is_whole(tmp_path):
    definition = definitions.definition_of(rms_definition(axes={
        "rows": {"type": "var"}, "batch_size": {"type": "expr", "expression": "rows / 2"},
        "hidden_size": {"type": "const", "value": 32}}), "it")
    text = definitions.module_text(definition, workload("a", {"rows": 10}), tmp_path)
    assert make_case(text, 1).inputs[0].shape == (5, 32)
    with pytest.raises(definitions.TaskError, match="an axis is 3.5"):
        make_case(text.replace("rows = 10", "rows = 7"), 1)


ROBUST = '''
import torch
import torch.nn.functional as F

def forward_fn(x, weight):
    return F.relu(x * weight)

class Model(torch.nn.Module):
    def __init__(self, num_features: int, init_method: str = "ones"):
        super(Model, self).__init__()
        self.weight = torch.nn.Parameter(torch.ones(num_features) if init_method == "ones" else torch.randn(num_features))

    def forward(self, x, fn=forward_fn):
        return fn(x, self.weight)

def get_inputs(batch_size: int = 4, num_features: int = 8):
    return [torch.randn(batch_size, num_features, requires_grad=True)]

input_names = ["x"]
'''
CONFIG = {"multi_input_configs": [{"batch_size": 4}, {"batch_size": 6}], "multi_init_configs": [
    {"init_method": "ones"}, {"init_method": "random"}], "multi_shared_configs": [{"num_features": 8}]}


def test_robust_kbench(tmp_path):
    """Forward and backward at two initialisations and two sizes of input each."""
    folder = tmp_path / "tasks" / "scale"
    folder.mkdir(parents=True)
    for which in ("forward", "backward"):
        (folder / f"func_{which}.py").write_text(ROBUST)
        (folder / f"config_{which}.json").write_text(json.dumps(CONFIG))
    forward = "kernel f(x: f32[M, N], weight: f32[N]) -> (y: f32[M, N]) { y[i, j] = relu(x[i, j] * weight[j]) }"
    backward = """kernel b(x: f32[M, N], grad_output: f32[M, N], weight: f32[N]) -> (gx: f32[M, N], gw: f32[N]) {
      g[i, j] = where(x[i, j] * weight[j] > 0, grad_output[i, j], 0)
      gx[i, j] = g[i, j] * weight[j]
      gw[j] = sum(g[i, j] * x[i, j] for i)
    }"""
    code, told = run("robust-kbench", tmp_path, tmp_path / "out",
                     programs(tmp_path / "p", scale_forward=forward, scale_backward=backward))
    assert code == exit_codes.RIGHT, told
    assert outcomes(told) == {"scale_forward": "right", "scale_backward": "right"}
    assert [one["parts"] for one in told["tasks"]] == [4, 4]
    # One that has learnt the first initialisation is wrong.
    code, told = run("robust-kbench", tmp_path, tmp_path / "out", programs(tmp_path / "p", scale_forward=forward.replace(
        "x[i, j] * weight[j]", "x[i, j]").replace("weight: f32[N]", "weight: f32[N]")))
    assert code == exit_codes.NOT_RIGHT and outcomes(told)["scale_forward"] in ("wrong", "refused")
    score = dict(told["theirs"])
    assert score["forward correct"] == 0 and score["backward correct"] == 1


GROUPED = '''
import json
import os
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return -x

def get_input_groups():
    with open(os.path.join(os.path.dirname(__file__), "1_neg.json"), "r") as f:
        cases = [json.loads(line) for line in f if line.strip()]
    return [[torch.randn(case["inputs"][0]["shape"])] for case in cases]

def get_init_inputs():
    return []
'''


def test_multikernelbench(tmp_path):
    """Modules by category, and one whose inputs' shapes lie in a file beside it: a workload for each line."""
    for group, name, text in (("activation", "neg", module("return -x")), ("level1", "1_neg", GROUPED), ("level1", "2_neg", GROUPED)):
        path = tmp_path / "reference" / group / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "reference" / "level1" / "1_neg.json").write_text(
        '{"inputs": [{"shape": [3, 4]}]}\n{"inputs": [{"shape": [2, 9]}]}\n')
    negate = "kernel negate(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = -x[i, j] }"
    code, told = run("multikernelbench", tmp_path, tmp_path / "out",
                     programs(tmp_path / "p", neg=negate, **{"1_neg": negate, "2_neg": negate}))
    assert code == exit_codes.NOT_RIGHT
    assert outcomes(told) == {"activation/neg": "right", "level1/1_neg": "right", "level1/2_neg": "task"}
    assert dict(told["theirs"])["Pass@1"] == 1 and [one["parts"] for one in told["tasks"]] == [1, 2, 0]
    assert told["groups"]["activation"]["ours"]["right"] == 1


@pytest.mark.parametrize("ours, theirs, rule, passes", [
    ([1.0, 2.0], [1.0, 2.1], dict(atol=0.2, rtol=0), True), ([1.0, 2.0], [1.0, 2.1], dict(atol=0.05, rtol=0), False),
    ([1.0, 2.0], [1.0, 2.1], dict(atol=0.05, rtol=0, share=0.5), True),
    ([1.0, 2.0], [1.0, 9.0], dict(atol=0.05, rtol=0, share=0.5, cap=1.0), False),
    # Beyond one of the two alone is taken by `either`, and not by `sum`.
    ([0.01], [0.001], dict(form="either", atol=0.02, rtol=0.01), True),
    ([100.0], [100.5], dict(form="either", atol=0.01, rtol=0.01), True),
    ([1.0], [2.0], dict(form="either", atol=0.01, rtol=0.01), False),
    ([float("nan")], [float("nan")], dict(atol=1, rtol=1), False),
    ([float("nan")], [float("nan")], dict(atol=1, rtol=1, nan=True), True),
    ([float("inf")], [float("inf")], dict(atol=1, rtol=1), False), ([0.0], [float("inf")], dict(atol=1, rtol=1), False),
    ([-float("inf")], [-float("inf")], dict(atol=1, rtol=1, negative_inf=True), True),
    ([1.0], [1.005], dict(atol=tolerance.DTYPED, rtol=0), False),
    ([1.0], [1.005], dict(atol=0, rtol=0, dtypes={"float32": [0.01, 0]}), True)])
def test_tolerances(ours, theirs, rule, passes):
    told = tolerance.measure([torch.tensor(ours)], [torch.tensor(theirs)], rule)
    assert told["passes"] is passes, told
    json.dumps(told, allow_nan=False)


TRITONBENCH = f'''
import torch

def scale_add(input, other, alpha=1, out=None):
    return input * alpha + other

{"#" * 146}

import torch

def test_scale_add():
    results = {{}}
    one = torch.tensor([1.0, 2.0, 3.0], device='cuda')
    results["test_case_1"] = scale_add(one, torch.ones(3).cuda())
    two = torch.randn(2, 4).to("cuda")
    found = scale_add(two, other=two, alpha=0.5)
    results["test_case_2"] = found
    results["test_case_3"] = scale_add(one, one, out=torch.empty(3))
    return results
'''


def test_tritonbench(tmp_path):
    """Each call of the test is a workload; one that writes into what it is given is told, and does not count."""
    (tmp_path / "scale_add.py").write_text(TRITONBENCH)
    (tmp_path / "odd.py").write_text("def odd(x):\n    return x\n")
    program = "kernel scale_add(input: f32[..., N], other: f32[..., N], alpha: f32 = 1.0) -> (y: f32[..., N]) {\n" \
              "  y[..., j] = input[..., j] * alpha + other[..., j]\n}"
    folder = programs(tmp_path / "p", scale_add=program, odd=program)
    code, told = run("tritonbench", tmp_path, tmp_path / "out", folder, "--seeds=1")
    assert [one["outcome"] for one in records(tmp_path / "out", "tritonbench")] == ["right", "right", "task"]
    assert code == exit_codes.NOT_RIGHT and outcomes(told) == {"scale_add": "task", "odd": "task"} and told["ours"]["judged"] == 0
    (tmp_path / "scale_add.py").write_text(TRITONBENCH.replace('    results["test_case_3"]', '    # results["test_case_3"]'))
    code, told = run("tritonbench", tmp_path, tmp_path / "out", folder, "--seeds=1", "--tasks=scale_add")
    assert code == exit_codes.RIGHT and dict(told["theirs"])["execution accuracy"] == 1
    made = tmp_path / "made"
    made.mkdir()
    (made / "scale_add.py").write_text(TRITONBENCH)
    assert run("tritonbench", tmp_path, tmp_path / "out", f"--candidates={made}", "--tasks=scale_add")[0] == exit_codes.RIGHT
    (made / "scale_add.py").write_text(TRITONBENCH.replace("* alpha", "* 1.02"))
    assert run("tritonbench", tmp_path, tmp_path / "out", f"--candidates={made}", "--tasks=scale_add")[0] == exit_codes.NOT_RIGHT


@pytest.mark.parametrize("line", ["torch.manual_seed(42)", "torch.random.manual_seed(42)"])
def test_seeds_of_a_test_are_not_the_judges(line):
    [(_, text, *_), *_] = tritonbench._parts(TRITONBENCH.replace("    one = torch.tensor([1.0, 2.0, 3.0], device='cuda')",
                                                                 f"    {line}\n    one = torch.randn(3)"))
    assert line in text
    one, other, again = (make_case(text, seed).inputs[0] for seed in (1, 2, 1))
    assert not torch.equal(one, other) and torch.equal(one, again)


def test_backendbench(tmp_path):
    """A folder of operators, judged on PyTorch's own samples: as programs, and as its implementations."""
    ops = tmp_path / "ops"
    for name in ("relu__default", "sub__Tensor", "nothing_at_all"):
        (ops / name).mkdir(parents=True)
    (ops / "relu__default" / "relu__default_implementation_v1.py").write_text(
        "import torch\n\ndef relu__default_kernel_impl(input):\n    return torch.clamp(input, min=0)\n")
    (ops / "sub__Tensor" / "sub__Tensor_implementation_v1.py").write_text(
        "def sub__Tensor_kernel_impl(input, other, alpha=1):\n    return input - other\n")
    samples = backendbench.sample(["nothing_at_all.default", "relu.default", "sub.Tensor"])
    assert samples["nothing_at_all.default"] == [] and len(samples["relu.default"]) >= 2
    assert any("alpha" in one for one in samples["sub.Tensor"]) and all(0 not in one["self"]["shape"] for one in samples["sub.Tensor"])
    with pytest.MonkeyPatch.context() as patch:  # the seconds of the import once
        patch.setattr(backendbench, "sample", lambda operators: samples)
        code, told = run("backendbench", ops, tmp_path / "out", f"--candidates={ops}", "--seeds=1")
        assert code == exit_codes.NOT_RIGHT  # which leaves alpha out
        assert outcomes(told) == {"nothing_at_all": "task", "relu__default": "right", "sub__Tensor": "wrong"}
        score = dict(told["theirs"])
        assert score["correctness"] == 0.5 and 0.5 < score["samples passed"] < 1
        relu = "kernel r(input: f32[...]) -> (y: f32[...]) { y[...] = relu(input[...]) }"
        code, told = run("backendbench", ops, tmp_path / "out", programs(tmp_path / "p", relu__default=relu), "--seeds=1",
                         "--tasks=relu*")
        assert code == exit_codes.RIGHT and told["tasks"][0]["right_parts"] == len(samples["relu.default"])


@pytest.mark.parametrize("suite, group, found", [
    (flashinfer_bench.SUITE, "g", {"mean speedup over the reference": 4, "workloads faster than it": 0.5}),
    (robust_kbench.SUITE, "forward", {"forward speedup": 4, "backward speedup": None}),
    (tritonbench.SUITE, "T", {"speedup": 4}), (sol_execbench.SUITE, "g", {"problems faster than eager mode": 0.5}),
    (kernelbench_com.SUITE, "hard", {"speedup over the reference": 4}),
    (backendbench.SUITE, "opinfo", {"performance": 2, "perf@1": 0.5})])
def test_only_what_their_tolerance_takes_has_a_speedup(suite, group, found):
    def one(name, ratio, passes):
        record = {"task": name, "outcome": "right", "reason": "", "task_cases": 1, "flags": [],
                  "timing": {"program_s": 1.0, "eager_s": ratio, "eager_ratio": ratio},
                  "cases": [{"distribution": "task", "theirs": {"passes": passes}}]}
        return results.of_task(make_task(name, group, [("own", "", {}, {})]), {name: record}, True)
    score = dict(suite.score([one("taken", 4.0, True), one("not", 100.0, False)]))
    assert {name: score[name] for name in found} == pytest.approx(found)
    none = dict(suite.score([one("not", 100.0, False)]))
    assert none[next(iter(found))] == {"performance": 1, "problems faster than eager mode": 0}.get(next(iter(found)))


def write_operators(folder):
    for name, (definition, workloads) in OPERATORS.items():
        made = []
        for uuid, (axes, given) in workloads.items():
            tensors = {key: one for key, one in given.items() if isinstance(one, torch.Tensor)}
            path = f"blob/{name}_{uuid}.safetensors"
            if tensors:
                safetensors(folder / path, **tensors)
            made.append(workload(uuid, axes, **{key: {"type": "safetensors", "path": path, "tensor_key": key} if key in tensors
                                                else {"type": "scalar", "value": one} for key, one in given.items()}))
        flashinfer(folder, definition, *made)
    return folder


def test_own_programs_for_flashinfer_bench(tmp_path):
    folder, out = write_operators(tmp_path / "trace"), tmp_path / "out"
    code, told = run("flashinfer-bench", folder, out, f"--programs={OWN_PROGRAMS}", "--seeds=1")
    assert outcomes(told) == dict.fromkeys(OPERATORS, "right"), [one for one in told["tasks"] if one["outcome"] != "right"]
    assert code == exit_codes.RIGHT
    for one in records(out, "flashinfer-bench"):
        assert not {"random", "unstable"} & set(one["flags"])
        # Their rule takes no infinity, ours those of the reference.
        assert results.passes_theirs(one) == (not one["task"].endswith(EMPTY)), one["task"]


def test_the_hard_deck_is_right(tmp_path):
    code, told = run("kernelbench.com", suite_deck.write(tmp_path / "site"), tmp_path / "out", f"--programs={OWN_PROGRAMS}", "--seeds=1")
    assert outcomes(told) == dict.fromkeys(suite_deck.DECK, "right"), [one for one in told["tasks"] if one["outcome"] != "right"]
    assert code == exit_codes.RIGHT and all("programs/hard/" in one["program"] for one in told["tasks"])
    assert dict(told["theirs"])["problems passed"] == 1
