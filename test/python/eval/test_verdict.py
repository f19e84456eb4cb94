import math

import pytest
import torch

from tegula_eval.verdict import Sensitivity, judge, kernelbench_rule, measure_error


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
    half = Sensitivity(500.0, 500.0)   # what one rounding of a half is worth there
    assert not judge(result, expected, exact, 8).right and judge(result, expected, exact, 8, half).right
    result[7] = exact[7].float() + 2.0 ** -11 * 0.5  # TF32's
    assert not judge(result, expected, exact, 8, half).right
