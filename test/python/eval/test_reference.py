import pytest
import torch
from conftest import SCALE, module

from tegula_eval.judge.evaluate import WIDE
from tegula_eval.rule.reference import SPECIAL, evaluate_reference, make_case, sensitivities, widen
from tegula_eval.rule.variants import state_of


def flags(text, seed=5, distribution="task"):
    case = make_case(text, seed, distribution)
    evaluate_reference(case, seed)
    return case.flags


def test_honest_module_has_no_flag():
    assert flags(module("return torch.sin(x) + x.sum(1, keepdim=True)")) == []


def test_flags():
    assert "random" in flags(module("return x + torch.rand_like(x)"))
    assert "dropout-off" in flags(module("return torch.nn.Dropout(0.5)(x)").replace(
        "def forward", "def __init__(self):\n        super().__init__()\n        self.drop = torch.nn.Dropout(0.5)"
        "\n\n    def forward").replace("torch.nn.Dropout(0.5)(x)", "self.drop(x)"))
    assert "constant" in flags(module("return torch.clamp(x, 2, 3)"))
    assert "zero" in flags(module("return 1e-6*x"))
    assert "unstable" in flags(module("y = x + 1e6\n        return (y - y.mean()).mean(1)"))


def test_seed_decides_everything():
    one, other, third = (make_case(SCALE.replace("1024", "2").replace("512", "8"), seed) for seed in (1, 1, 2))
    assert torch.equal(one.inputs[0], other.inputs[0]) and torch.equal(one.state["fc.bias"], other.state["fc.bias"])
    assert not torch.equal(one.inputs[0], third.inputs[0])


def test_normal_inputs_keep_what_is_known_of_them():
    case = make_case(module("return x", "torch.rand(9, 9).tril(), torch.rand(8, 8).softmax(-1), "
                            "(lambda a: a + a.T)(torch.rand(7, 7)), torch.arange(5.0), torch.rand(50)"), 1, "normal")
    triangle, rows, symmetric, whole, free = case.inputs
    assert torch.equal(triangle, triangle.tril()) and float(triangle.min()) < 0
    assert torch.allclose(rows.sum(-1), torch.ones(8))
    assert torch.equal(symmetric, symmetric.T)
    assert torch.equal(whole, torch.arange(5.0))
    assert float(free.min()) < 0


def test_batch_statistics_do_not_leak_into_the_next_run():
    text = module("return self.norm(x)", "torch.rand(16, 8)").replace(
        "def forward", "def __init__(self):\n        super().__init__()\n        self.norm = torch.nn.BatchNorm1d(8)"
        "\n\n    def forward")
    case = make_case(text, 1)
    evaluate_reference(case, 1)
    assert torch.equal(case.state["norm.running_mean"], torch.zeros(8))
    assert case.exact[0].dtype == torch.float64


def with_layer(layer, forward, arguments=""):
    return module(forward).replace(
        "def forward", f"def __init__(self{arguments}):\n        super().__init__()\n        {layer}\n\n    def forward")


def test_dropout_that_is_an_argument_is_zero_where_dropout_is_off():
    text = with_layer("self.drop = torch.nn.Dropout(drop_rate)", "return self.drop(x)", ", drop_rate=0.25")
    case = make_case(text, 3)
    assert case.constants() == {"drop_rate": 0.25}
    evaluate_reference(case, 3)
    assert case.flags == ["dropout-off"] and case.constants() == {"drop_rate": 0.0}


def test_closure_over_a_part_of_the_module():
    text = with_layer("self.fc = torch.nn.Linear(8, 8)\n        self.call = lambda one: self.fc(one)",
                      "return self.call(x)")
    case = make_case(text, 2)
    evaluate_reference(case, 2)
    assert case.exact[0].dtype == torch.float64 and case.flags == []
    assert case.built.model.fc.weight.dtype == torch.float32
    evaluate_reference(case, 2)  # the module is as it was


def test_sensitivity_counts_roundings():
    stable = make_case(module("return x*2"), 4)
    evaluate_reference(stable, 4, audit=False)
    assert sensitivities(stable)[0].norm < 2
    norm = make_case(module("return (x - x.mean())/x.std()", "1000 + torch.rand(64)"), 4)
    evaluate_reference(norm, 4, audit=False)
    assert sensitivities(norm)[0].norm > 500


def test_module_has_its_types_again_after_float64():
    text = module("return self.norm(x)", "torch.randn(rows, 8)").replace(
        "def forward", "def __init__(self):\n        super().__init__()\n        self.norm = torch.nn.BatchNorm1d(8)\n"
        "        self.register_buffer('small', torch.zeros(3, dtype=torch.float16), persistent=False)\n\n    def forward", 1)
    case = make_case(text, 1)
    before = {name: one.dtype for name, one in state_of(case.built.model).items()}
    evaluate_reference(case, 1)
    assert {name: one.dtype for name, one in state_of(case.built.model).items()} == before
    assert before["small"] == torch.float16 and before["norm.running_mean"] == torch.float32


def test_distributions():
    """Each is what it says; zeros, whole numbers and types stay."""
    torch.manual_seed(0)
    value = torch.rand(64, 64).tril()
    drawn = {name: widen(value, name) for name in WIDE}
    assert set(drawn) == {"normal", "large", "negative", "special"}
    for one in drawn.values():
        assert one.dtype == value.dtype and bool((one.triu(1) == 0).all()) and not torch.equal(one, value)
    assert drawn["large"].std() > 20 * drawn["normal"].std() > 0
    assert bool((drawn["negative"] <= 0).all()) and drawn["normal"].max() > 1
    special = drawn["special"]
    for number in SPECIAL:
        assert bool((special == number).any()), number
    assert bool((torch.signbit(special) & (special == 0)).any())
    labels = torch.arange(5.0)
    assert all(widen(labels, name) is labels for name in WIDE)


def test_sensitivity_of_a_small_difference_on_the_way():
    """A mean near two less two: inputs that are off move it little, the rounding of the mean does."""
    task = module("return (2 + 1e-4*x).mean(1) - 2", "torch.rand(64, 512)")
    case = make_case(task, 1)
    evaluate_reference(case, 1)
    sensitivity, = sensitivities(case)
    assert sensitivity.norm > 1e3 and case.errors[0].norm < 10 * sensitivity.norm * 2.0 ** -24
    plain = make_case(module("return x.mean(1)", "torch.rand(64, 512)"), 1)
    evaluate_reference(plain, 1)
    assert sensitivities(plain)[0].norm < 2


@pytest.mark.parametrize("where", ["torch.float32", "torch.float64"])
def test_no_memory_is_not_the_tasks_fault(where):
    text = module(f"return x if x.dtype != {where} else x + torch.empty(1 << 50, dtype=x.dtype)[0]")
    with pytest.raises(MemoryError):
        flags(text)


def test_sensitivity_behind_a_mask():
    """Masked elements, -inf, stay so: what is left of a row is moved."""
    masked = module("y = x @ x.T + 1000\n        y = y.masked_fill(torch.ones_like(y).tril() == 0, -torch.inf)\n"
                    "        return torch.softmax(y, -1) @ x")
    case = make_case(masked, 5)
    evaluate_reference(case, 5)
    sensitivity, = sensitivities(case)
    assert sensitivity.norm > 100 and case.errors[0].norm < 10 * sensitivity.norm * 2.0 ** -24


def test_a_lower_type_by_name_is_in_float64_too():
    """Its roundings are the module's own error, not the truth; what reads the type's bits runs as it is written."""
    case = make_case(module("return (x.to(torch.bfloat16) @ x.bfloat16().T).float()", "torch.rand(4, 8)"), 3)
    evaluate_reference(case, 3)
    x = case.inputs[0].double()
    assert torch.allclose(case.exact[0], x @ x.T, rtol=1e-12, atol=0) and case.errors[0].norm > 1e-4
    case = make_case(module("return x.to(torch.bfloat16).view(torch.int16).float()", "torch.rand(4, 8)"), 3)
    evaluate_reference(case, 3)
    assert torch.equal(case.exact[0], case.inputs[0].bfloat16().view(torch.int16).double())


def test_complex_results_are_exact_in_both_parts():
    case = make_case(module("x, c = x\n        return torch.fft.fft(x) * c",
                            "[torch.rand(3, 40), torch.complex(torch.rand(40), torch.rand(40))]"), 1)
    evaluate_reference(case, 1)
    assert case.exact[0].dtype == torch.complex128 and case.flags == []
    assert 0 < case.errors[0].norm < 1e-6 and 0 < sensitivities(case)[0].norm < 10


def test_inputs_in_a_list_are_what_they_were():
    case = make_case(module("x[0].mul_(2)\n        return x[0] + x[1]", "[torch.rand(2, 3), torch.rand(2, 3)]"), 1)
    before = case.inputs[0][0].clone()
    evaluate_reference(case, 1)
    assert torch.equal(case.inputs[0][0], before) and case.flags == []


DRAWN = "torch.rand(4, generator=torch.Generator(){seed}), torch.rand(4, generator=torch.Generator(){seed})"


@pytest.mark.parametrize("text", [
    module("return x", DRAWN.format(seed=".manual_seed(7)")), module("return x", DRAWN.format(seed="")),
    module("return x").replace("def get_inputs():", "def get_inputs():\n    seed(3)").replace("import torch", "import torch\nfrom torch import manual_seed as seed"),
    module("return x").replace("rows =", "torch.manual_seed(3)\nrows ="),
    module("return x").replace("    def forward", "    def __init__(self):\n        super().__init__()\n        torch.manual_seed(3)\n\n    def forward")])
def test_inputs_are_drawn_from_the_judges_seed(text):
    names = torch.manual_seed, torch.random.manual_seed, torch.cuda.manual_seed, torch.Generator
    one, other, again = (make_case(text, seed).inputs for seed in (1, 2, 1))
    assert not torch.equal(one[0], other[0]) and torch.equal(one[0], again[0])
    if "generator" in text:
        assert torch.equal(one[0], one[1])  # generators of one seed
    assert names == (torch.manual_seed, torch.random.manual_seed, torch.cuda.manual_seed, torch.Generator)
