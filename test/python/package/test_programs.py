"""Programs: diagnostics as exceptions, warnings, what can be asked of a kernel."""
import ast
import inspect
import os
import pathlib
import pickle
import subprocess
import warnings

import pytest

import tegula
from conftest import LINEAR, SCALE

WRONG = "kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] && x[i] }"


def test_diagnostics_are_records():
    with pytest.raises(tegula.ProgramError) as caught:
        tegula.compile(WRONG, file_name="wrong.tgl")
    error = caught.value
    first = error.diagnostics[0]
    assert (first.code, first.name, first.severity) == ("E0111", "ForeignOperator", "error")
    assert first.span.file == "wrong.tgl" and WRONG[first.span.begin:first.span.end] == "&&"
    assert (first.span.line, first.span.column) == (1, 1 + WRONG.index("&&"))
    fix = first.fixes[0]
    assert fix.applicability == "safe" and fix.edits[0].text == "and" and fix.edits[0].span == first.span
    assert first.record["schema"] == "tegula.diagnostic"
    assert str(error).startswith("wrong.tgl:1:") and "error[E0111]" in str(error) and "^" in str(error)


def test_errors_and_warnings_go_to_other_processes():
    with pytest.raises(tegula.ProgramError) as caught:
        tegula.compile(WRONG)
    error = pickle.loads(pickle.dumps(caught.value))
    assert type(error) is tegula.ProgramError and str(error) == str(caught.value)
    assert error.diagnostics == caught.value.diagnostics and error.diagnostics[0].record["code"] == "E0111"
    warning = tegula.TegulaWarning("text", error.diagnostics[0])
    other = pickle.loads(pickle.dumps(warning))
    assert str(other) == "text" and other.diagnostic == warning.diagnostic


@pytest.mark.skipif(not os.environ.get("TEGULA_COMMAND"), reason="no command beside the package")
def test_text_is_the_commands(tmp_path):
    path = tmp_path / "wrong.tgl"
    path.write_text(WRONG)
    printed = subprocess.run([os.environ["TEGULA_COMMAND"], "check", str(path)], capture_output=True, text=True)
    with pytest.raises(tegula.ProgramError) as caught:
        tegula.load(path)
    assert str(caught.value) in printed.stdout + printed.stderr


def test_errors_of_checking_come_from_compile():
    with pytest.raises(tegula.ProgramError) as caught:
        tegula.compile("kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] + z[i] }")
    assert caught.value.diagnostics[0].severity == "error" and "'z'" in str(caught.value)


def test_no_such_kernel_and_no_such_file(tmp_path):
    with pytest.raises(tegula.LaunchError, match="no kernel 'other', but scale"):
        tegula.compile(SCALE, "other")
    with pytest.raises(tegula.ProgramError, match="expected a kernel"):
        tegula.compile("fn f(x) = x")
    with pytest.raises(OSError):
        tegula.load(tmp_path / "absent.tgl")


def test_warnings_come_once_and_point_here():
    text = "kernel k(x: f32[N], unused: f32[M], z: f32[L]) -> (y: f32[N]) { y[i] = x[i] + z[i] }"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernel = tegula.compile(text)
        kernel.compiled()
    records = [one.message.diagnostic for one in caught if isinstance(one.message, tegula.TegulaWarning)]
    assert records and len({(one.code, one.span, one.message) for one in records}) == len(records)
    assert all(one.severity == "warning" for one in records)
    assert all(one.filename == __file__ for one in caught)


def test_what_a_kernel_says_of_itself(linear):
    assert linear.name == "linear" and linear.__name__ == "linear"
    assert linear.signature == ("linear(x: T[..., K], w: T[N, K], b: T[N] = 0, factor: int = 1, step: int[2] = 1)"
                                " -> (y: T[..., N])")
    assert linear.parameters[0] == ("x", "in", "T", ("...", "K"), None)
    assert [one.name for one in linear.outputs] == ["y"]
    assert linear.signature in repr(linear)
    compiled = linear.compiled(T="f16", ellipsis_rank=2, optionals=("b",), factor=3)
    assert compiled.constants == {"factor": 3, "step": [1, 1]}
    assert [one["dtype"] for one in compiled.description["arguments"]] == ["f16"] * 4
    assert compiled.description["schema"] == "tegula.kernel"
    assert compiled is linear.compiled(T="f16", ellipsis_rank=2, optionals=("b",), factor=3)


def test_signature_and_help(linear):
    signature = inspect.signature(linear)
    assert str(signature) == "(x, w, b=None, factor=1, step=1, *, out=None)"
    assert linear.__doc__.startswith(linear.signature)
    required = tegula.compile("kernel k(x: f32[N], b: f32[N] = 0, n: i32) -> (y: f32[N]) { y[i] = x[i] + n }")
    assert str(inspect.signature(required)) == "(x, b=None, n=None, *, out=None)"
    keyword = tegula.compile("kernel k(x: f32[N], lambda: f32) -> (y: f32[N]) { y[i] = lambda * x[i] }")
    assert str(inspect.signature(keyword)) == "(*arguments: 'Any', **named: 'Any') -> 'Any'"


def test_stub_tells_what_the_module_has():
    from tegula import _tegula

    stub = ast.parse(pathlib.Path(tegula.__file__).with_name("_tegula.pyi").read_text())
    for node in stub.body:
        if isinstance(node, ast.ClassDef):
            methods = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
            assert {one for one in vars(getattr(_tegula, node.name)) if not one.startswith("__")} <= methods
            assert all(hasattr(getattr(_tegula, node.name), one) for one in methods)
    told = {node.name for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert told == {one for one in vars(_tegula) if not one.startswith("__")}


def test_stages():
    kernel = tegula.compile(SCALE)
    assert ".target sm_90a" in kernel.ptx() and ".target sm_80" in kernel.ptx("sm_80")
    assert "tgl.kernel" in kernel.stage("tgl")
    assert "define" in kernel.stage("llvm")
    with pytest.raises(ValueError, match="expected a stage"):
        kernel.stage("cubin")
    with pytest.raises(tegula.LaunchError, match="sm_1"):
        kernel.ptx("sm_1")
    with pytest.raises(tegula.LaunchError, match="no constant"):
        kernel.compiled(pad=1)


def test_precision_is_that_of_products():
    product = "kernel mm(x: f32[M, K], w: f32[K, N]) -> (y: f32[M, N]) {{ {} y[i, j] = sum(x[i, k] * w[k, j] for k) }}"

    def products(precision, statement=""):
        ptx = tegula.compile(product.format(statement), precision=precision).ptx(M=1024, N=1024, K=1024)
        return ptx.count("wgmma.mma_async"), ptx.count("mma.sync")

    assert products(None) == products("f32") == products("tf32", "precision f32;")
    assert 0 < products("tf32")[0] < products(None)[0]
    assert products("bf16")[0] <= products("tf32")[0]
    assert products("f32", "precision tf32;") == products("tf32")
    assert products("conv_tf32") == products(None)

    def of_windows(precision):
        conv = "kernel c(x: f32[N, C, H, H], w: f32[O, C, 3, 3]) -> (y: f32[N, O, H - 2, H - 2]) { y = conv2d(x, w) }"
        return tegula.compile(conv, precision=precision).ptx(N=16, C=64, H=34, O=128)

    assert of_windows("conv_tf32") == of_windows("tf32") != of_windows(None)
    with pytest.raises(ValueError, match="expected a precision f32, tf32, conv_tf32, bf16, got 'f16'"):
        tegula.compile(product.format(""), precision="f16")


def test_checked_kernels_run(scale):
    import torch

    x = torch.randn(3, 5)
    assert torch.equal(tegula.compile(SCALE, checked=True)(x, 2.0), scale(x, 2.0))


def test_kernels_are_freed():
    import gc
    import weakref

    kernel = tegula.compile(LINEAR)
    gone = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert gone() is None


def test_versions():
    assert tegula.__version__ == tegula.version() and tegula.llvm_version().startswith("22.")
