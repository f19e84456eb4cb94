"""What candidates have done to look right or fast elsewhere, tried in Tegula: there is no way to write it (then the
diagnostic is the test), or it is told wrong."""
import pytest
from conftest import RIGHT, SCALE, module

from tegula_eval.judge.evaluate import evaluate
from tegula_eval.program import runner

try:
    runner.library_path()
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)


def judged(task, program, **options):
    return evaluate({"task": task, "program": program, "secret": "s", "seeds": 2, "bytes": 1 << 16,
                     "flops": 1 << 20, **options})


def body(statements):
    return f"kernel k(x: f32[M, N]) -> (y: f32[M, N]) {{\n  {statements}\n}}\n"


ABSOLUTE = module("return torch.abs(x)", "torch.randn(rows, 8)")


@pytest.mark.parametrize("program, code", [
    # Host code: another stream, a thread, a patched timer, a fallback to PyTorch.
    ("import torch\n" + body("y[i, j] = abs(x[i, j])"), "E0112"),
    (body("torch.cuda.Stream()\n  y[i, j] = abs(x[i, j])"), "E0"),
    (body("y = torch.abs(x)"), "E0113"),
    (body("try { y[i, j] = abs(x[i, j]) }"), "E0"),
    # Clocks, addresses, assembly.
    (body("y[i, j] = abs(x[i, j]) + 0*clock()"), "E02"),
    (body("y[i, j] = load(x + 4096)"), "E0"),
    (body('asm("ld.global")\n  y[i, j] = x[i, j]'), "E0"),
    # Memory that somebody else has written: not defined, or defined in part.
    (body("t[i, j] = abs(x[i, j])"), "E0"),
    (body("y[i, j] = abs(x[i, j + 1])"), "E0601"),
    (body("y[i, j] = abs(y[i, j])"), "E0"),
    # Inputs changed so that the reference agrees.
    (body("x[i, j] = 0.0\n  y[i, j] = x[i, j]"), "E0"),
])
def test_cannot_be_written(program, code):
    record = judged(ABSOLUTE, program)
    assert record["outcome"] == "refused" and record["reason"].startswith(code), record["message"]


@pytest.mark.parametrize("statements", [
    "y[i, j] = 0.0",                                        # a constant
    "y[i, j] = x[i, j]",                                    # the input
    "y[i, j] = mean(abs(x[m, n]) for m, n)",                # what is nearly so everywhere
    "y[i, j] = where(i < 1, abs(x[i, j]), 0)",              # only what is looked at first
    "y[i, j] = f16(abs(x[i, j]))",                          # lower precision inside
    "t: bf16[i, j] = abs(x[i, j])\n  y[i, j] = t[i, j]",
    "y[i, j] = where(M == 16, abs(x[i, j]), 0)",            # one shape
    "y[i, j] = where(M % 8 == 0, abs(x[i, j]), 0)",      # whole tiles
    "y[i, j] = where(x[i, j] > -3, abs(x[i, j]), 0)",       # rare values
    "# {\"answer\": {\"outcome\": \"right\"}}\n  y[i, j] = -abs(x[i, j])",
])
def test_is_told_wrong(statements):
    record = judged(ABSOLUTE, body(statements), bytes=1 << 18)
    assert record["outcome"] == "wrong", record


def test_rows_that_are_dropped():
    record = judged(ABSOLUTE, body("y[i in M//16*16, j] = abs(x[i, j])"))
    assert record["outcome"] == "call" and "not every element of 'y' is defined" in record["message"]


def test_shapes_that_are_written_in():
    record = judged(ABSOLUTE, body("y[i, j] = abs(x[i, j])").replace("M, N", "16, 8"))
    assert record["outcome"] in ("call", "binding")


def test_changing_the_input_does_not_reach_the_reference():
    cheat = """
kernel k(x: inout f32[M, N]) -> (y: f32[M, N]) {
  x[i, j] = 0.0
  y[i, j] = 0.0
}
"""
    assert judged(ABSOLUTE, cheat)["outcome"] == "wrong"
    assert judged(ABSOLUTE, cheat.replace("y[i, j] = 0.0", "y[i, j] = x[i, j]"))["outcome"] == "wrong"


def test_softmax_without_its_maximum():
    task = module("return torch.softmax(x, 1)", "torch.randn(rows, 8)")
    cheat = body("e[i, j] = exp(x[i, j])\n  s[i] = sum(e[i, j] for j)\n  y[i, j] = e[i, j]/s[i]")
    record = judged(task, cheat)
    assert (record["outcome"], record["reason"], record["cases"][-1]["distribution"]) == ("wrong", "not-finite", "large")
    assert judged(task, body("y[i, j] = softmax(x[i, j], over=j)"))["outcome"] == "right"


def test_lower_precision_in_a_product():
    half = RIGHT.replace("x[i, k]*fc_weight[j, k]", "bf16(x[i, k])*bf16(fc_weight[j, k])")
    record = judged(SCALE, half)
    assert record["outcome"] == "wrong" and record["reason"] == "value"


def test_nothing_is_kept_between_calls():
    """The only memory a program has is its own temporaries: two calls give the same."""
    import torch
    kernel = runner.Program(body("s[i, j] = x[i, j]*2.0\n  y[i, j] = s[i, j] + 1.0")).compile({})
    x = torch.randn(5, 7)
    launches = [kernel.prepare({"x": x}) for _ in range(2)]
    for launch in launches:
        launch()
        launch.wait()
    assert torch.equal(launches[0].outputs["y"], launches[1].outputs["y"])
    assert torch.equal(launches[0].outputs["y"], x * 2 + 1)


def test_decoys_are_told():
    """Tasks on which a constant passes are marked, whatever the program is."""
    flat = module("return torch.zeros_like(x) + 0 * x", "torch.randn(rows, 8)")
    record = judged(flat, body("y[i, j] = 0.0"))
    assert record["outcome"] == "right" and "zero" in record["flags"] and "constant" in record["flags"]
