"""The gradients of programs of bench/real and bench/kernelbench, at small sizes, against central differences."""
import os
import sys
from pathlib import Path

import pytest
import tegula
from numeric import NUMPY, compare, gradient, inputs_of, read, widened

TREE = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TREE / "bench"))
sys.path.append(str(TREE / "python"))  # tegula_eval; tegula itself is the build's

from real import suite  # noqa: E402

COMMAND = os.environ.get("TEGULA_COMMAND", str(TREE / "build/dev/bin/tegula"))
REAL = ["attention_softcap_alibi", "cross_entropy_smoothed", "dpo_loss", "embedding_bag", "gated_delta_rule", "grid_sample_bilinear",
        "group_norm_silu", "grpo_loss", "gru_layer", "kl_distillation_grad", "mamba2_chunks", "mamba2_steps", "min_gru", "moe_swiglu_top2", "rope_qk",
        "selective_scan", "spmv_csr", "ssim_11", "swiglu_packed", "varlen_attention", "patch_embedding"]
KERNELBENCH = {
    "level1/42_Max_Pooling_2D": dict(B=2, N=2, C=3, H=7, W=8, kernel_size=3, stride=2, padding=1, dilation=1),
    "level1/99_TripletMarginLoss": dict(B=3, N=3, D=5, C=5, M=3),
    "level2/4_Conv2d_Mish_Mish": dict(N=2, C=2, H=6, W=5, O=3, KH=3, KW=2),
}


def number(text):
    try:
        return int(text)
    except ValueError:
        return float(text)


@pytest.mark.parametrize("name", REAL)
def test_real(name):
    kernel = suite.load()[name]
    case = kernel.case(suite.Data("cpu", seed=1), small=True)
    text = widened(read(kernel.file))
    types = {one.name: one.type for one in tegula.compile(text).parameters}
    values = {}
    for one, tensor in case.tensors.items():
        is_float = types[one] not in NUMPY or types[one] == "f64"
        values[one] = (tensor.double() if is_float else tensor).numpy()
    values.update({one: number(value) for one, value in case.constants.items()})
    options = [f"-p={one}={value}" for one, value in case.constants.items()]
    assert compare(text, gradient(COMMAND, text, *options), values) < 1e-6


@pytest.mark.parametrize("name", KERNELBENCH)
def test_kernelbench(name):
    text = widened(read(TREE / "bench/kernelbench/programs" / f"{name}.tgl"))
    kernel = tegula.compile(text)
    constants = [one.name for one in kernel.parameters if one.role == "constant"]
    sizes = KERNELBENCH[name]
    options = [f"-p={one}={sizes[one]}" for one in constants if one in sizes]
    values = inputs_of(kernel, sizes, {}, seed=1)
    assert compare(text, gradient(COMMAND, text, *options), values) < 1e-6
