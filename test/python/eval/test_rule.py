"""What the rule for programs takes and does not take: all distributions, sensitivity beside what eager mode gets right, whole
numbers, narrow types, booleans, and failures that are not a program's."""
import torch
from conftest import SCALE, module

from tegula_eval.confine import child
from tegula_eval.judge import evaluate
from tegula_eval.judge.evaluate import distributions, judge_case
from tegula_eval.program import runner
from tegula_eval.records import summary
from tegula_eval.rule import reference, variants, verdict
from tegula_eval.rule.reference import evaluate_reference, make_case
from tegula_eval.timing import at_variant


def judged(task, program, **options):
    request = {"task": task, "program": program, "secret": "rule", "bytes": 1 << 20, "flops": 1 << 24, **options}
    variants.warm()  # before the fork, as a worker does: seconds, which every child would spend anew
    outcome = child.run(evaluate.evaluate, request, 120, 8 << 30)
    assert outcome["kind"] == "done", outcome
    return outcome["answer"]


def test_all_distributions_are_used():
    for seeds in (1, 2, 3, 5):
        assert set(distributions(0, seeds)) == {"task", *evaluate.WIDE}
    assert distributions(1, 2) == ["task", "large"]


def test_a_maximum_that_begins_with_zero_is_wrong():
    task = module("return x.max(1)[0]", "torch.rand(rows, 8)", "rows = 64")
    text = "kernel k(x: f32[M, N]) -> (y: f32[M]) {{\n  y[i] = {}\n}}\n"
    assert judged(task, text.format("max(x[i, j] for j)"))["outcome"] == "right"
    record = judged(task, text.format("maximum(0.0, max(x[i, j] for j))"))
    assert (record["outcome"], record["reason"]) == ("wrong", "value"), record
    assert "negative" in record["message"]


def case_of(task, seed=1, distribution="task"):
    case = make_case(task, seed, distribution)
    evaluate_reference(case, seed)
    return case


CROSS_ENTROPY = '''
import torch
class Model(torch.nn.Module):
    def forward(self, x, t):
        return torch.nn.functional.cross_entropy(x, t)
def get_inputs():
    return [1e8*(1 + torch.rand(16, 1)).expand(16, 40).contiguous(), torch.randint(40, (16,))]
def get_init_inputs():
    return []
'''


def test_no_sensitivity_excuses_what_eager_mode_gets_right():
    """All rows are one number: the result is log(40), of which float32 loses nothing, though a rounding of the inputs moves it
    by as much as they are large."""
    case = case_of(CROSS_ENTROPY)
    told = {}
    judge_case([torch.zeros(())], case, 40.0, told)
    assert told["outcome"] == "wrong" and told["sensitivity"][0][0] > 1e5, told
    for right in (case.expected[0], case.exact[0].float(), case.exact[0].float() * (1 + 2e-7)):
        judge_case([right], case, 40.0, told)
        assert told["outcome"] == "right", told


def test_luck_is_the_quantile_of_chi_squared():
    generator = torch.Generator().manual_seed(1)
    for elements, count in ((1, 2_000_000), (2, 1_000_000), (5, 400_000), (12, 200_000), (60, 100_000)):
        norms = torch.randn(count, elements, generator=generator, dtype=torch.float64).square().mean(1).sqrt()
        least = float(norms.sort()[0][count // 10000])
        assert 0.5 < least * verdict.luck(elements) < 1.5, elements


CODES = '''
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        codes = torch.clamp(torch.round(x * 15), 0, 15).to(torch.int64)
        return self.table[codes] * 1.0
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.randn(16))
def get_inputs():
    return [torch.rand(16, 33)]
def get_init_inputs():
    return []
'''


def test_what_is_rounded_to_whole_numbers_is_no_excuse():
    """A code that is off by one is wrong, whatever a rounding before it could have made of few elements."""
    case = case_of(CODES)
    x, table = case.inputs[0], case.state["table"]
    codes = torch.clamp(torch.floor(x * 15 + 0.5), 0, 15).long()
    told = {}
    judge_case([table[codes]], case, 1.0, told)
    assert told["outcome"] == "right", told
    for wrong in (table[(codes + 1).clamp(max=15)], table[torch.clamp(torch.floor(x * 15), 0, 15).long()], table[codes] * 1.01):
        judge_case([wrong], case, 1.0, told)
        assert told["outcome"] == "wrong", told


def test_whole_numbers_are_not_moved():
    near = reference.nearby(3)
    x = torch.linspace(-4, 4, 101, dtype=torch.float64)
    with reference._Rounded(near):
        for function in (torch.round, torch.floor, torch.ceil, torch.trunc, torch.sign, torch.abs, lambda one: one.clamp(-1, 2),
                         lambda one: one.max(), lambda one: one.sort()[0], lambda one: torch.minimum(one, -one),
                         lambda one: torch.nn.functional.relu6(one), lambda one: one.roll(3), lambda one: one[x > 0]):
            assert bool((function(x) == function(x)).all()), function
        assert not bool((torch.exp(x) == torch.exp(x)).all())


NARROW = '''
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return {}
def get_inputs():
    return [torch.randn(16, 24).to(torch.float8_{})]
def get_init_inputs():
    return []
'''


def test_narrow_inputs_and_results_are_judged():
    text = "kernel k(x: {}[M, N]) -> (y: {}[M, N]) {{\n  y[i, j] = {}\n}}\n"
    for torch_name, name in (("e4m3fn", "f8e4m3"), ("e5m2", "f8e5m2")):
        task = NARROW.format("x.float() * 1.5 + 0.25", torch_name)
        assert judged(task, text.format(name, "f32", "f32(x[i, j])*1.5 + 0.25"))["outcome"] == "right"
        assert judged(task, text.format(name, "f32", "f32(x[i, j])*1.5 + 0.26"))["outcome"] == "wrong"
        task = NARROW.format(f"(x.float() * 0.5).to(torch.float8_{torch_name})", torch_name)
        right = judged(task, text.format(name, name, f"{name}(f32(x[i, j])*0.5)"))
        assert right["outcome"] == "right", right
        assert judged(task, text.format(name, name, f"{name}(f32(x[i, j])*0.625)"))["outcome"] == "wrong"


def test_what_forward_makes_float32_by_name_is_in_float64():
    case = case_of(module("return (x.float()[:, :1] / 3).expand(-1, 4) + torch.zeros(4, dtype=torch.float32)"))
    assert case.exact[0].dtype == torch.float64
    assert 0 < case.errors[0].norm < 1e-6


def test_booleans_that_were_not_written_are_wrong():
    for value in (True, False):
        expected = torch.full((9, 7), value)
        result = expected.clone()
        assert verdict.judge(result, expected, expected, 1.0).right
        runner.poison(result)
        assert not verdict.judge(result, expected, expected, 1.0).right
        result[:8] = value
        assert verdict.judge(result, expected, expected, 1.0).wrong_share == 7 / 63


def test_a_peer_that_fails_is_a_reason_beside_a_right_program(monkeypatch):
    def broken(model):
        def call(*inputs):
            raise RuntimeError("g++: File size limit exceeded")
        return call
    monkeypatch.setattr(at_variant.torch, "compile", broken)
    text = '''
kernel scaled(x: f32[M, K], fc_weight: f32[N, K], fc_bias: f32[N], factor: float) -> (y: f32[M, N]) {
  y[i, j] = factor*relu(sum(x[i, k]*fc_weight[j, k] for k) + fc_bias[j])
}
'''
    record = judged(SCALE.replace("1024 * 4", "64").replace("512", "32"), text, time={"turns": 2, "compile": True})
    assert record["outcome"] == "right", record
    assert "File size limit" in record["timing"]["compile_failed"] and "compile_ratio" not in record["timing"]
    assert record["timing"]["eager_ratio"] > 0


def test_infrastructure_is_apart_from_wrong_answers():
    def record(task, outcome, sample=0):
        return {"task": task, "level": 1, "outcome": outcome, "reason": "", "flags": [],
                "asked": {"sample": sample, "turn": 0, "tokens": {}}}
    told = summary.summarize([record("a", "right"), record("b", "unanswered"), record("c", "missing"), record("d", "wrong")], 1)
    assert told["model"]["pass_at"] == {"1": 0.5} and told["model"]["not_judged"] == 2
    assert told["all"]["infrastructure"] == 2 and "1 of    4 right (50.0 %)" in summary.as_text(told)
    nothing = summary.summarize([record("a", "unanswered"), record("b", "unanswered")], 1)
    assert nothing["model"]["pass_at"] == {} and "nothing was judged" in summary.as_text(nothing)
