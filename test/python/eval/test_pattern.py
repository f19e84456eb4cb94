"""Where wrong elements lie, in words."""
import pytest
import torch

from tegula_eval.rule import error_pattern

ROWS = torch.arange(100)


@pytest.mark.parametrize("places, told", [
    (ROWS == 99, "only 99 of 100, the last"),
    (ROWS == 7, "only 7 of 100"),
    (ROWS >= 96, "only 96 and above of 100, all past the last whole tile of 32"),
    (ROWS >= 40, "only 40 and above of 100"),
    ((ROWS >= 3) & (ROWS < 9), "only 3 to 8 of 100"),
    (ROWS % 5 == 2, "every 5th from 2, of 100"),
    ((ROWS % 16 == 3) | (ROWS % 16 == 4), "only 3, 4 within each 16, of 100"),
])
def test_one_dim(places, told):
    assert error_pattern.describe(places) == f"in dim 0 {told}"


def test_several_dims():
    wrong = torch.zeros(4, 6, 10, dtype=torch.bool)
    wrong[:, 5, 8:] = True
    assert error_pattern.describe(wrong) == "in dim 1 only 5 of 6, the last; in dim 2 only 8 and above of 10, " \
                                      "all past the last whole tile of 8"
    assert error_pattern.describe(torch.ones(3, 3, dtype=torch.bool)) == "every element"
    assert error_pattern.describe(torch.tensor(True)) == "every element"
    assert error_pattern.describe(torch.eye(3, dtype=torch.bool)) == "3 elements all over"
