"""The programs beside bench/cuda's kernels are those kernels: on the CPU at small sizes, against its references."""
import importlib.util
import pathlib

import pytest
import torch

from tegula_eval.program import runner

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "bench" / "cuda"
SMALL = {"N": 64, "M": 8, "C": 6, "H": 9, "W": 10, "K": 12, "L": 6, "V": 20, "D": 8, "B": 5}


def load():
    spec = importlib.util.spec_from_file_location("twins", FOLDER / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RUN = load()
TWINS = RUN.twins(torch)


class OnHost:
    """What the makers of inputs ask of torch."""
    @staticmethod
    def randn(dims, device):
        return torch.randn(dims)

    @staticmethod
    def randint(low, high, dims, device):
        return torch.randint(low, high, dims)


def test_each_twin_is_in_the_table():
    assert sorted(TWINS) == sorted(one.stem for one in FOLDER.glob("*.cu"))


@pytest.mark.parametrize("name", TWINS)
def test_program_is_the_kernel(name):
    twin = TWINS[name]
    inputs = twin.inputs(OnHost, {key: SMALL[key] for key in twin.sizes})
    kernel = runner.Program((FOLDER / "programs" / f"{name}.tgl").read_text()).compile({}, target="cpu")
    given = [one.name.decode() for one in kernel.arguments if runner.ROLES[one.role] == "in"]
    call = kernel.prepare(dict(zip(given, inputs, strict=True)))
    call()
    output, = call.outputs.values()
    assert RUN.error_of(torch, output, twin.reference(*inputs)) <= twin.tolerance
