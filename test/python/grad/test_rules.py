"""Each rule of `tegula grad`, and each place where a rule could be silently wrong, against torch.autograd in float64."""
import os
from pathlib import Path

import numpy as np
import pytest
import tegula
import torch
from numeric import Refused, compare, gradient, inputs_of, warnings

TREE = Path(__file__).resolve().parents[3]
COMMAND = os.environ.get("TEGULA_COMMAND", str(TREE / "build/dev/bin/tegula"))


def agree(text, reference, options=(), tolerance=1e-7, constants=None, **inputs):
    """Holds the gradient of `text` against torch.autograd's of `reference`, both of random output gradients."""
    written = gradient(COMMAND, text, *options)
    assert len(warnings(COMMAND, written)) <= len(warnings(COMMAND, text)), written
    backward = tegula.compile(written)
    tensors = {name: torch.as_tensor(np.asarray(value)) for name, value in inputs.items()}
    for one in tensors.values():
        if one.dtype == torch.float64:
            one.requires_grad_()
    results = reference(*tensors.values())
    results = results if isinstance(results, tuple) else (results,)
    generator = torch.Generator().manual_seed(3)
    seeds = [torch.randn(one.shape, generator=generator, dtype=torch.float64) for one in results]
    torch.autograd.backward([one for one in results if one.requires_grad],
                            [seed for one, seed in zip(results, seeds) if one.requires_grad])
    outputs = [one.name for one in tegula.compile(text, **(constants or {})).outputs]
    values = {name: one.detach() for name, one in tensors.items()}
    values.update({name: one.detach() for name, one in zip(outputs, results) if name not in values})
    values.update({f"grad_{name}": seed for name, seed in zip(outputs, seeds)})
    names = [one.name for one in backward.parameters if one.role != "out"]
    found = backward(**{name: values[name] for name in names})
    found = found if isinstance(found, tuple) else (found,)
    for one, got in zip(backward.outputs, found):
        expected = tensors[one.name.removeprefix("grad_")].grad
        expected = torch.zeros_like(got) if expected is None else expected
        torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance, equal_nan=True,
                                   msg=lambda text: f"{one.name}: {text}\n{written}")
    return written


def draw(*shape, seed=0, low=None, high=None):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) if low is None else rng.uniform(low, high, shape)


F = torch.nn.functional
WIDE, POSITIVE, INSIDE = (-3, 3), (0.2, 3), (-0.9, 0.9)
FUNCTIONS = {
    "exp": (torch.exp, WIDE), "exp2": (torch.exp2, WIDE), "expm1": (torch.expm1, WIDE), "log": (torch.log, POSITIVE),
    "log2": (torch.log2, POSITIVE), "log10": (torch.log10, POSITIVE), "log1p": (torch.log1p, POSITIVE),
    "sqrt": (torch.sqrt, POSITIVE), "rsqrt": (torch.rsqrt, POSITIVE), "sin": (torch.sin, WIDE),
    "cos": (torch.cos, WIDE), "tan": (torch.tan, INSIDE), "tanh": (torch.tanh, WIDE), "asin": (torch.asin, INSIDE),
    "acos": (torch.acos, INSIDE), "atan": (torch.atan, WIDE), "sinh": (torch.sinh, WIDE), "cosh": (torch.cosh, WIDE),
    "asinh": (torch.asinh, WIDE), "acosh": (torch.acosh, (1.2, 3)), "atanh": (torch.atanh, INSIDE),
    "erf": (torch.erf, WIDE), "erfc": (torch.erfc, WIDE), "erfinv": (torch.erfinv, INSIDE),
    "lgamma": (torch.lgamma, POSITIVE), "abs": (torch.abs, WIDE),
    "square": (torch.square, WIDE), "reciprocal": (torch.reciprocal, POSITIVE), "relu": (F.relu, WIDE),
    "relu6": (F.relu6, (-3, 8)), "sigmoid": (torch.sigmoid, WIDE), "silu": (F.silu, WIDE),
    "log_sigmoid": (F.logsigmoid, WIDE), "gelu": (F.gelu, WIDE),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), WIDE), "softplus": (F.softplus, WIDE),
    "mish": (F.mish, WIDE), "hardsigmoid": (F.hardsigmoid, (-4, 4)), "hardswish": (F.hardswish, (-4, 4)),
    "softsign": (F.softsign, WIDE), "tanhshrink": (F.tanhshrink, WIDE), "softshrink": (F.softshrink, WIDE),
    "hardshrink": (F.hardshrink, WIDE), "elu": (F.elu, WIDE), "celu": (F.celu, WIDE), "selu": (F.selu, WIDE),
    "leaky_relu": (F.leaky_relu, WIDE), "frac": (torch.frac, (0.1, 0.9)), "ndtr": (torch.special.ndtr, WIDE),
}
# Those whose subgradient at 0 is a choice, or that are smooth there though they are written with |x|.
AT_ZERO = ["abs", "relu", "sigmoid", "silu", "log_sigmoid", "gelu", "softplus", "mish", "elu", "celu", "selu",
           "leaky_relu", "tanh", "softsign", "hardswish", "tanhshrink"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
    function, (low, high) = FUNCTIONS[name]
    agree(f"kernel k(x: f64[N]) -> (y: f64[N]) {{ y[i] = {name}(x[i]) }}", function, x=draw(40, low=low, high=high))


@pytest.mark.parametrize("name", AT_ZERO)
def test_function_at_zero(name):
    agree(f"kernel k(x: f64[N]) -> (y: f64[N]) {{ y[i] = {name}(x[i]) }}", FUNCTIONS[name][0], x=np.zeros(2))


BINARY = {
    "x[i] * y[i]": lambda x, y: x * y, "x[i] / y[i]": lambda x, y: x / y, "x[i] - y[i]": lambda x, y: x - y,
    "pow(x[i], y[i])": torch.pow, "maximum(x[i], y[i])": torch.maximum, "minimum(x[i], y[i])": torch.minimum,
    "atan2(x[i], y[i])": torch.atan2, "x[i] % y[i]": torch.remainder, "copysign(x[i], y[i])": torch.copysign,
    "hypot(x[i], y[i])": torch.hypot, "logaddexp(x[i], y[i])": torch.logaddexp,
    "lerp(x[i], y[i], 0.3)": lambda x, y: torch.lerp(x, y, 0.3), "fma(x[i], y[i], x[i])": lambda x, y: x * y + x,
    "where(x[i] > y[i], x[i]*x[i], y[i])": lambda x, y: torch.where(x > y, x * x, y),
    "clamp(x[i]*y[i], min=1.0, max=2.0)": lambda x, y: torch.clamp(x * y, 1, 2),
    "x[i] ** 3 + y[i] ** -2": lambda x, y: x**3 + y**-2, "x[i]**0.5 * y[i]**1": lambda x, y: x**0.5 * y,
}


@pytest.mark.parametrize("value", BINARY)
def test_two_values(value):
    agree(f"kernel k(x: f64[N], y: f64[N]) -> (z: f64[N]) {{ z[i] = {value} }}", BINARY[value],
          x=draw(30, low=0.3, high=3), y=draw(30, seed=1, low=0.4, high=2.5))


def test_ties():
    same = np.array([1.0, 2.0, -1.0])
    agree("kernel k(x: f64[N], y: f64[N]) -> (z: f64[N]) { z[i] = maximum(x[i], y[i]) + 2*minimum(x[i], y[i]) }",
          lambda x, y: torch.maximum(x, y) + 2 * torch.minimum(x, y), x=same, y=same.copy())
    ties = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    agree("kernel k(x: f64[M, N]) -> (y: f64[M], z: f64[M]) { y[i] = max(x[i, j] for j)  z[i] = min(x[i, j] for j) }",
          lambda x: (x.max(1).values, x.min(1).values), x=ties)
    agree("kernel k(x: f64[N, C, H]) -> (y: f64[N, C, H - 1]) where P = H - 1 "
          "{ y[n, c, p] = max(x[n, c, p + r] for r in 2) }", lambda x: F.max_pool1d(x, 2, 1),
          x=np.zeros((2, 2, 5)))


TIES = {
    "where(x[i] > y[i], 0, minimum(x[i], y[i]))": lambda x, y: torch.where(x > y, 0.0, torch.minimum(x, y)),
    "where(not (x[i] < y[i]), maximum(x[i], y[i]), 0)": lambda x, y: torch.where(x >= y, torch.maximum(x, y), 0.0),
    "maximum(x[i], 2*y[i] - y[i])": torch.maximum, "minimum(-(-x[i]), y[i])": torch.minimum,
    "maximum(x[i], n[i])*y[i]": lambda x, y: torch.maximum(x, y.detach()) * y,
    "where(x[i] > 0, x[i], exp(minimum(x[i], 0.0)))": lambda x, y: torch.where(x > 0, x, x.exp()),
}


@pytest.mark.parametrize("value, wrt", [(value, wrt) for value in TIES for wrt in ("x,y", "x", "y")
                                        if wrt != "y" or "y[i]" in value])
def test_ties_do_not_depend_on_form_or_on_wrt(value, wrt):
    agree(f"kernel k(x: f64[N], y: f64[N], n: i64[N]) -> (z: f64[N]) {{ z[i] = {value} }}",
          lambda x, y, n: TIES[value](x, y), options=[f"--wrt={wrt}"], x=np.array([1.0, 2.0, 3.0, 0.0]),
          y=np.array([1.0, 2.0, 1.0, 0.0]), n=np.array([1, 2, 1, 0]))


BOUNDS = {
    "clamp(x[i], min=-1.0, max=3)": lambda x: x.clamp(-1, 3), "clamp(x[i]*x[i], max=9.0)": lambda x: (x * x).clamp(max=9),
    "clamp(x[i], min=0)": lambda x: x.clamp(min=0), "relu6(x[i])": F.relu6, "hardtanh(x[i])": F.hardtanh,
    "hardsigmoid(x[i])": F.hardsigmoid, "maximum(minimum(x[i], 3.0), 0)": lambda x: F.hardtanh(x, 0, 3),
}


@pytest.mark.parametrize("value", BOUNDS)
def test_at_bounds(value):
    agree(f"kernel k(x: f64[N]) -> (y: f64[N]) {{ y[i] = {value} }}", BOUNDS[value],
          x=np.array([-3.0, -1.0, 0.0, 0.5, 1.0, 3.0, 6.0]))


def test_bounds_that_are_tensors():
    agree("kernel k(x: f64[N], lo: f64[N], hi: f64[N]) -> (y: f64[N]) { y[i] = clamp(x[i], min=lo[i], max=hi[i]) }",
          lambda x, lo, hi: torch.clamp(x, lo, hi), x=np.array([0.0, 1.0, 5.0, 3.0, 2.0, 0.0]),
          lo=np.array([0.5, 0.0, 0.0, 2.0, 2.0, 3.0]), hi=np.array([2.0, 3.0, 3.0, 3.0, 3.0, 2.0]))


def test_branch_that_is_not_taken_gives_zero():
    x = np.array([-1.0, 0.0, 4.0])
    for text in ("y[i] = where(x[i] > 0, sqrt(x[i]), 0)", "t[i] = sqrt(x[i])  y[i] = where(x[i] > 0, t[i], 0)",
                 "t[i] = sqrt(x[i])  y[i] = where(x[i] > 0, 3*t[i], x[i])", "y[i] = sum(sqrt(x[i]) for k in 1 if x[i] > 0)"):
        backward = tegula.compile(gradient(COMMAND, "kernel k(x: f64[N]) -> (y: f64[N]) { " + text + " }"))
        found = np.asarray(backward(x=x, grad_y=np.ones(3)))
        assert np.isfinite(found).all() and found[2] in (0.25, 0.75), (text, found)


MASKED = {  # of x, N of them: what t reads where x <= 0 is infinite or no number, or its derivative is
    "t[i] = sqrt(x[i])  u[i] = 2*t[i]  y[i] = where(x[i] > 0, u[i], 0)": lambda x: 2 * x.sqrt(),
    "t[i] = log(x[i])  u[i] = t[i] + x[i]  y = sum(u[i] for i if x[i] > 0)": lambda x: (x.log() + x).sum(),
    "m[i] = mean(x[i]*x[i]*x[i] for k in 2)  r[i] = rsqrt(m[i])  s[i] = 3*r[i]  y[i] = where(x[i] > 0, s[i], 0)":
        lambda x: 3 * x**-1.5,
    "t[i] = 1/x[i]  u[i] = t[i]*t[i]  y[i] = where(x[i] > 0, u[i], 0)": lambda x: x**-2,
    "t[i] = 1/x[i]  u[i] = t[i] + 1  v[i] = u[i]*x[i]*x[i]  y = sum(v[i] for i if x[i] > 0)": lambda x: ((1/x + 1)*x*x).sum(),
    "t[i] = 1/x[i]  u[i] = sin(t[i])  y[i] = where(x[i] > 0, u[i], 0)": lambda x: (1/x).sin(),
    "t[i] = 1/x[i]  u[i] = t[i] + 1  y[i] = 2*u[i + 2] for i in N - 2": lambda x: 2 / x + 2,
    "t[i] = log(x[i])  u[i] = 3*t[i]  v[i] = u[i] - 1  y[i] = v[i + 2] for i in N - 2": lambda x: 3 * x.log() - 1,
}


@pytest.mark.parametrize("text", MASKED)
def test_branch_that_is_not_taken_gives_zero_through_equations_between(text):
    x = torch.tensor([-1.0, 0.0, 4.0, 0.25], dtype=torch.float64)
    if "N - 2" in text:
        x[0] = 0
    taken = x[2:].clone().requires_grad_()
    result = MASKED[text](taken)
    result.sum().backward()
    dims = "" if "y = " in text else "[N - 2]" if "N - 2" in text else "[N]"
    backward = tegula.compile(gradient(COMMAND, f"kernel k(x: f64[N]) -> (y: f64{dims}) {{ {text} }}"))
    seed = torch.ones([] if not dims else [2] if "N - 2" in text else [4], dtype=torch.float64)
    values = dict(x=x, grad_y=seed)
    found = backward(**{one.name: values[one.name] for one in backward.parameters if one.role != "out"})
    torch.testing.assert_close(found, torch.cat([torch.zeros(2, dtype=torch.float64), taken.grad]))


REDUCTIONS = {
    "sum": lambda x: x.sum(1), "mean": lambda x: x.mean(1), "max": lambda x: x.max(1).values,
    "min": lambda x: x.min(1).values, "prod": lambda x: x.prod(1), "logsumexp": lambda x: x.logsumexp(1),
    "var": lambda x: x.var(1, correction=0),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("value, inner", [("x[i, j]", lambda x: x), ("sin(x[i, j])*x[i, j]", lambda x: x.sin() * x)])
def test_reduction(name, value, inner):
    for target in ("y[i] =", "t[i] = exp(x[i, 0])  y[i] = t[i]*"):
        factor = (lambda x: 1) if target == "y[i] =" else (lambda x: x[:, 0].exp())
        agree(f"kernel k(x: f64[M, N]) -> (y: f64[M]) {{ {target} {name}({value} for j) }}".replace("x[i, 0]", "x[i, N - 1]"),
              lambda x: REDUCTIONS[name](inner(x)) * ((x[:, -1].exp()) if "t[i]" in target else 1), x=draw(4, 7))


def test_variance_with_correction():
    agree("kernel k(x: f64[M, N]) -> (y: f64[M]) { y[i] = sqrt(var(x[i, j] for j, unbiased=true)) }",
          lambda x: x.std(1), x=draw(3, 6))


def test_product_with_zeros():
    x = draw(4, 5)
    x[0, 1] = x[1, 2] = x[1, 4] = x[2, 0] = 0
    agree("kernel k(x: f64[M, N]) -> (y: f64[M]) { y[i] = prod(x[i, j] for j) }", lambda x: x.prod(1), x=x)
    agree("kernel k(x: f64[M, N]) -> (y: f64[M, N]) { y[i, j] = cumprod(x[i, j], over=j) }",
          lambda x: x.cumprod(1), x=x)


def written_out(x):
    """Functions as the library has them, with values of `x` that are no common node of the program."""
    decay = f"exp(-abs({x}))"
    low, high = f"{decay}*({decay} + 2)", f"1 + 2*{decay}"
    above = f"where({x} < 0, {low}, {high})"
    return {"sigmoid": f"where({x} >= 0.0, 1.0/(1.0 + {decay}), {decay}/(1.0 + {decay}))",
            "mish": f"{x}*({above}/({above} + where({x} < 0, 2, 2*{decay}*{decay})))",
            "softplus": f"(maximum({x}, 0.0) + log1p({decay}))",
            "log_sigmoid": f"(minimum({x}, 0.0) - log1p({decay}))"}


@pytest.mark.parametrize("name", written_out(""))
def test_smooth_function_written_by_hand(name):
    values = dict(x=np.append(draw(4), 0.0), w=draw(5, seed=1))
    function = FUNCTIONS[name][0]
    agree(f"kernel k(x: f64[N], w: f64[N]) -> (y: f64[N]) {{ y[i] = w[i]*x[i]*{written_out('x[i]')[name]} }}",
          lambda x, w: w * x * function(x), **values)
    agree("kernel k(x: f64[N], w: f64[N]) -> (y: f64[N]) "
          f"{{ t[i] = x[i]*w[i]  s[i] = {written_out('t[i]')[name]}  y[i] = s[i]*x[i] }}",
          lambda x, w: x * function(x * w), **values)


SOFT = "log1p(exp(-abs(x[i])))"
SUMS = {
    f"maximum(x[i], 0.0) - x[i]*t[i] + {SOFT}": lambda x, t: F.softplus(x) - x * t,
    f"(1 - t[i])*x[i] + {SOFT} + maximum(-x[i], 0.0)": lambda x, t: F.softplus(x) - x * t,
    f"(1 - t[i])*x[i] + {SOFT} - minimum(x[i], 0.0)": lambda x, t: F.softplus(x) - x * t,
    f"exp(-(x[i]*t[i] - {SOFT} - maximum(0.0, x[i]))) + maximum(t[i], 0) + log1p(exp(-abs(t[i]))) - {SOFT} + minimum(x[i], 0)":
        lambda x, t: (F.softplus(x) - x * t).exp() + F.softplus(t) + F.logsigmoid(x),
}


@pytest.mark.parametrize("value", SUMS)
def test_soft_corner_among_other_terms(value):
    agree(f"kernel k(x: f64[N], t: f64[N]) -> (y: f64) {{ y = mean({value} for i) }}",
          lambda x, t: SUMS[value](x, t).mean(), x=np.array([0.0, 1.0, -1.0, 0.0, 5.0]),
          t=np.array([0.0, 1.0, 1.0, 0.5, 0.2]))


def test_reduction_over_nothing():
    for name in ("sum", "prod", "logsumexp"):
        written = gradient(COMMAND, f"kernel k(x: f64[M, N]) -> (y: f64[M]) {{ y[i] = {name}(x[i, j] for j) }}", "--recompute")
        assert np.asarray(tegula.compile(written)(x=np.zeros((3, 0)), grad_y=np.ones(3))).shape == (3, 0)


SCANS = {
    "cumsum(x[i, j], over=j)": lambda x: x.cumsum(1), "cumsum(x[i, j], over=i)": lambda x: x.cumsum(0),
    "cumsum(x[i, j], over=j, reverse=true)": lambda x: x.flip(1).cumsum(1).flip(1),
    "cumsum(x[i, j], over=j, exclusive=true)": lambda x: x.cumsum(1) - x,
    "cumprod(x[i, j], over=j)": lambda x: x.cumprod(1),
    "cumprod(x[i, j], over=j, reverse=true)": lambda x: x.flip(1).cumprod(1).flip(1),
    "softmax(x[i, j]*x[i, j], over=j)": lambda x: (x * x).softmax(1), "softmax(x[i, j], over=i)": lambda x: x.softmax(0),
    "softmax(x[i, j], over=(i, j))": lambda x: x.flatten().softmax(0).view(x.shape),
    "log_softmax(x[i, j], over=j)": lambda x: x.log_softmax(1),
    "sort(x[i, j], over=j)": lambda x: x.sort(1).values,
    "sort(sin(x[i, j]), over=i, descending=true)*x[i, j]": lambda x: x.sin().sort(0, descending=True).values * x,
    "cummax(x[i, j], over=j)": lambda x: x.cummax(1).values,
    "exp(cummin(x[i, j]*x[i, j], over=i))": lambda x: (x * x).cummin(0).values.exp(),
    "cummax(x[i, j], over=j, reverse=true)": lambda x: x.flip(1).cummax(1).values.flip(1),
    "2*log_softmax(sin(x[i, j]), over=j)*x[i, j]": lambda x: 2 * x.sin().log_softmax(1) * x,
}


@pytest.mark.parametrize("value", SCANS)
def test_scan(value):
    agree(f"kernel k(x: f64[M, N]) -> (y: f64[M, N]) {{ y[i, j] = {value} }}", SCANS[value], x=draw(4, 5))


def test_topk():
    agree("kernel k(x: f64[M, N], K: int = 3) -> (v: f64[M, K], e: i64[M, K]) "
          "{ v[i, r], e[i, r] = topk(x[i, j]*x[i, j] for j, k=K) }",
          lambda x: tuple((x * x).topk(3, 1)), x=draw(4, 7))
    agree("kernel k(x: f64[N, M], w: f64[M], K: int = 2) -> (y: f64[M]) "
          "{ p[i, j] = softmax(x[j, i], over=j)  v[i, r], e[i, r] = topk(p[i, j] for j, k=K) "
          "y[i] = w[i]*v[i, 0]/sum(v[i, r] for r) + x[e[i, 1], i] }",
          lambda x, w: w * x.softmax(0).topk(2, 0).values[0] / x.softmax(0).topk(2, 0).values.sum(0)
          + x.topk(2, 0).values[1], x=draw(5, 3), w=draw(3, seed=1))


def recurrence(a, b, init, reverse):
    steps = range(a.size(1) - 1, -1, -1) if reverse else range(a.size(1))
    h, found = init, {}
    for t in steps:
        h = found[t] = a[:, t] * h + b[:, t]
    return torch.stack([found[t] for t in range(a.size(1))], 1)


@pytest.mark.parametrize("reverse", [False, True])
def test_recurrence(reverse):
    agree("kernel k(a: f64[N, T], b: f64[N, T], h0: f64[N]) -> (h: f64[N, T]) "
          f"{{ h[n, t] = recurrence(a[n, t], b[n, t], over=t, init=h0[n], reverse={str(reverse).lower()}) }}",
          lambda a, b, h0: recurrence(a, b, h0, reverse), a=draw(3, 6), b=draw(3, 6, seed=1), h0=draw(3, seed=2))


def test_values_read_in_several_equations():
    agree("kernel k(x: f64[N], w: f64[N]) -> (y: f64[N], z: f64) { t[i] = x[i]*w[i]  y[i] = t[i]*x[i] + t[i] "
          "z = sum(t[i]*y[i] for i) }",
          lambda x, w: (x * w * x + x * w, (x * w * (x * w * x + x * w)).sum()), x=draw(5), w=draw(5, seed=1))


def test_output_that_a_later_output_reads():
    agree("kernel k(x: f64[N]) -> (y: f64[N], z: f64[N]) { y[i] = exp(x[i])  z[i] = y[i]*y[i] }",
          lambda x: (x.exp(), x.exp()**2), x=draw(4))
    agree("kernel k(x: f64[N]) -> (y: f64[N], z: f64[N]) { y[i] = exp(x[i])  z[i] = y[i]*y[i] }",
          lambda x: (x.exp(), x.exp()**2), options=["--save"], x=draw(4))


@pytest.mark.parametrize("options", [[], ["--save"]])
def test_output_of_one_element_that_a_later_output_reads(options):
    agree("kernel k(x: f64[N]) -> (m: f64, l: f64, y: f64[N]) { m = max(x[i] for i)  "
          "l = log(sum(exp(x[i] - m) for i)) + m  y[i] = exp(x[i] - l) }",
          lambda x: (x.max(), x.logsumexp(0), x.softmax(0)), options=options, x=draw(4))
    agree("kernel k(x: f64[N]) -> (m: f64, y: f64[N], z: f64[N]) { m = sum(x[i]*x[i] for i)  t[i] = exp(x[i] - m)  "
          "y[i] = t[i]*m  z[i] = sin(t[i])*y[i] }",
          lambda x: (lambda m, t: (m, t * m, t.sin() * t * m))((x * x).sum(), (x - (x * x).sum()).exp()),
          options=options, x=draw(4))


def test_output_that_is_read_again_is_rounded_as_in_the_program():
    one = torch.ones(1)
    text = "kernel k(x: bf16[N], c: f32[N]) -> (y: bf16[N], z: f32[N]) { y[i] = x[i]*c[i]  z[i] = where(y[i] > 1.0, 100.0*y[i], y[i]) }"
    backward = tegula.compile(gradient(COMMAND, text))  # y is 1.0, although x*c is above it
    _, grad_c = backward(x=one.bfloat16(), c=1.001*one, grad_y=0*one.bfloat16(), grad_z=one)
    assert grad_c.item() == 1
    text = "kernel k(x: bf16[N], c: f32[N]) -> (y: bf16[N], z: f32) { y[i] = x[i]*c[i]  z = max(y[i] for i) }"
    backward = tegula.compile(gradient(COMMAND, text))
    _, grad_c = backward(x=torch.ones(2).bfloat16(), c=torch.tensor([1.0, 1.001]), grad_y=torch.zeros(2).bfloat16(),
                         grad_z=torch.tensor(1.0))
    assert grad_c.tolist() == [1, 0]
    for text, typed in (("y[i] = x[i]*c[i]  z[i] = sort(y[i], over=i)", "y: T[i] = x[i] * c[i]"),
                        ("y[i] = 1.0  y[j[i]] += x[i] for i  z[i] = y[i]*y[i]", "y: T[i in N] = 1.0")):
        written = gradient(COMMAND, "kernel k(x: T[N], c: f32[N], j: i64[N]) -> (y: T[N], z: f32[N]) { " + text + " }")
        assert typed in written


def test_output_that_is_read_again_has_ranges_of_its_own():
    agree("kernel k(x: f64[M], w: f64[N]) -> (y: f64[M, N], z: f64) { y[i, j] = exp(x[i])  "
          "z = sum(y[i, j]*y[i, j]*w[j] for i, j) }",
          lambda x, w: (x.exp()[:, None].expand(3, 4), (x.exp()[:, None]**2 * w).sum()), x=draw(3), w=draw(4, seed=1))
    agree("kernel k(x: f64[N], c: bool[N], ids: i64[N], V: int = 3) -> (y: f64[V], z: f64[V]) "
          "{ y[v] = 1.0  y[ids[i]] += x[i]*x[i] for i in N if c[i]  z[v] = y[v]*y[v] }",
          lambda x, c, ids: (lambda y: (y, y * y))(torch.ones(3).double().index_add(0, ids, torch.where(c, x * x, 0))),
          x=draw(4), c=np.array([True, False, True, True]), ids=np.array([0, 2, 2, 1]))


def test_pieces_take_their_own_region():
    agree("kernel k(x: f64[M, N], r: f64[M, N]) -> (y: f64[M, 2*N]) { y[i, j] = x[i, j]*r[i, j] for j in N "
          "y[i, j + N] = x[i, j] - 2*r[i, j] for j in N }",
          lambda x, r: torch.cat([x * r, x - 2 * r], 1), x=draw(3, 4), r=draw(3, 4, seed=1))
    agree("kernel k(x: f64[N]) -> (y: f64[N + 1]) { y[0] = 3*x[N - 1]  y[i + 1] = x[i]*x[i] for i in N }",
          lambda x: torch.cat([3 * x[-1:], x * x]), x=draw(4))


def test_zeros_that_a_condition_replaces():
    agree("kernel k(x: f64[N], c: bool[N]) -> (y: f64[N]) { y[i] = 0  y[i] = x[i]*x[i] for i if c[i] }",
          lambda x, c: torch.where(c, x * x, 0.0), x=draw(4), c=np.array([True, False, True, True]))


def test_groups():
    agree("kernel k(x: f64[B, H*D], w: f64[H]) -> (y: f64[B, H*D]) { y[b, (h, d)] = x[b, (h, d)]*w[h] }",
          lambda x, w: (x.view(2, 3, 4) * w[:, None]).reshape(2, 12), x=draw(2, 12), w=draw(3, seed=1))
    agree("kernel k(x: f64[C, H, W], r: int = 2) -> (y: f64[C, H//r, W//r]) where P = H/r, Q = W/r "
          "{ y[c, p, q] = mean(x[c, (p in P, i in r), (q in Q, j in r)] for i, j) }",
          lambda x: F.avg_pool2d(x[None], 2)[0], x=draw(2, 4, 6))


def test_captured_names():
    # The index of a sum is called like an axis of what its adjoint is substituted into.
    agree("kernel k(x: f64[N, N], w: f64[N, N]) -> (y: f64[N]) { s[i] = sum(x[i, k]*w[k, i] for k) "
          "y[k] = sum(s[i]*x[k, i] for i) }",
          lambda x, w: x @ (x * w.T).sum(1), x=draw(3, 3), w=draw(3, 3, seed=1))
    agree("kernel k(x: f64[N, N]) -> (y: f64[N, N]) { y[i, j] = sum(x[i, k]*x[k, j] for k) }",
          lambda x: x @ x, x=draw(3, 3))


def test_axes_inside_and_outside_of_a_reduction():
    agree("kernel k(x: f64[M, N]) -> (y: f64[M, N]) { y[i, j] = x[i, j]*sum(x[i, k]*x[j % M, k] for k) }",
          lambda x: x * (x @ x.T)[:, torch.arange(5) % 3], x=draw(3, 5))
    agree("kernel k(x: f64[N]) -> (y: f64[N]) { y[i] = sum(x[j]*x[i] for j in 0:i + 1) }",
          lambda x: x.cumsum(0) * x, x=draw(5))
    agree("kernel k(x: f64[N, N]) -> (y: f64[N]) { y[i] = x[i, i]*sum(x[i, j] for j if j > i) }",
          lambda x: x.diagonal() * x.triu(1).sum(1), x=draw(4, 4))


WINDOWS = [(1, 0, 1), (2, 1, 1), (3, 2, 2), (2, 0, 3)]


@pytest.mark.parametrize("stride, pad, dilation", WINDOWS)
def test_windows(stride, pad, dilation):
    size = f"where P = (L + {2 * pad} - {dilation}*(K - 1) - 1)//{stride} + 1"
    agree(f"kernel k(x: f64[N, C, L], w: f64[O, C, K]) -> (y: f64[N, O, P]) {size} {{ y[n, o, p] = "
          f"sum(x[n, c, {stride}*p + {dilation}*r - {pad}, fill=0]*w[o, c, r] for c, r) }}",
          lambda x, w: F.conv1d(x, w, None, stride, pad, dilation), x=draw(2, 3, 11), w=draw(4, 3, 3, seed=1))
    agree(f"kernel k(x: f64[N, C, L], w: f64[C, O, K]) -> (y: f64[N, O, P]) "
          f"where P = (L - 1)*{stride} - {2 * pad} + {dilation}*(K - 1) + 1 {{ y[n, o, p] = "
          f"sum(x[n, c, (p + {pad} - {dilation}*r)/{stride}, fill=0]*w[c, o, r] for c, r) }}",
          lambda x, w: F.conv_transpose1d(x, w, None, stride, pad, dilation=dilation),
          x=draw(2, 3, 7), w=draw(3, 4, 3, seed=1))
    agree(f"kernel k(x: f64[N, C, L]) -> (y: f64[N, C, P]) where P = (L + 2*{min(pad, 1)} - {dilation}*2 - 1)//{stride} + 1 "
          f"{{ y[n, c, p] = max(x[n, c, {stride}*p + {dilation}*r - {min(pad, 1)}, fill=-inf] for r in 3) }}",
          lambda x: F.max_pool1d(x, 3, stride, min(pad, 1), dilation), x=draw(2, 3, 11))


def test_fill_that_is_not_zero():
    agree("kernel k(x: f64[N]) -> (y: f64[N]) { y[i] = exp(x[i - 1, fill=2.0])*x[i] }",
          lambda x: torch.cat([torch.full((1,), 2.0, dtype=torch.float64), x[:-1]]).exp() * x, x=draw(5))
    with pytest.raises(Refused):
        gradient(COMMAND, "kernel k(x: f64[N], v: f64[N]) -> (y: f64[N]) { y[i] = x[i - 1, fill=v[i]] }")


def test_gather_and_scatter():
    index = np.array([3, 0, 3, 2])
    agree("kernel k(x: f64[V, D], ids: i64[N]) -> (y: f64[N, D]) { y[i, d] = x[ids[i], d]*x[ids[i], d] }",
          lambda x, ids: x[ids]**2, x=draw(5, 3), ids=index)
    agree("kernel k(x: f64[N], ids: i64[N], V: int = 5) -> (y: f64[V]) { y[ids[i]] += x[i]*x[i] }",
          lambda x, ids: torch.zeros(5, dtype=torch.float64).index_add(0, ids, x * x), x=draw(4), ids=index)
    agree("kernel k(x: f64[N, C], t: i64[N]) -> (y: f64[N]) { y[i] = x[i, t[i]] - logsumexp(x[i, j] for j) }",
          lambda x, t: x.gather(1, t[:, None])[:, 0] - x.logsumexp(1), x=draw(4, 5), t=index)


def test_ranges_from_data():
    agree("kernel k(x: f64[Z], w: f64[Z], start: i64[R1]) -> (y: f64[R1 - 1]) where R = R1 - 1 "
          "{ y[r] = sum(x[z]*w[z] for z in start[r]:start[r + 1]) }",
          lambda x, w, start: torch.stack([(x * w)[0:2].sum(), (x * w)[2:2].sum(), (x * w)[2:6].sum()]),
          x=draw(6), w=draw(6, seed=1), start=np.array([0, 2, 2, 6]))


def test_integers_and_conditions_have_no_gradient():
    x = draw(4, 5)
    agree("kernel k(x: f64[M, N], n: i64[M], c: bool[M]) -> (y: f64[M, N]) "
          "{ y[i, j] = x[i, j]*n[i] + where(c[i], x[i, j], 0) + f64(i64(3*x[i, j])) + floor(x[i, j]) }",
          lambda x, n, c: x * n[:, None] + torch.where(c[:, None], x, 0.0) + (3 * x).long().double() + x.floor(),
          x=x, n=np.arange(4), c=np.array([True, False, True, True]))
    agree("kernel k(x: f64[M, N]) -> (y: f64[M], p: i64[M]) { p[i] = argmax(x[i, j] for j)  y[i] = x[i, p[i]]**2 }",
          lambda x: (x.max(1).values**2, x.argmax(1)), x=x)


def test_sizes_in_values():
    agree("kernel k(x: f64[M, N]) -> (y: f64[M, N]) where K = 2*N { y[i, j] = x[i, j]*rsqrt(N)/K + i*x[i, j] }",
          lambda x: x * 5**-0.5 / 10 + torch.arange(4)[:, None] * x, x=draw(4, 5))


def test_optional_tensors_and_calls():
    text = ("kernel k(x: f64[N, I], w: f64[O, I], b: f64[O] = 0) -> (y: f64[N, O]) "
            "{ h = linear(x, w, b)  n = layer_norm(h, O)  y = softmax_of(n) }\n"
            "kernel softmax_of(x: f64[N, O]) -> (y: f64[N, O]) { y[i, j] = softmax(x[i, j], over=j) }")
    written = gradient(COMMAND, text, kernel="k")
    values = dict(x=draw(3, 5), w=draw(4, 5, seed=1), b=draw(4, seed=2))
    assert compare(text, written, values, kernel="k") < 1e-7


LOOPS = {
    "kernel k(x: f64[T, N], a: f64[N], h0: f64[N]) -> (y: f64[T, N], last: f64[N]) {\n"
    "  state h[i in N] = h0[i]\n  for t in T {\n"
    "    h[i] = tanh(a[i]*h[i] + x[t, i])\n    y[t, i] = h[i]*x[t, i]\n  }\n  last[i] = h[i]*h[i]\n}":
        dict(x=(5, 3), a=(3,), h0=(3,)),
    # backwards, two states that read each other, neighbours, and a value that all steps add to
    "kernel k(x: f64[T, N], w: f64[N, N]) -> (y: f64[N], s: f64[N]) {\n"
    "  state a[i in N] = 0.5\n  state b[i in N] = x[0, i]\n  for t in 1:T, reverse {\n"
    "    u[i] = sum(w[i, j]*a[j] for j) + b[i - 1, fill=0]\n    a[i] = b[i]*x[t, i]\n    b[i] = sin(u[i]) + a[i]\n"
    "    s[i] += b[i]*x[t - 1, i]\n  }\n  y[i] = a[i] + 2*b[i]\n}": dict(x=(6, 4), w=(4, 4)),
    # parts of a state, in a place that the step decides
    "kernel k(L: f64[B, N, N], b: f64[B, N]) -> (x: f64[B, N]) {\n  state y[n in B, i in N] = 0.0\n  for t in N {\n"
    "    y[n, t] = (b[n, t] - sum(L[n, t, j]*y[n, j] for j in 0:t)) / (3 + L[n, t, t])\n  }\n"
    "  x[n, i] = y[n, i]\n}": dict(L=(2, 5, 5), b=(2, 5)),
    # a part with an offset, points that add to a part, windows along the steps
    "kernel k(x: f64[T, N]) -> (y: f64[N]) {\n  state h[i in N] = 1.0\n  for t in 2:T - 1 {\n"
    "    h[i + 1] = h[i]*x[t, i] + h[i + 1] for i in N - 1\n"
    "    h[i] += sum(x[t + r - 1, i] for r in 3) for i in 2\n  }\n  y[i] = exp(0.1*h[i])\n}": dict(x=(7, 5)),
    # two loops, of which the second goes on with the first one's state; no step at all; a state that does not change
    "kernel k(x: f64[T, N], c: f64[N]) -> (y: f64[N]) {\n  state h[i in N] = c[i]\n  state q[i in N] = c[i]*c[i]\n"
    "  for t in T { h[i] = cos(h[i])*x[t, i] + q[i] }\n  for t in 0:0 { h[i] = h[i]*h[i] }\n"
    "  for t in 3 { h[i] = h[i]*q[i] }\n  y[i] = h[i]\n}": dict(x=(4, 3), c=(3,)),
    # sums and elements of all steps, in a temporary and in an output, which are read behind the loop
    "kernel k(x: f64[N], w: f64[T]) -> (y: f64[N, T], z: f64[N]) {\n  u[i in N] = x[i]*x[i]\n  acc[i in N] = 0.0\n"
    "  state h[i in N] = 0.0\n  for t in T {\n    h[i] = h[i]*0.5 + w[t]*x[i]\n    acc[i] += h[i]\n"
    "    y[i, T - 1 - t] += h[i]\n  }\n  z[i] = u[i]*acc[i]*y[i, 0]\n}": dict(x=(3,), w=(4,)),
    "kernel k(x: f64[N], w: f64[T]) -> (z: f64[N, T]) {\n  u[i in N] = x[i]*x[i]\n  y[i in N, t in T] = 0.0\n"
    "  state h[i in N] = 0.0\n  for t in T {\n    h[i] = h[i]*0.5 + w[t]*x[i]\n    y[i, t] = h[i]*h[i]\n  }\n"
    "  z[i, t] = u[i]*y[i, T - 1 - t]\n}": dict(x=(3,), w=(4,)),
    # a result of steps of a called kernel, which is read behind them
    "kernel k(x: f64[T, N]) -> (y: f64[N]) {\n  a = walk(x)\n  b = walk(a)\n  y[i] = b[T - 1, i]*a[0, i]\n}\n"
    "kernel walk(x: f64[T, N]) -> (y: f64[T, N]) {\n  state h[i in N] = 0.5\n  for t in T {\n    h[i] = sin(h[i])*x[t, i]\n"
    "    y[t, i] = h[i] + x[t, i]\n  }\n}": dict(x=(3, 2)),
    # elements ahead of those that steps write
    "kernel k(x: f64[T, N]) -> (a: f64[T, N], y: f64[N]) {\n  a[0, i] = x[0, i]*x[0, i]\n  state h[i in N] = x[0, i]\n"
    "  for t in 1:T {\n    h[i] = sin(h[i]) + x[t, i]\n    a[t, i] = h[i]*h[i]\n  }\n  y[i] = a[0, i]*a[T - 1, i]\n}":
        dict(x=(4, 3)),
    # one loop in another: values and sums of an outer step, which the steps inside read and add to
    "kernel k(x: f64[T, R, N], a: f64[N]) -> (y: f64[T, N], s: f64[N]) {\n  state h[i in N] = a[i]\n  for t in T {\n"
    "    u[i] = h[i]*a[i]\n    acc[i in N] = 0.0\n    for r in R, reverse {\n      h[i] = sin(h[i])*x[t, r, i] + u[i]\n"
    "      acc[i] += h[i]*x[t, r, i]\n      s[i] += h[i]*h[i]\n    }\n    y[t, i] = h[i]*acc[i]\n  }\n}":
        dict(x=(3, 2, 4), a=(4,)),
    # three of them
    "kernel k(x: f64[T, N]) -> (y: f64[N]) {\n  state h[i in N] = 1.0\n  for t in T {\n    for r in 2 {\n      for q in 1:3 {\n"
    "        h[i] = cos(h[i]*q)*x[t, i] + r\n      }\n      h[i] = h[i]*h[i]\n    }\n  }\n  y[i] = h[i]\n}": dict(x=(2, 3)),
    # states and steps of a parallel block, and a state that lives in one step
    "kernel k(x: f64[T, M, N], a: f64[M]) -> (y: f64[T, M, N], z: f64[M]) {\n  parallel i in M, j in N {\n"
    "    state h = a[i]\n    state g = 1.0\n    for t in T {\n      n = tanh(h + x[t, i, j])\n      g = g*n\n      state e = h\n"
    "      for r in 2 { e = sin(e)*g }\n      h = n + 0.5*e\n      y[t, i, j] = h*g\n    }\n    z[i] += h + g\n  }\n}":
        dict(x=(3, 2, 2), a=(2,)),
    # tiles: states that a second walk reads, and sums that tiles add to
    "kernel k(x: f64[M, N], w: f64[N]) -> (y: f64[M, N], s: f64[M]) {\n  parallel i in M {\n    state m = -1e30\n"
    "    state l = 0.0\n    for j in tiles(N) {\n      n = maximum(m, max(x[i, j] for j))\n"
    "      l = l*exp(m - n) + sum(exp(x[i, j] - n)*w[j] for j)\n      m = n\n    }\n    for j in tiles(N) {\n"
    "      y[i, j] = exp(x[i, j] - m)/l\n      s[i] += sum(x[i, j]*x[i, j] for j)\n    }\n  }\n}": dict(x=(3, 5), w=(5,)),
    # tensors that are no states and that steps read: one from the step before, one that all steps add to
    "kernel k(x: f64[T, N]) -> (y: f64[T, N]) {\n  y[0, i] = x[0, i]\n  for t in 1:T {\n"
    "    y[t, i] = sin(y[t - 1, i])*x[t, i]\n  }\n}": dict(x=(4, 3)),
    "kernel k(x: f64[T, N]) -> (y: f64[N]) {\n  a[i in N] = 0.0\n  state h[i in N] = 0.0\n  for t in T {\n    a[i] += x[t, i]\n"
    "    h[i] = h[i] + a[i]*a[i]\n  }\n  y[i] = h[i]*a[i]\n}": dict(x=(4, 3)),
    "kernel k(x: f64[T, N]) -> (y: f64[N]) {\n  a[t in T, i in N] = x[0, i]\n  state h[i in N] = 0.0\n  for t in T {\n"
    "    h[i] = h[i] + x[t, i]*a[t, i]\n    a[t, i] = h[i]\n  }\n  y[i] = h[i]*a[0, i]\n}": dict(x=(4, 3)),
}


@pytest.mark.parametrize("text", LOOPS)
def test_loops_of_steps(text):
    values = {name: 0.5*draw(*shape, seed=i) for i, (name, shape) in enumerate(LOOPS[text].items())}
    for options in ((), ("--recompute",), ("--save",)):
        written = gradient(COMMAND, text, *options, kernel="k")
        assert len(warnings(COMMAND, written)) <= len(warnings(COMMAND, text)), written
        assert compare(text, written, values, kernel="k") < 1e-6, written


CHANGING = {
    # in place, read between two changes, in steps, and by a called kernel
    "kernel k(p: inout f64[N], m: inout f64[N], g: f64[N]) -> (y: f64[N]) {\n  y[i] = p[i]*m[i]\n"
    "  m[i] = 0.9*m[i] + g[i]*p[i]\n  p[i] = p[i] - m[i]/(p[i]*p[i] + 1)\n  p[i] += g[i] for i in 2\n}":
        lambda p, m, g: (p*m, *(lambda n: (p - n/(p*p + 1) + torch.where(torch.arange(4) < 2, g, 0), n))(0.9*m + g*p)),
    "kernel k(p: inout f64[N], x: f64[T, N]) {\n  for t in T { p[i] = sin(p[i])*x[t, i] }\n  twice(p)\n}\n"
    "kernel twice(p: inout f64[N]) { p[i] = 2*p[i]*p[i] }":
        lambda p, x: 2*(((p.sin()*x[0]).sin()*x[1]).sin()*x[2])**2,
    # at places from data, where no two meet, and where points add up
    "kernel k(c: inout f64[N], s: i64[M], v: f64[M]) -> (y: f64[N]) {\n  distinct s\n  c[s[j]] = v[j]*v[j]\n  y[i] = c[i]*c[i]\n"
    "  c[s[j]] += y[s[j]]*v[j]\n}":
        lambda c, s, v: (lambda d: (d*d, d.index_add(0, s, d[s]**2*v)))(c.index_put((s,), v*v)),
    # after it was read, where data decides, and again
    "kernel k(x: f64[N], c: bool[N]) -> (y: f64[N], s: f64) {\n  y[i] = 2*x[i]\n  s = sum(y[i]*y[i] for i)\n"
    "  y[i] = x[i]*x[i]*y[i] for i if c[i]\n  y[i] += s*x[i]\n}":
        lambda x, c: (torch.where(c, 2*x**3, 2*x) + (4*x*x).sum()*x, (4*x*x).sum()),
}


@pytest.mark.parametrize("text", CHANGING)
def test_tensors_that_change(text):
    shapes = dict(p=(4,), m=(4,), g=(4,), x=(3, 4) if "T" in text else (4,), c=(4,), s=(2,), v=(2,))
    order = CHANGING[text].__code__.co_varnames
    values = {name: draw(*shapes[name], seed=i) for i, name in enumerate(order)}
    values.update({name: np.array([2, 0]) for name in order if name == "s"})
    if "c: bool" in text:
        values["c"] = np.array([True, False, True, False])
    entry = "k" if "twice" in text else ""
    written = gradient(COMMAND, text, kernel=entry)
    assert compare(text, written, values, kernel=entry or None) < 1e-6, written
    # Against autograd, outputs first, then tensors in place as they are afterwards.
    tensors = {name: torch.as_tensor(one) for name, one in values.items()}
    for one in tensors.values():
        one.requires_grad_(one.dtype == torch.float64)
    results = CHANGING[text](**tensors)
    results = results if isinstance(results, tuple) else (results,)
    names = [one.name for one in tegula.compile(text, entry or None).outputs] + [f"{name}_after" for name in "pmc" if f"{name}: inout" in text]
    seeds = [torch.randn(one.shape, dtype=torch.float64) for one in results]
    torch.autograd.backward(results, seeds)
    known = {**{name: one.detach() for name, one in tensors.items()}, **{name: one.detach() for name, one in zip(names, results)},
             **{f"grad_{name}": seed for name, seed in zip(names, seeds)}}
    backward = tegula.compile(written)
    found = backward(**{one.name: known[one.name] for one in backward.parameters if one.role != "out"})
    for one, got in zip(backward.outputs, found if isinstance(found, tuple) else (found,)):
        torch.testing.assert_close(got, tensors[one.name.removeprefix("grad_")].grad, msg=lambda m: f"{one.name}: {m}\n{written}")


@pytest.mark.parametrize("text, reason", [
    ("parallel i in N { state h = 0.0\n for t in i + 1 { h = h + x[0, t] }\n y[i] = h }", "take different steps"),
    ("parallel i in N { state h = 0.0\n for t in T { for r in t:T { h = h + x[r, i] } }\n y[i] = h }", "take different steps"),
])
def test_loops_without_a_rule(text, reason):
    with pytest.raises(Refused, match=reason):
        gradient(COMMAND, f"kernel k(x: f64[T, N]) -> (y: f64[N]) {{\n {text}\n}}")


HEAVY = "exp(0.1*sin(x[i])*cos(x[i]*x[i])*exp(-x[i]*x[i]))"


def test_value_that_another_equation_adds_to():
    agree(f"kernel k(x: f64[N]) -> (y: f64[N]) {{ t[i] = {HEAVY}  t[i] += x[i]  y[i] = t[i]*t[i] }}",
          lambda x: ((0.1*x.sin()*(x*x).cos()*(-x*x).exp()).exp() + x)**2, x=draw(5))
    for value in ("softmax(x[i], over=i)", "cumprod(x[i], over=i)"):
        with pytest.raises(Refused, match="which an equation behind it adds to"):
            gradient(COMMAND, f"kernel k(x: f64[N]) -> (y: f64[N]) {{ t[i] = {value}  t[i] += x[i]  y[i] = t[i]*t[i] }}")


@pytest.mark.parametrize("mask", ["s[b, h, i, j]", "where(j <= i, s[b, h, i, j], -inf)", "tanh(s[b, h, i, j])*3"])
@pytest.mark.parametrize("options", [(), ("--recompute",)])
def test_attention(mask, options):
    text = ("kernel k(q: f64[B, H, S, D], k: f64[B, H, S, D], v: f64[B, H, S, E]) -> (o: f64[B, H, S, E]) {\n"
            "  s[b, h, i, j] = rsqrt(D)*sum(q[b, h, i, d]*k[b, h, j, d] for d)\n"
            f"  p[b, h, i, j] = softmax({mask}, over=j)\n  o[b, h, i, e] = sum(p[b, h, i, j]*v[b, h, j, e] for j)\n}}")

    def reference(q, k, v):
        s = q @ k.transpose(2, 3) * q.shape[3]**-0.5
        if "where" in mask:
            s = s.masked_fill(torch.ones(5, 5).tril() == 0, -torch.inf)
        return torch.softmax(torch.tanh(s)*3 if "tanh" in mask else s, 3) @ v

    written = agree(text, reference, options, q=draw(2, 3, 5, 4), k=draw(2, 3, 5, 4, seed=1), v=draw(2, 3, 5, 6, seed=2))
    # Neither scores nor adjoints of probabilities are kept, and rows have one number each.
    assert "lse" in written and "softmax" not in written and "grad_p" not in written, written
    assert (" o: f64" in written.split("->")[0]) == (options == ()), written


def test_random_numbers_are_constant():
    text = "kernel k(x: f64[N], seed: i64[1]) -> (y: f64[N]) { y[i] = where(rand(seed[0], i) < 0.5, 2*x[i], 0)*x[i] }"
    written = gradient(COMMAND, text)
    assert "rand(seed[0], i)" in written
    assert compare(text, written, dict(x=draw(9), seed=np.array([7]))) < 1e-7


def test_storage_types():
    text = "kernel k(x: T[M, N], w: f32[N]) -> (y: T[M]) { t: T[i, j] = x[i, j]*w[j]  y[i] = sum(t[i, j]*t[i, j] for j) }"
    written = gradient(COMMAND, text)
    assert "grad_x: T[M, N]" in written and "grad_w: f32[N]" in written and "t: T[i, j]" in written
    backward = tegula.compile(written)
    x, w = torch.randn(3, 8).bfloat16(), torch.randn(8)
    gx, gw = backward(x=x, w=w, grad_y=torch.ones(3).bfloat16())
    assert gx.dtype == torch.bfloat16 and gw.dtype == torch.float32
    wide = x.float().requires_grad_(), w.clone().requires_grad_()
    ((wide[0] * wide[1])**2).sum().backward()
    torch.testing.assert_close(gx.float(), wide[0].grad, rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(gw, wide[1].grad, rtol=2e-2, atol=2e-2)


def test_types_and_dims_that_only_gradients_show():
    """A tensor stays a parameter for its type alone; an index of `...` that the language has no form for is one dim."""
    written = gradient(COMMAND, "kernel k(x: T[M, N], b: TB[N]) -> (y: T[M, N]) { y[i, j] = 2*x[i, j] + b[j] }")
    assert "b: TB[N]" in written and "grad_b: TB[N]" in written
    text = "kernel k(ids: i64[...], w: f64[V, D]) -> (y: f64[..., D]) { y[..., d] = w[ids[...], d] }"
    values = dict(ids=np.array([2, 0, 2]), w=draw(3, 2))
    assert compare(text, gradient(COMMAND, text), values) < 1e-7


def test_any_number_of_dims():
    text = "kernel k(x: f64[..., N], w: f64[N]) -> (y: f64) { y = mean(x[..., j]*w[j] for ..., j) }"
    written = gradient(COMMAND, text)
    assert "grad_x: f64[..., N]" in written
    x, w = draw(2, 3, 4), draw(4, seed=1)
    gx, gw = tegula.compile(written)(x=x, w=w, grad_y=np.array(2.0))
    np.testing.assert_allclose(gx, np.broadcast_to(w, x.shape) * 2 / 24)
    np.testing.assert_allclose(gw, x.sum((0, 1)) * 2 / 24)


MIXED = [
    ("kernel k(x: f64[N], w: f64[3]) -> (y: f64[N]) { y[i] = sum(x[i + k - 1, fill=0]*x[i - k + 1, "
     "fill=0]*w[k] for k in 3) }",
     dict(N=6)),
    ("kernel k(x: f64[2*N]) -> (y: f64[N]) { y[i] = x[2*i]*x[2*i + 1] - exp(x[2*i]) }",
     dict(N=4)),
    ("kernel k(x: f64[N]) -> (y: f64[N]) { y[i] = x[N - 1 - i]*x[i] }",
     dict(N=5)),
    ("kernel k(x: f64[M, N]) -> (y: f64[M, N]) { parallel i in M, j in N { a = x[i, j]*x[i, j]  b = "
     "sin(a)*a  y[i, j] = b + a*x[i, 0] } }",
     dict(M=3, N=4)),
    ("kernel k(x: f64[N]) -> (y: f64[N]) { y[i] = where(i > 0, x[i - 1], 2)*x[i] }",
     dict(N=5)),
    ("kernel k(x: f64[N]) -> (y: f64[N]) { y[i] = mean(x[j]*x[i] for j in 0:i + 1) }",
     dict(N=5)),
    ("kernel k(x: f64[M, N], c: bool[N]) -> (y: f64[M]) { y[i] = var(x[i, j] for j if c[j] or j == "
     "0) + mean(x[i, j] for j if c[j] or j < 2) }",
     dict(M=3, N=6)),
    ("kernel k(x: f64[N], w: f64[K]) -> (y: f64[N + K - 1]) { y[i + j] += x[i]*w[j] for i in N, j in "
     "K }",
     dict(N=5, K=3)),
    ("kernel k(x: f64[A, B, C]) -> (y: f64[B, A*C]) { y[b, (a, c)] = x[a, b, c]*x[a, 0, c] }",
     dict(A=2, B=3, C=4)),
    ("kernel k(x: f64[B, H*W, C], W: int = 2) -> (y: f64[B, H, C]) { y[b, h, c] = sum(x[b, (h, w in "
     "W), c]*x[b, (h, w in W), 0] for w) }",
     dict(B=2, H=3, C=2)),
    ("kernel k(x: f64[N, N]) -> (y: f64) { y = sum(x[i, j]*x[j, i]*i for i, j if i != j) }",
     dict(N=4)),
    ("kernel k(x: f64[N]) -> (y: f64) { m = mean(x[i] for i)  s = sum((x[i] - m)**3 for i)  y = s/m }",
     dict(N=4)),
    ("kernel k(x: f64[N, C], g: i64[N]) -> (y: f64[C]) { t[2*0 + c] += x[n, c]*x[n, c] for n in N, c "
     "in C  y[c] = sqrt(t[c]) }",
     dict(N=4, C=3)),
    ("kernel k(x: f64[H, W]) -> (y: f64[2*H, 2*W]) { y[p, q] = x[p//2, q//2]**2*x[p % H, 0] }",
     dict(H=3, W=2)),
    ("kernel k(x: f64[H, W]) -> (y: f64[H, W]) { y[p, q] = max(x[p + r - 1, q + s - 1, "
     "fill=-inf]*1.5 for r in 3, s in 3) }",
     dict(H=4, W=5)),
    ("kernel k(x: f64[2*N], w: f64[N]) -> (y: f64[N]) { y[i] = w[i]*sum(x[i + j] for j in 0:i + 1) }",
     dict(N=5)),
    ("kernel k(x: f64[4*N], w: f64[N]) -> (y: f64[N]) { y[i] = w[i]*sum(x[2*i + j]*x[j] for j in i:2*i + 1) }",
     dict(N=5)),
    ("kernel k(x: f64[N]) -> (y: f64[N]) { y[i] = logsumexp(x[j] - i*x[i] for j if j <= i) }",
     dict(N=5)),
    ("fn f(a, b=2.0) { t = a*b\n return where(t > 1, t*t, exp(t)) }\nkernel k(x: f64[N]) -> (y: "
     "f64[N]) { y[i] = f(f(x[i]), 3)*f(x[i]) }",
     dict(N=5)),
    ("kernel k(x: f64[N], s: f64) -> (y: f64[N]) { y[i] = s*x[i]*x[i] + s }",
     dict(N=5)),
    ("kernel k(x: f64[N, D], e: i64[N], w: f64[E*D]) -> (y: f64[N, D]) { y[n, d] = x[n, d]*w[(e[n], "
     "d in D)] }",
     dict(N=4, D=3, E=2)),
    ("kernel k(x: f64[N]) -> (y: f64[N], z: f64) { y[i] = x[i]*x[i]  z = max(y[i] for i) + "
     "min(x[i]*y[i] for i) }",
     dict(N=5)),
    ("kernel k(x: f64[N, M]) -> (y: f64[N]) { y[i] = prod(x[i, j] + x[j % N, 0] for j) }",
     dict(N=3, M=4)),
    ("kernel k(x: f64[N, M]) -> (y: f64[N, M]) { y[i, j] = cumsum(x[i, j]*x[i, 0], "
     "over=j)*softmax(x[i, j] - x[0, j], over=i) }",
     dict(N=3, M=4)),
]


@pytest.mark.parametrize("text, sizes", MIXED, ids=range(len(MIXED)))
def test_mixed_forms(text, sizes):
    """Forms that meet in one program, against central differences."""
    written = gradient(COMMAND, text)
    assert len(warnings(COMMAND, written)) <= len(warnings(COMMAND, text)), written
    values = inputs_of(tegula.compile(text), sizes, {}, seed=2)
    assert compare(text, written, values, step=1e-5) < 1e-7, written


REFUSED = {
    "kernel k(x: f64[N], s: i64[N], c: inout f64[N]) { c[s[i]] = x[i] }": "of which the last one counts",
    "kernel k(x: f64[N]) -> (y: f64[N]) { y[i] = digamma(x[i]) }": "digamma",
    "kernel k(x: f64[N]) -> (y: i64) { y = argmax(x[i] for i) }": "no output of floats",
    "kernel k(x: f64[N], i: i64[N], V: int = 4) -> (y: f64[V]) { y[v] = 0  y[i[n]] max= x[n] }": "which of the points",
    "kernel k(x: f64[M, N]) -> (y: f64[M, N]) { y[i, j] = cumprod(x[i, j], over=j, exclusive=true) }": "exclusive=true",
    "kernel k(x: f64[2*N], e: i64[2*N]) -> (y: f64[N]) { y[i] = sum(x[e[i + j]] for j in 0:i + 1) for i in N }":
        "between bounds that other indices",
    "kernel k(grad_y: f64[N], w: f64[N]) -> (y: f64[N]) { y[i] = grad_y[i]*w[i] }": "of 'y' is called 'grad_y'",
    "kernel k(x: f64[N], grad_x: i64[N]) -> (y: f64[N]) { y[i] = x[i]*grad_x[i] }": "of 'x' is called 'grad_x'",
    "kernel k(n: i64[N]) -> (y: i64[N]) { y[i] = n[i] }": "no tensor of floats",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text):
    with pytest.raises(Refused, match=REFUSED[text]):
        gradient(COMMAND, text)
