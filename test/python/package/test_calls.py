"""Calls with tensors of torch: arguments, specialisation, outputs, errors."""
import copy
import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading

import pytest
import torch

import tegula


def reference(x, w, b=None):
    return torch.nn.functional.linear(x.double(), w.double(), None if b is None else b.double())


def test_by_position_and_by_name(scale, device):
    x = torch.randn(3, 5, device=device)
    for y in (scale(x, 0.5), scale(x, s=0.5), scale(s=0.5, x=x)):
        assert y.device == x.device and torch.equal(y, 0.5 * x)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("leading", [(), (3,), (2, 0), (2, 3, 4)])
def test_dtypes_and_ranks_are_inferred(linear, device, dtype, leading):
    x = torch.randn(*leading, 7, device=device).to(dtype)
    w, b = torch.randn(5, 7, device=device).to(dtype), torch.randn(5, device=device).to(dtype)
    for bias in (None, b):
        y = linear(x, w, bias)
        assert y.dtype == dtype and y.shape == (*leading, 5)
        expected = reference(x, w, bias)
        assert torch.allclose(y.double(), expected, rtol=4 * torch.finfo(dtype).eps, atol=1e-5)


@pytest.mark.parametrize("terms", [16384, 16390])
def test_long_sums_lose_little(linear, device, terms):
    """Added up in parts: one after the other 16,384 terms lose 4e-6."""
    torch.manual_seed(5)
    x, w = torch.rand(64, terms, device=device), torch.randn(64, terms, device=device)
    expected = reference(x, w)
    assert float((linear(x, w, None).double() - expected).norm() / expected.norm()) < 1.5e-6


def test_constants_specialise_and_are_cached():
    kernel = tegula.compile("kernel k(x: f32[N], pad: int = 1, t: int[2] = 1, on: bool = true) -> (y: f32[N]) "
                            "{ y[i] = where(on, pad * t[0] + t[1], 0.0) * x[i] }")
    x = torch.ones(3)
    assert kernel(x).tolist() == [2] * 3
    assert kernel(x, pad=4).tolist() == [5] * 3
    assert kernel(x, 4, (2, 3)).tolist() == [11] * 3
    assert kernel(x, 4, t=[2, 3], on=False).tolist() == [0] * 3
    made = len(kernel._compiled)
    assert made == 4 and kernel.constants == {"pad": 4, "t": [2, 3], "on": False}
    kernel(x, pad=4)
    kernel(torch.ones(100), 4, (2, 3))
    assert len(kernel._compiled) == made
    fixed = tegula.compile("kernel k(x: f32[N], pad: int = 1) -> (y: f32[N]) { y[i] = pad * x[i] }", pad=3)
    assert fixed(x).tolist() == [3] * 3 and fixed(x, pad=2).tolist() == [2] * 3


@pytest.mark.parametrize("type, value, instead", [("float", 0.5, 3.0), ("int", 3, 4), ("bool", False, True),
                                                  ("int[2]", (2, 3), (4, 5))])
def test_constants_without_a_default_are_settled_when_compiling(type, value, instead):
    """For all calls: those by position and by name, the signature, an operator of PyTorch."""
    read = "c[0] + 10 * c[1]" if type == "int[2]" else "where(c, 1.0, 2.0)" if type == "bool" else "c"
    text = f"kernel k(x: f32[N], c: {type}, s: f32) -> (y: f32[N]) {{ y[i] = s * x[i] + {read} }}"
    def wanted(c):
        return 2 + (c[0] + 10 * c[1] if type == "int[2]" else (1 if c else 2) if type == "bool" else c)
    kernel, x = tegula.compile(text, c=value), torch.ones(2)
    assert kernel(x, s=2).tolist() == kernel(x, None, 2).tolist() == [wanted(value)] * 2
    assert kernel.compiled().constants["c"] == (list(value) if type == "int[2]" else value)
    assert kernel(x, instead, 2).tolist() == kernel(x, c=instead, s=2).tolist() == [wanted(instead)] * 2
    assert kernel(x, s=2).tolist() == [wanted(value)] * 2
    with pytest.raises(tegula.LaunchError, match="needs 'c'"):
        tegula.compile(text)(x, s=2)
    with pytest.raises(tegula.LaunchError, match="needs 's'"):
        kernel(x)


def test_settings_that_a_kernel_does_not_have_are_told_when_compiling():
    text = "kernel k(x: T[..., N], c: int, s: f32) -> (y: T[..., N]) { y[..., i] = s * c * x[..., i] }"
    assert tegula.compile(text, c=2, T="f32", N=4)(torch.ones(3, 4), s=1).sum() == 24
    for name, told in (("d", "has no constant, type or size 'd'"), ("s", "'s' is a scalar"), ("x", "'x' is a tensor"),
                       ("y", "'y' is a tensor"), ("M", "has no constant, type or size 'M'")):
        with pytest.raises(tegula.LaunchError, match=told):
            tegula.compile(text, **{name: 2})


def test_scalars_with_a_default(device):
    kernel = tegula.compile("kernel k(x: f32[N], s: f32 = 2, n: i32 = 1) -> (y: f32[N]) { y[i] = x[i] * s + n }")
    x = torch.ones(2, device=device)
    for arguments, named, wanted in (((), {}, 3), ((0.5,), {}, 1.5), ((), {"n": 4}, 6), ((0.5, 4), {}, 4.5),
                                     ((None, 4), {}, 6), ((2.0,), {}, 3)):
        assert kernel(x, *arguments, **named).tolist() == [wanted] * 2
    assert len(kernel._compiled) == 4


def test_outputs_may_be_given(scale, device):
    x, y = torch.randn(3, 5, device=device), torch.full((3, 5), float("nan"), device=device)
    before = y._version
    assert scale(x, 2.0, out=y) is y
    assert torch.equal(y, 2 * x) and y._version > before
    with pytest.raises(tegula.LaunchError, match=r"not contiguous.*\.contiguous\(\)"):
        scale(x, 2.0, out=torch.empty(5, 3, device=device).T)
    with pytest.raises(tegula.LaunchError, match="'y'"):
        scale(x, 2.0, out=torch.empty(3, 4, device=device))
    with pytest.raises(tegula.LaunchError, match="has 1 outputs, out= gives 2"):
        scale(x, 2.0, out=(y, y))


def test_several_outputs_and_inout(device):
    pair = tegula.compile("kernel pair(x: f32[N]) -> (a: f32[N], n: f32) { a[i] = 2 * x[i]\n n = sum(x[i] for i) }")
    x = torch.arange(4.0, device=device)
    a, n = pair(x)
    assert torch.equal(a, 2 * x) and n.shape == () and n.item() == 6
    a, n = torch.empty_like(x), torch.empty((), device=device)
    assert pair(x, out=(a, n)) == (a, n) and n.item() == 6
    bump = tegula.compile("kernel bump(c: inout f32[N], v: f32[N]) { c[i] = c[i] + v[i] }")
    c = torch.zeros(4, device=device)
    version = c._version
    assert bump(c, x) is None and torch.equal(c, x) and c._version > version
    with pytest.raises(tegula.LaunchError, match=r"\.contiguous\(\)"):
        bump(torch.zeros(8, device=device)[::2], x)


def test_inputs_that_are_not_contiguous_are_copied(scale, device):
    x = torch.randn(6, 5, device=device)
    for view in (x.T, x[::2], x[:, 1:3], x[:1].expand(4, 5)):
        assert torch.equal(scale(view, 2.0), 2 * view)
    if device == "cpu":
        negative = torch.imag(torch.randn(1, 1, dtype=torch.complex64).conj())
        assert negative.is_neg() and torch.equal(scale(negative, 1.0), negative)


class Named(torch.Tensor):
    """A subclass, which torch's table of C functions does not speak for."""


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn,
                                   torch.float8_e5m2, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
                                   torch.bool])
def test_all_dtypes_are_read_and_made(dtype, device):
    copy = tegula.compile("kernel copy(x: T[M, N]) -> (y: T[M, N]) { y[i, j] = x[i, j] }")
    for shape in ((3, 5), (1, 5), (0, 4), (4, 0)):
        x = torch.randint(2, shape, device=device).to(dtype)
        for given in (x, x.as_subclass(Named), torch.nn.Parameter(x, requires_grad=False)):
            y = copy(given)
            assert type(y) is torch.Tensor and y.dtype == dtype and y.device == x.device
            assert y.shape == shape and y.stride() == torch.empty(shape).stride()
            assert torch.equal(y.view(torch.uint8) if "float8" in str(dtype) else y,
                               x.view(torch.uint8) if "float8" in str(dtype) else x)


def test_negated_views_are_resolved(scale, device):
    x = torch.randn(3, 5, device=device)
    view = torch._neg_view(x)
    assert view.is_contiguous() and torch.equal(scale(view, 2.0), -2 * x)


@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")
def test_modes_around_a_call(scale, device):
    from torch._subclasses import FakeTensorMode
    x = torch.randn(3, 5, device=device)
    with torch.inference_mode():
        y = scale(x, 2.0)
    assert y.is_inference() and torch.equal(y, 2 * x)
    with FakeTensorMode():
        with pytest.raises(tegula.LaunchError, match="'x' has no memory"):
            scale(torch.empty(3, 5, device=device), 2.0)


@pytest.mark.gpu
def test_an_output_is_where_the_inputs_are(scale):
    if torch.cuda.device_count() < 2:
        pytest.skip("one device")
    x = torch.randn(3, 5, device="cuda:1")
    assert torch.cuda.current_device() == 0 and scale(x, 2.0).device == x.device


def test_without_what_newer_torch_has():
    """A torch without the table of C functions and torch.compile's allocation is read by attributes."""
    program = """
import torch, tegula, torch._C._dynamo.guards as guards
torch.Tensor.__dlpack_c_exchange_api__ = None
guards._empty_strided_cpu = guards._empty_strided_cuda = None
scale = tegula.compile("kernel scale(x: T[M, N], s: T) -> (y: T[M, N]) { y[i, j] = s * x[i, j] }")
for device in ["cpu"] + ["cuda"] * torch.cuda.is_available():
    x = torch.randn(3, 5, device=device)
    for given in (x, x.half(), x.T, x[:, 1:], x[:0], torch._neg_view(x), torch.nn.Parameter(x)):
        assert torch.equal(scale(given, 2.0), 2 * given), given
    y = torch.empty_like(x)
    assert scale(x, 2.0, out=y) is y and torch.equal(y, 2 * x)
"""
    subprocess.run([sys.executable, "-c", program], check=True,
                   env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


def test_wrong_arguments(scale, linear):
    x = torch.randn(3, 5)
    for call, words in (
        (lambda: scale(x), "needs 's'"),
        (lambda: scale(x, 1.0, 2.0), "takes 2 arguments, 3 given"),
        (lambda: scale(x, 1.0, x=x), "by position and by name"),
        (lambda: scale(x, factor=1.0), "no parameter 'factor'"),
        (lambda: scale(x, **{"\ud800": 1.0}), "no parameter"),
        (lambda: scale(x, "much"), "'s' is a scalar"),
        (lambda: scale(None, 1.0), "needs 'x'"),
        (lambda: scale([1.0], 1.0), "'x' is a list"),
        (lambda: scale(x[0], 1.0), "'x'"),
        (lambda: scale(x.double(), 1.0), "'x'"),
        (lambda: scale(x.to(torch.complex64), 1.0), "complex64"),
        (lambda: scale(x.to("meta"), 1.0), "device 'meta'"),
        (lambda: linear(x, torch.randn(4, 6)), "'w'"),
        (lambda: linear(x, torch.randn(4, 5).half()), "'w'"),
        (lambda: linear(torch.tensor(1.0), x), "'x' has rank 0"),
        (lambda: linear(x, x, factor=object()), "'factor' is a constant"),
    ):
        with pytest.raises(tegula.LaunchError, match=words) as caught:
            call()
        assert caught.value.diagnostics[0].code == "C0002", words
        assert isinstance(caught.value, ValueError)


def test_data_dependent_subscript(device):
    gather = tegula.compile("kernel g(t: f32[V, D], ids: i64[N]) -> (y: f32[N, D]) { y[i, d] = t[ids[i], d] }")
    table = torch.randn(10, 4, device=device)
    ids = torch.tensor([1, 9, 3], device=device)
    assert torch.equal(gather(table, ids), table[ids])
    ids[1] = 77
    with pytest.raises(tegula.LaunchError, match="77") as caught:
        gather(table, ids)
        gather.synchronize()
    assert caught.value.diagnostics[0].code == "C0004"
    gather.synchronize()


def test_parameters_and_gradients_are_left_alone(scale):
    x = torch.nn.Parameter(torch.randn(3, 5))
    y = scale(x, 2.0)
    assert not y.requires_grad and torch.equal(y, 2 * x.detach())


def test_guards_are_checked_by_calls():
    with pytest.warns(tegula.TegulaWarning):
        kernel = tegula.compile("kernel k(x: f32[N], z: f32[M]) -> (y: f32[M]) { y[i] = x[i + 1] + z[i] }")
    assert kernel.guards and all(one.message for one in kernel.guards)
    assert kernel(torch.ones(5), torch.ones(4)).tolist() == [2] * 4
    with pytest.raises(tegula.LaunchError):
        kernel(torch.ones(4), torch.ones(4))


def test_threads_share_a_kernel():
    kernel = tegula.compile("kernel k(x: T[M, N]) -> (y: T[M, N]) { y[i, j] = x[i, j] + 1 }")
    failures = []

    def work(dtype):
        try:
            for size in range(1, 40):
                x = torch.zeros(size, 3, dtype=dtype)
                assert torch.equal(kernel(x), x + 1)
        except BaseException as error:  # raised again below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(one,)) for one in (torch.float32, torch.float64) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert len(kernel._compiled) == 2


def test_threads_that_miss_together():
    from tegula import _kernel, _tegula

    program = _tegula.parse("kernel k(x: f32[M, K]) -> (y: f32[M, M]) "
                            "{ y[i, j] = sum(abs(x[i, k] - x[j, k]) for k) }", "<input>")
    barrier = threading.Barrier(2)

    def specialise(device, tensors, constants):
        compiled, _, _ = _tegula.compile(_kernel._context(device), program, "k", "cpu", [], 0, [], False, [], False, None, 0)
        barrier.wait()
        return compiled

    # Each makes a kernel of its own, and the first runs when the second comes to put its own away.
    caller, x, results = _tegula.Caller(program, 0, specialise), torch.randn(500, 300), []
    threads = [threading.Thread(target=lambda: results.append(caller(x))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for y in results:
        torch.testing.assert_close(y, torch.cdist(x, x, p=1), rtol=1e-4, atol=1e-3)
    assert len(results) == 2


def test_four_bit_integers():
    kernel = tegula.compile("kernel k(x: u4[M, N]) -> (y: i32[M, N]) { y[i, j] = i32(x[i, j]) }")
    x = torch.tensor([[0x21, 0xF3]], dtype=torch.uint8)
    assert kernel(x).tolist() == [[1, 2, 3, 15]]
    with pytest.raises(tegula.LaunchError, match="uint8"):
        kernel(torch.ones(1, 2))


@pytest.mark.gpu
def test_current_stream_and_devices(scale):
    x = torch.randn(1 << 20, 4, device="cuda")
    scale(x, 1.0)  # what the first call compiles would take longer than the stream is kept busy below
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        z = scale(x + 1, 2.0)
        assert not stream.query()
    stream.synchronize()
    assert torch.equal(z, 2 * (x + 1))
    with pytest.raises(tegula.LaunchError, match="on CUDA device 0, 'x'|on the CPU"):
        tegula.compile("kernel k(x: f32[N], z: f32[N]) -> (y: f32[N]) { y[i] = x[i] + z[i] }")(x[:, 0], x[:, 0].cpu())


@pytest.mark.gpu
def test_workspace_comes_from_torch():
    # What all tiles wait for lies in memory of torch's allocator: its peak shows it, and it is given back.
    kernel = tegula.compile("kernel k(x: f32[M, N]) -> (y: f32[M, N]) "
                            "{ s[j] = sum(x[i, j] for i)\n y[i, j] = x[i, j] - max(s[k] for k) }")
    x = torch.randn(512, 4096, device="cuda")
    wanted = x - x.double().sum(0).max().float()
    torch.testing.assert_close(kernel(x), wanted, rtol=1e-4, atol=1e-3)
    torch.cuda.synchronize()
    gc.collect()  # tensors of tests before, in cycles
    before = torch.cuda.memory_allocated()
    streams = [torch.cuda.Stream() for _ in range(3)]
    results = []
    for stream in streams * 4:
        with torch.cuda.stream(stream):
            results.append(kernel(x))
    torch.cuda.synchronize()
    for y in results:
        torch.testing.assert_close(y, wanted, rtol=1e-4, atol=1e-3)
    del results, y
    assert torch.cuda.memory_allocated() == before


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one device")
def test_second_device(scale):
    x = torch.randn(3, 5, device="cuda:1")
    assert torch.cuda.current_device() == 0
    y = scale(x, 2.0)
    assert y.device == x.device and torch.equal(y, 2 * x) and torch.cuda.current_device() == 0
    with pytest.raises(tegula.LaunchError, match="CUDA device 1"):
        tegula.compile("kernel k(x: f32[N], z: f32[N]) -> (y: f32[N]) { y[i] = x[i] + z[i] }")(x[0], x[0].to("cuda:0"))


def test_modes_of_torch_see_nothing_of_a_call(scale, device):
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    x = torch.randn(3, 5, device=device)
    y = torch.empty_like(x)
    with Mode():
        scale(x, 0.5, out=y)
        with pytest.raises(tegula.LaunchError):
            scale(3, 0.5)
        assert not seen
        x + 1
        assert seen  # the mode is back, after an error too
    assert torch.equal(y, 0.5 * x)


def test_copies_are_the_kernel(scale):
    x = torch.randn(3, 5)
    assert copy.deepcopy(scale) is scale and copy.copy(scale) is scale
    module = torch.nn.Linear(5, 5)
    module.kernel = scale
    assert torch.equal(copy.deepcopy(module).kernel(x, 2.0), 2 * x)


def test_pickle():
    kernel = tegula.compile("kernel other(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }\n"
                            "kernel k(x: T[N], n: int, e: float = 1.0) -> (y: T[N]) { y[i] = n*x[i] + e }",
                            "k", file_name="k.tgl", checked=True, T="f64", e=0.5)
    again = pickle.loads(pickle.dumps(kernel))
    x = torch.randn(7, dtype=torch.float64)
    assert again.signature == kernel.signature and again.name == "k"
    assert torch.equal(again(x, n=3), kernel(x, n=3)) and torch.allclose(again(x, n=3), 3 * x + 0.5)
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        assert pool.apply(again, (x.numpy(), 3)).tolist() == kernel(x, n=3).tolist()
    with pytest.raises(tegula.LaunchError) as caught:
        kernel(x)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).diagnostics == caught.value.diagnostics


def test_tensors_that_are_not_dense(scale):
    x = torch.randn(3, 3)
    nested = torch.nested.nested_tensor([torch.randn(2), torch.randn(3)])
    for call, words in (
        (lambda: scale(x.to_sparse(), 1.0), r"'x' has the layout torch.sparse_coo, .*x.to_dense\(\)"),
        (lambda: scale(x.to_sparse_csr(), 1.0), r"'x' has the layout torch.sparse_csr, .*x.to_dense\(\)"),
        (lambda: scale(x.to_mkldnn(), 1.0), r"'x' has the layout torch._mkldnn, .*x.to_dense\(\)"),
        (lambda: scale(nested, 1.0), "'x' is a nested tensor: pass x.to_padded_tensor"),
        (lambda: torch.vmap(lambda row: scale(row, 1.0))(x[:, None]), "inside of torch.vmap.*tegula.library"),
        (lambda: torch.func.grad(lambda x: scale(x, 1.0).sum())(x), "inside of torch.vmap, torch.func.grad"),
    ):
        with pytest.raises(tegula.LaunchError, match=words) as caught:
            call()
        assert caught.value.diagnostics[0].code == "C0002"
