import math

import pytest
import torch

from tegula_eval.rule import tolerance
from tegula_eval.rule.verdict import (ErrorMeasure, Sensitivity, bounds, is_finite, judge, kernelbench_rule, luck,
                                      measure_error)


def setup_module():
    torch.manual_seed(3)


def triple(shape=(16, 8), dtype=torch.float32):
    exact = torch.randn(shape, dtype=torch.float64)
    return exact.to(dtype), exact


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_rounded_result_is_right(dtype):
    expected, exact = triple(dtype=dtype)
    assert judge(expected.clone(), expected, exact, 1).right


def test_lower_precision_is_wrong_though_kernelbench_takes_it():
    expected, exact = triple()
    verdict = judge(expected + 2e-5, expected, exact, 1)
    assert not verdict.right and verdict.reason == "value" and verdict.kernelbench
    assert verdict.wrong[0]["index"] == [0, 0] and verdict.wrong_share > 0.5
    assert "first at [0, 0]" in verdict.message


def test_one_wrong_element_is_named():
    expected, exact = triple()
    result = expected.clone()
    result[5, 3] += 1
    verdict = judge(result, expected, exact, 1)
    assert not verdict.right and [one["index"] for one in verdict.wrong] == [[5, 3]]
    assert verdict.wrong[0]["got"] == pytest.approx(float(exact[5, 3]) + 1, rel=1e-6)


def test_depth_allows_more():
    expected, exact = triple()
    result = expected + 3e-6 * exact.pow(2).mean().sqrt().float()
    assert not judge(result, expected, exact, 1).right
    assert judge(result, expected, exact, 1000).right


def test_as_near_as_pytorch_is_right():
    _, exact = triple()
    noise = 1e-3 * torch.randn_like(exact)
    assert judge((exact + noise).float(), (exact - noise).float(), exact, 1).right


def test_unwritten_and_infinite():
    expected, exact = triple()
    result = expected.clone()
    result[0, 1] = math.nan
    verdict = judge(result, expected, exact, 1)
    assert verdict.reason == "not-finite" and verdict.wrong[0]["index"] == [0, 1] \
        and verdict.wrong[0]["got"] == "nan"
    exact[0, 1] = math.nan
    assert judge(result, exact.float(), exact, 1).right
    assert not judge(expected, exact.float(), exact, 1).right


def test_shape_and_dtype():
    expected, exact = triple()
    assert judge(expected.reshape(8, 16), expected, exact, 1).reason == "shape"
    assert judge(expected.long(), expected, exact, 1).reason == "dtype"
    whole = torch.arange(6)
    assert judge(whole.clone(), whole, whole, 1).right
    assert judge(whole.int(), whole, whole, 1).right
    wrong = judge(whole.flip(0), whole, whole, 1)
    assert wrong.reason == "value" and wrong.wrong[0] == {"index": [0], "expected": 0, "got": 5, "pytorch": 0}


def test_complex_numbers_are_compared_whole():
    exact = torch.complex(torch.randn(9, 4).double(), torch.randn(9, 4).double())
    expected, rule = exact.to(torch.complex64), {"form": "sum", "atol": 1e-2, "rtol": 1e-2}
    assert judge(expected.clone(), expected, exact, 1).right and is_finite(expected)
    assert judge(expected.conj(), expected.conj(), exact.conj(), 1).right
    assert tolerance.measure([expected], [expected], rule)["passes"]
    for off, reason in ((9, "value"), (math.nan, "not-finite")):
        other = expected.clone()
        torch.view_as_real(other)[3, 2, 1] += off
        verdict = judge(other, expected, exact, 1)
        assert (verdict.right, verdict.reason) == (False, reason) and verdict.wrong[0]["index"] == [3, 2, 1]
        assert not tolerance.measure([other], [expected], rule)["passes"]
    assert not is_finite(other) and not kernelbench_rule(other, expected)
    assert measure_error(expected + 1j, exact).norm > 0.1
    assert judge(expected.real, expected, exact, 1).reason == judge(expected, expected.real, exact.real, 1).reason == "dtype"
    # The distance of the numbers decides, beside the size of the whole.
    one = torch.tensor([100 + 0j])
    assert tolerance.measure([one + 0.5j], [one], rule)["passes"] and not tolerance.measure([one + 2j], [one], rule)["passes"]


def test_number_without_dims():
    exact = torch.tensor(2.0, dtype=torch.float64)
    assert judge(torch.tensor(2.0), exact.float(), exact, 1).right
    assert judge(torch.tensor(3.0), exact.float(), exact, 1).wrong[0]["index"] == []


def test_measures():
    exact = torch.tensor([3.0, 4.0], dtype=torch.float64)
    error = measure_error(torch.tensor([3.0, 4.5]), exact)
    assert error.norm == pytest.approx(0.1) and error.worst == pytest.approx(0.125) and error.at == 1
    assert kernelbench_rule(torch.tensor([1.0]), torch.tensor([1.00005]))
    assert not kernelbench_rule(torch.tensor([1.0]), torch.tensor([1.001]))


def test_sensitivity_widens_what_is_allowed():
    exact = torch.ones(1000, dtype=torch.float64)
    expected = (exact + 1e-5).float()

    def right(error, of_inputs, depth=1):
        return judge((exact + error).float(), expected, exact, depth, Sensitivity(of_inputs, of_inputs)).right

    assert right(1.9e-5, 1) and not right(5e-5, 1)
    assert right(5e-5, 400) and not right(2e-4, 400)  # for each rounding that the inputs are worth
    assert not right(5e-5, 3)
    assert right(1.5e-4, 100, 10000) and not right(2e-4, 100, 10000)  # never more than 16 times, however deep


def test_few_elements_are_not_held_to_the_luck_of_one_sample():
    """Of one element that is the small difference of large numbers PyTorch's value may be exact by chance."""
    exact = torch.zeros(1000, dtype=torch.float64)
    exact[7] = 1e-3
    expected, result = exact.float(), exact.float()
    result[7] += 4 * 2.0 ** -24 * 0.5  # four roundings of a half
    half = Sensitivity(500.0, 500.0, 1.0)   # what one rounding of a half is worth there
    assert not judge(result, expected, exact, 8).right and judge(result, expected, exact, 8, half).right
    result[7] = exact[7].float() + 2.0 ** -11 * 0.5  # TF32's
    assert not judge(result, expected, exact, 8, half).right


def test_elements_that_decide():
    exact = torch.ones(1000, dtype=torch.float64)
    alike = measure_error(exact + 1e-3 * torch.randn(1000).sign(), exact)
    assert alike.elements == pytest.approx(1000)
    one = exact.clone()
    one[3] += 1
    assert measure_error(one + 1e-6, exact).elements == pytest.approx(1, rel=1e-3)
    assert measure_error(exact, exact).elements == math.inf
    normal = measure_error(exact + 1e-3 * torch.randn(1000), exact)
    assert 250 < normal.elements < 450  # the fourth power's mean is three times the square's, squared


def test_luck_is_a_quantile_of_chi_squared():
    for elements in (8, 20, 100):
        norms = torch.randn(40000, elements, dtype=torch.float64).pow(2).mean(1).sqrt()
        least = float(norms.kthvalue(4).values)  # one of 10,000
        assert least * luck(elements) == pytest.approx(1, rel=0.25)
    assert luck(1) == pytest.approx(7979, rel=0.01) and luck(math.inf) == 1


def test_of_many_elements_a_sensitivity_excuses_no_more_than_float32_s_roundings():
    roundoff = 2.0 ** -8  # of bf16
    few, many = (bounds(torch.bfloat16, 48, ErrorMeasure(0.4 * roundoff, 0.9 * roundoff, 0),
                        Sensitivity(20.0, 60.0, elements)) for elements in (2, 3000))
    assert few[0] > 15 * roundoff and few[1] > 50 * roundoff
    assert many[0] < 1.01 * roundoff and many[1] < 2.0 * roundoff
    # Of float32 itself the roundings on the way are those of the result.
    single = [bounds(torch.float32, 48, ErrorMeasure(3e-8, 9e-8, 0), Sensitivity(20.0, 60.0, elements))
              for elements in (2, 3000)]
    assert single[0] == single[1] and single[0][0] > 15 * 2.0 ** -24
