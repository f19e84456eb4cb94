"""Gradients that the compiler writes: `kernel.grad`, and operators with backward="auto"."""
import itertools

import pytest
import torch

import tegula

SWISH = "kernel swish(x: f32[M, N], beta: f32) -> (y: f32[M, N]) { y[i, j] = x[i, j] * sigmoid(beta * x[i, j]) }"
LINEAR = """
kernel linear(x: T[..., K], w: T[N, K], b: T[N] = 0, factor: int = 1) -> (y: T[..., N]) {
  y[..., n] = factor*sum(x[..., k] * w[n, k] for k) + b[n]
}
"""
SCORES = """
kernel attend(q: T[S, D], k: T[R, D], v: T[R, D]) -> (o: T[S, D]) {
  s[i, j] = where(j <= i, rsqrt(D)*sum(q[i, d] * k[j, d] for d), -inf)
  p[i, j] = softmax(s[i, j], over=j)
  o[i, d] = sum(p[i, j] * v[j, d] for j)
}
"""
numbers = itertools.count()


@pytest.fixture
def register(tmp_path):
    def make(text, **options):
        number = next(numbers)
        path = tmp_path / f"p{number}.tgl"
        path.write_text(text)
        return tegula.library(path, f"tegula_test_gradient::op{number}", **{"backward": "auto", **options})

    return make


def swish(x, beta=1.5):
    return x * torch.sigmoid(beta * x)


def attend(q, k, v):
    s = (q @ k.T) * q.shape[1]**-0.5
    return torch.softmax(s.masked_fill(torch.ones_like(s).tril() == 0, -torch.inf), 1) @ v


def draw(*shape, device="cpu", dtype=torch.float32):
    return torch.randn(*shape, device=device, dtype=dtype).requires_grad_()


class TestKernel:
    def test_gradient_of_a_kernel(self):
        kernel = tegula.compile(LINEAR, factor=3)
        gradient = kernel.grad("w", left_out=["b"])
        assert gradient.name == "linear_grad" and "kernel linear_grad(" in gradient.text
        assert [one.name for one in gradient.outputs] == ["grad_w"]
        x, w, grad_y = torch.randn(2, 5, 4), torch.randn(3, 4), torch.randn(2, 5, 3)
        names = [one.name for one in gradient.parameters if one.role == "in"]
        found = gradient(**{name: {"x": x, "w": w, "grad_y": grad_y}[name] for name in names})
        torch.testing.assert_close(found, 3 * torch.einsum("abn,abk->nk", grad_y, x))

    def test_what_has_no_rule_is_told(self):
        kernel = tegula.compile("kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = digamma(x[i]) }")
        with pytest.raises(tegula.ProgramError) as caught:
            kernel.grad()
        assert caught.value.diagnostics[0].code == "E0913"
        with pytest.raises(tegula.LaunchError, match="no constant or type 'M'"):
            kernel.grad(M=3)
        with pytest.raises(tegula.ProgramError, match="no tensor 'z'"):
            kernel.grad(["z"])

    def test_outputs_are_taken_where_elements_are_reductions(self):
        kernel = tegula.compile(SCORES)
        taken = {save: "o" in [one.name for one in kernel.grad(save=save).parameters] for save in (None, True, False)}
        assert taken == {None: True, True: True, False: False}


class TestOperator:
    def test_gradients_and_gradients_of_gradients(self, register, device):
        op = register(SWISH)
        x = draw(3, 5, device=device)
        torch.library.opcheck(op, (x, 1.5))
        other = x.detach().clone().requires_grad_()
        for mine, theirs in ((op(x, 1.5), swish(other)),):
            first, = torch.autograd.grad(mine.square().sum(), x, create_graph=True)
            second, = torch.autograd.grad(theirs.square().sum(), other, create_graph=True)
            torch.testing.assert_close(first, second)
            torch.testing.assert_close(torch.autograd.grad(first.sin().sum(), x, create_graph=True)[0],
                                       torch.autograd.grad(second.sin().sum(), other)[0])

    def test_third_order_is_refused(self, register):
        op, x = register(SWISH), draw(2, 3)
        first, = torch.autograd.grad(op(x, 1.5).sum(), x, create_graph=True)
        second, = torch.autograd.grad(first.sum(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="a gradient of a gradient"):
            torch.autograd.grad(second.sum(), x)

    def test_optional_tensors_ranks_and_constants(self, register, device):
        op = register(LINEAR)
        for shape, factor, with_bias in (((4,), 1, True), ((2, 3, 4), 2, False), ((0, 4), 3, True)):
            x, w, b = draw(*shape, device=device), draw(5, 4, device=device), draw(5, device=device)
            y = op(x, w, b if with_bias else None, factor)
            weights = torch.randn_like(y)
            expected = factor * (x @ w.T) + (b if with_bias else 0)
            wanted = [x, w] + ([b] if with_bias else [])
            for mine, theirs in zip(torch.autograd.grad(y, wanted, weights), torch.autograd.grad(expected, wanted, weights)):
                torch.testing.assert_close(mine, theirs)

    def test_only_what_is_needed(self, register):
        op = register(LINEAR)
        x, w = torch.randn(3, 4), draw(5, 4)
        op(x, w).sum().backward()
        torch.testing.assert_close(w.grad, x.sum(0).expand(5, 4))
        assert x.grad is None

    def test_takes_the_result_of_attention(self, register, device):
        op = register(SCORES)
        q, k, v = (draw(n, 8, device=device, dtype=torch.float64) for n in (7, 5, 5))
        weights = torch.randn(7, 8, device=device, dtype=torch.float64)
        mine = torch.autograd.grad(op(q, k, v), (q, k, v), weights)
        for one, other in zip(mine, torch.autograd.grad(attend(q, k, v), (q, k, v), weights)):
            torch.testing.assert_close(one, other)
        if device == "cpu":
            assert torch.autograd.gradgradcheck(op, (q, k, v))

    @pytest.mark.parametrize("dynamic", [False, True])
    def test_under_compile(self, register, device, dynamic):
        op = register(LINEAR)

        def f(x, w):
            return op(x * 2, w, factor=3).sin().sum()

        compiled = torch.compile(f, backend="aot_eager", fullgraph=True, dynamic=dynamic)
        for rows in (3, 8):
            x, w = (draw(*shape, device=device, dtype=torch.float64) for shape in ((rows, 4), (5, 4)))
            found = torch.autograd.grad(compiled(x, w), (x, w))
            expected = torch.autograd.grad((3 * (2 * x) @ w.T).sin().sum(), (x, w))
            for one, other in zip(found, expected):
                torch.testing.assert_close(one, other)

    def test_under_export(self, register):
        op = register(SWISH)

        class Module(torch.nn.Module):
            def forward(self, x):
                return op(x, 1.5)

        x = torch.randn(3, 4)
        torch.testing.assert_close(torch.export.export(Module(), (x,)).module()(x), swish(x))

    def test_what_has_no_gradient_is_refused_at_once(self, register):
        with pytest.raises(tegula.ProgramError, match="no gradient"):
            register("kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = digamma(x[i]) }")
        with pytest.raises(ValueError, match="in place"):
            register("kernel k(x: inout f32[N]) { x[i] = 2*x[i] }")
