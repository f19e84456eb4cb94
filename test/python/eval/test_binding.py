import pytest
import torch
from conftest import SCALE, module

from tegula_eval.program.binding import BindingError, as_text, bind
from tegula_eval.program.runner import Parameter
from tegula_eval.rule.reference import evaluate_reference, make_case

X = Parameter("x", "in", "f32", ("M", "K"))
W = Parameter("fc_weight", "in", "f32", ("N", "K"))
B = Parameter("fc_bias", "in", "f32", ("N",))
Y = Parameter("y", "out", "f32", ("M", "N"))


@pytest.fixture(scope="module")
def case():
    case = make_case(SCALE.replace("1024 * 4", "4").replace("512", "6"), 1)
    evaluate_reference(case, 1)
    return case


def test_names_and_order(case):
    binding = bind([W, Parameter("anything", "in", "f32", ("M", "K")), B, Parameter("factor", "constant", "float"),
                    Y], case)
    assert binding.tensors["anything"] is case.inputs[0]
    assert torch.equal(binding.tensors["fc_weight"], case.state["fc.weight"])
    assert binding.settings == {"factor": "0.25"} and binding.outputs == ["y"]


def test_scalar_and_default(case):
    binding = bind([X, Parameter("factor", "scalar", "f32"), Parameter("window", "constant", "int", (), "3"), Y],
                   case)
    assert binding.scalars == {"factor": 0.25}
    assert binding.settings == {}  # None is left out


def test_scalar_with_a_default(case):
    given, absent = Parameter("factor", "scalar", "f32", (), "2.0"), Parameter("speed", "scalar", "f32", (), "1.0")
    binding = bind([X, given, absent, Y], case)
    assert binding.scalars == {"factor": 0.25} and binding.optionals == ["factor"]


def test_optional_tensor(case):
    there = Parameter("fc_bias", "in", "f32", ("N",), "0")
    absent = Parameter("gate", "in", "f32", ("N",), "0")
    binding = bind([X, there, absent, Y], case)
    assert binding.optionals == ["fc_bias"] and "gate" not in binding.tensors


def test_generic_type_and_ellipsis(case):
    binding = bind([Parameter("x", "in", "T", ("...", "N")), Y], case)
    assert binding.settings == {"T": "f32"} and binding.ellipsis_rank == 1


@pytest.mark.parametrize("parameters, reason, message", [
    ([X, Parameter("fc_weigth", "in", "f32", ("N", "K")), Y], "no-tensor", "did you mean fc_weight"),
    ([X, Parameter("factr", "constant", "float"), Y], "no-constant", "did you mean factor"),
    ([X, Parameter("window", "constant", "int"), Y], "no-constant", "'window' is None"),
    ([X, Parameter("speed", "scalar", "f32"), Y], "no-scalar", "'speed' is no argument"),
    ([W, Y], "left-over", "no parameter for x"),
    ([X, Y, Y], "outputs", "returns 1 tensors, the program 2"),
    ([Parameter("x", "in", "f32", ("M",)), Y], "rank", "'x' has 1 dims"),
    ([Parameter("x", "in", "f32", ("A", "B", "C", "...")), Y], "rank", "3 dims beside"),
])
def test_messages(case, parameters, reason, message):
    with pytest.raises(BindingError, match=message) as error:
        bind(parameters, case)
    assert error.value.reason == reason


def test_number_among_forwards_inputs():
    case = make_case(module("return x*s", "torch.rand(rows, 3), 2.5").replace("self, x", "self, x, s"), 1)
    assert bind([X, Parameter("s", "scalar", "f32"), Y], case).scalars == {"s": 2.5}
    assert bind([X, Parameter("s", "constant", "float"), Y], case).settings == {"s": "2.5"}


def test_constants_as_text():
    assert [as_text(one) for one in (True, 3, 1e-5, (2, 1), [1, 2], torch.tensor(4))] == \
        ["true", "3", "1e-05", "(2, 1)", "(1, 2)", "4"]
    with pytest.raises(ValueError):
        as_text("same")


def test_parameter_that_began_as_an_argument():
    # What forward reads is the parameter, which training, or a case with other values, has moved.
    task = SCALE.replace("1024 * 4", "4").replace("512", "6").replace("self.factor = factor",
                                                                      "self.factor = nn.Parameter(torch.tensor(factor))")
    case = make_case(task, 1, "normal")
    assert bind([X, Parameter("factor", "scalar", "f32"), Y], case).scalars == \
        {"factor": case.state["factor"].item()} != {"factor": 0.25}
