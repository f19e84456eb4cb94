"""Calls with arrays of numpy and with whatever else has `__dlpack__`."""
import subprocess
import sys

import numpy as np
import pytest
import torch

import tegula


class Exporter:
    """An array of which nothing is known but DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class FreshExporter(Exporter):
    """Gives memory that nobody else holds."""

    def __dlpack__(self, **options):
        return self.array.copy().__dlpack__(**options)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_numpy_in_numpy_out(linear, dtype):
    x, w = np.random.randn(2, 3, 7).astype(dtype), np.random.randn(5, 7).astype(dtype)
    y = linear(x, w)
    assert isinstance(y, np.ndarray) and y.dtype == dtype
    np.testing.assert_allclose(y, x.astype("f8") @ w.astype("f8").T, rtol=4 * np.finfo(dtype).eps, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8", "bool"])
def test_integers(dtype):
    name = {"uint8": "u8", "bool": "bool"}.get(dtype, dtype.replace("int", "i"))
    kernel = tegula.compile(f"kernel k(x: {name}[N]) -> (y: {name}[N]) {{ y[i] = x[i] }}")
    x = np.array([0, 1, 1, 0]).astype(dtype)
    y = kernel(x)
    assert y.dtype == x.dtype and np.array_equal(y, x)


def test_views_and_read_only(scale):
    x = np.random.randn(6, 5).astype("f4")
    for view in (x.T, x[::2], x[:, ::-1], np.broadcast_to(x[0], (3, 5)), x[:0]):
        np.testing.assert_array_equal(scale(view, 2.0), 2 * view)
    y = np.empty((6, 5), "f4")
    assert scale(x, 2.0, out=y) is y and np.array_equal(y, 2 * x)
    y.flags.writeable = False
    assert np.array_equal(scale(y, 1.0), y)
    with pytest.raises(tegula.LaunchError, match="'y' is written and read-only"):
        scale(x, 2.0, out=y)
    with pytest.raises(tegula.LaunchError, match="not contiguous"):
        scale(x, 2.0, out=np.empty((5, 6), "f4").T)


def test_any_object_with_dlpack(scale):
    x = np.random.randn(3, 5).astype("f4")
    y = scale(Exporter(x), 2.0)
    assert isinstance(y, np.ndarray) and np.array_equal(y, 2 * x)
    assert np.array_equal(scale(Exporter(x.T), 2.0), 2 * x.T)
    large = np.random.randn(1000, 1000).astype("f4")  # which numpy gives back to the system at once
    assert np.array_equal(scale(FreshExporter(large), 2.0), 2 * large)
    y = torch.empty(3, 5)
    assert scale(Exporter(x), 2.0, out=y) is y and np.array_equal(y.numpy(), 2 * x)
    mixed = tegula.compile("kernel k(x: f32[N], z: f32[N]) -> (y: f32[N]) { y[i] = x[i] + z[i] }")
    assert isinstance(mixed(x[0], torch.ones(5)), torch.Tensor)


@pytest.mark.gpu
def test_arrays_of_another_library_on_a_device(scale):
    cupy = pytest.importorskip("cupy")
    x = cupy.arange(15, dtype="f4").reshape(3, 5)
    y = scale(x, 2.0)  # torch is there to make it
    assert y.device.type == "cuda" and np.array_equal(y.cpu().numpy(), cupy.asnumpy(2 * x))
    z = cupy.empty_like(x)
    assert scale(x, 3.0, out=z) is z and bool((z == 3 * x).all())
    assert scale(Exporter(x), 3.0, out=torch.empty(3, 5, device="cuda")).sum().item() == 315
    with pytest.raises(tegula.LaunchError, match="'x' is not contiguous"):
        scale(x.T, 2.0)


def test_what_numpy_has_not():
    kernel = tegula.compile("kernel k(x: f32[N]) -> (y: bf16[N]) { y[i] = x[i] }")
    x = np.ones(3, "f4")
    with pytest.raises(tegula.LaunchError, match="bf16, which numpy has not"):
        kernel(x)
    assert kernel(x, out=torch.empty(3, dtype=torch.bfloat16)).tolist() == [1] * 3
    for wrong in (x.astype("c8"), x.astype("u4"), np.array(["a"])):
        with pytest.raises(tegula.LaunchError, match="'x'"):
            kernel(wrong)


def test_torch_is_not_needed(tmp_path):
    program = ("import sys; sys.modules['torch'] = None\n"
               f"sys.path[:0] = {sys.path!r}\n"
               "import numpy, tegula\n"
               "k = tegula.compile('kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] + 1 }')\n"
               "assert k(numpy.zeros(3, 'f4')).tolist() == [1, 1, 1]\n")
    subprocess.run([sys.executable, "-c", program], check=True)


def test_dims_that_are_linear_in_a_size():
    kernel = tegula.compile("kernel k(x: f32[M, 2*P + 1], w: f32[H, H*D]) -> (y: f32[P, M], z: f32[D]) {\n"
                            "  y[p, m] = x[m, 2*p + 1] - x[m, 2*p]\n  z[d] = sum(w[h, (h, d)] for h)\n}")
    x, w = np.random.randn(3, 7).astype("f4"), np.random.randn(2, 6).astype("f4")
    y, z = kernel(x, w)
    assert y.shape == (3, 3) and np.array_equal(y, (x[:, 1::2] - x[:, :-1:2]).T)
    np.testing.assert_allclose(z, w[0, :3] + w[1, 3:], rtol=1e-6)
    assert kernel(x[:, :1], w)[0].shape == (0, 3)
    for arrays, words in (((x[:, :6], w), r"dim 2 of 'x' is not 2\*P \+ 1 for any whole P \(x_dim2 = 6\)"),
                          ((x[:, :0], w), r"dim 2 of 'x' is not 2\*P \+ 1 for any whole P"),
                          ((x, w[:, :5]), r"dim 2 of 'w' is not H\*D for any whole D"),
                          ((x, w[:0]), "division by H, which is zero")):
        with pytest.raises(tegula.LaunchError, match=words):
            kernel(*arrays)
    shift = tegula.compile("kernel k(x: f32[P + 2]) -> (y: f32[P]) { y[p] = x[p + 2] }")
    assert np.array_equal(shift(x[0]), x[0, 2:])
    with pytest.raises(tegula.LaunchError, match=r"dim 1 of 'x' is less than P \+ 2 with P = 0"):
        shift(x[0, :1])
