"""A published kernel as torch sees it where there is no device: the operator, its shapes, its errors."""
import importlib.util
import os
import subprocess
import sys

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

TEXT = """
kernel norm(x: T[..., N], w: T[N], eps: f32) -> (y: T[..., N]) {
  s[...] = mean(x[..., j]**2 for j)
  y[..., j] = x[..., j]*rsqrt(s[...] + eps)*w[j]
}
kernel put(ids: i32[N], x: f32[N], c: inout f32[M]) -> (n: i64, d: f32[P, 2]) where P = (N + 1)//2 {
  c[ids[i]] += x[i]
  n = N
  d[p, k] = M
}
"""


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    (folder / "k.tgl").write_text(TEXT)
    modules = []
    for name, options in (("norm", ["--dtypes=f16,bf16", "--rank=1,2", "-d", "N=64,E0=3"]), ("put", [])):
        subprocess.run([os.environ["TEGULA_COMMAND"], "publish", str(folder / "k.tgl"), f"--kernel={name}", "-o",
                        str(folder / name), "--targets=sm_90a", *options], check=True)
        build = folder / name / "build" / "torch-cuda"
        modules.append(load(build / "__init__.py", f"loaded_{name}"))
        assert getattr(load(build / name / "__init__.py", f"older_{name}"), name)
    return modules


@pytest.mark.parametrize("shape", [(3, 64), (5, 100), (1, 1), (0, 7), (2, 3, 64)])
def test_shapes_of_a_call(published, shape):
    norm, _ = published
    with FakeTensorMode():
        x = torch.empty(shape, dtype=torch.bfloat16, device="cuda")
        y = norm.norm(x, eps=1e-5, w=torch.empty(shape[-1], dtype=torch.bfloat16, device="cuda"))
    assert (tuple(y.shape), y.dtype, y.device.type) == (shape, torch.bfloat16, "cuda")


def test_tracing_with_symbols(published):
    norm, _ = published
    traced = make_fx(lambda x, w: norm.norm(x*2, w, 1e-5) + 1, tracing_mode="symbolic")(
        torch.zeros(3, 64, dtype=torch.float16), torch.zeros(64, dtype=torch.float16))
    calls = [str(node.target) for node in traced.graph.nodes if node.op == "call_function"]
    assert any(one.startswith("_norm_cuda_") and one.endswith("norm.default") for one in calls), calls
    result = [node for node in traced.graph.nodes if "norm" in str(node.target)][0].meta["val"]
    assert not any(isinstance(dim, int) for dim in result.shape), result.shape


def test_updated_tensors_and_several_outputs(published):
    _, put = published
    with FakeTensorMode():
        n, d = put.put(torch.empty(5, dtype=torch.int32, device="cuda"), torch.empty(5, device="cuda"),
                       torch.empty(9, device="cuda"))
    assert n.shape == () and n.dtype == torch.int64 and tuple(d.shape) == (3, 2)
    schema = put.OPERATOR.default._schema
    assert [argument.name for argument in schema.arguments if argument.is_write] == ["c"]


def test_wrong_calls(published):
    norm, put = published
    x = torch.zeros(2, 8, dtype=torch.float16)
    with pytest.raises(TypeError, match="lacks w, eps"):
        norm.norm(x)
    with pytest.raises(TypeError, match="takes"):
        norm.norm(x, x[0], 1e-5, 3)
    with FakeTensorMode(), pytest.raises(TypeError, match="published for f16, bf16 with '...' of rank 1, 2, not for float32"):
        norm.norm(torch.empty(2, 8, device="cuda"), torch.empty(8, device="cuda"), 1e-5)
    with pytest.raises(NotImplementedError):  # of the CPU
        norm.norm(x, x[0], 1e-5)
