"""bench/gpu_figures.py finds errors: small cases of its rows on the CPU, right results and such that are not."""
import sys

import pytest
import torch
from conftest import TREE

from tegula_eval.program import runner

sys.path.insert(0, str(TREE / "bench"))
from gpu import measure, sections  # noqa: E402

try:
    runner.library_path()
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)

ATTENTION = {causal: measure.text_of(sections.CAUSAL if causal else sections.ONLINE, "f32") for causal in (False, True)}
ROWS = [
    ("f32", ("f32", None, 48, 40, 33)),
    ("products", ("bf16", 2, 48, 40, 64)),
    ("products", ("i8", None, 32, 32, 64)),
    ("accuracy", ("positive", 48, 40, 66)),
    ("accuracy", ("cancelling", 48, 40, 66)),
    ("wide", (48, 40, 66)),
    ("attention", ("bf16", 1, 2, 96, 32, False)),
    ("attention", ("f16", 1, 2, 96, 32, True)),
    ("f32attention", (ATTENTION[False], ["FLASH_ATTENTION", "MATH"], 2, 2, 96, 24, False)),
    ("f32attention", (ATTENTION[True], ["FLASH_ATTENTION", "MATH"], 2, 2, 96, 24, True)),
    ("equations", next(sections.equations())[1:2] + (["MATH"], 2, 2, 96, 24, False)),
    ("grouped", ("f32", 64, 16, 24, 4, "uneven")),
    ("memory", next(sections.memory())[1:4] + ((300, 20),)),
]


@pytest.fixture
def measured():
    torch.manual_seed(0)
    one = measure.Measure("tegula", 0.1, device="cpu")
    one.flush = torch.empty(1)  # there are no times to be had from this
    return one


@pytest.mark.parametrize("section, case", ROWS, ids=[f"{section}-{place}" for place, (section, _) in enumerate(ROWS)])
def test_results_are_held_against_others(measured, monkeypatch, section, case):
    table = sections.SECTIONS[section]
    cells, right = table.row(measured, "a row", *case)
    assert right and len(cells) == len(table.columns) - 1, cells
    launch = measured.launch

    def partly(*given):
        """A call that leaves the end of its results zeros."""
        made = launch(*given)
        wait = made.wait

        def then_forget():
            wait()
            for one in made.outputs.values():
                one.view(-1)[-one.numel() // 8:] = 0
        made.wait = then_forget
        return made
    monkeypatch.setattr(measured, "launch", partly)
    cells, right = table.row(measured, "a row", *case)
    assert not right, cells
