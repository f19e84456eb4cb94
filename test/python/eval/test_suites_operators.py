"""Our own programs for FlashInfer-Bench and kernelbench.com's Hard deck (bench/suites/programs), right at small workloads."""
import pytest
import suite_deck
import torch
from suite_files import OWN_PROGRAMS, flashinfer, outcomes, records, run, safetensors, workload
from suite_operators import EMPTY, OPERATORS

from tegula_eval.commands import exit_codes
from tegula_eval.program import runner
from tegula_eval.suites import results

try:
    runner.library_path()
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)


def write(folder):
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


def test_all_are_right(tmp_path):
    folder, out = write(tmp_path / "trace"), tmp_path / "out"
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
