"""Kernels as operators of PyTorch."""
import itertools

import pytest
import torch

import tegula

PROGRAM = """
kernel swish_backward(x: f32[M, N], grad_y: f32[M, N], beta: f32) -> (grad_x: f32[M, N]) {
  s[i, j] = sigmoid(beta * x[i, j])
  grad_x[i, j] = grad_y[i, j] * (s[i, j] + beta * x[i, j] * s[i, j] * (1 - s[i, j]))
}

kernel swish(x: f32[M, N], beta: f32) -> (y: f32[M, N]) {
  y[i, j] = x[i, j] * sigmoid(beta * x[i, j])
}
"""
POOL = """
kernel pool(x: T[..., L], b: T[P] = 0, size: int = 2, step: int = size, scale: float = 1.0, on: bool = true)
    -> (y: T[..., P], n: f32)
  where P = (L - size) // step + 1
{
  y[..., p] = where(on, scale, 0.0) * sum(x[..., p * step + s] for s in size) + b[p]
  n = 3.0
}
"""
BUMP = "kernel bump(c: inout f32[N], v: f32[N], by: int = 1) { c[i] = c[i] + by * v[i] }"
numbers = itertools.count()


@pytest.fixture
def register(tmp_path):
    def make(text, **options):
        number = next(numbers)
        path = tmp_path / f"p{number}.tgl"
        path.write_text(text)
        return tegula.library(path, f"tegula_test::op{number}", **options)

    return make


def swish(x, beta):
    return x * torch.sigmoid(beta * x)


@pytest.mark.filterwarnings("ignore::tegula.TegulaWarning")
class TestLibrary:
    def test_opcheck_with_gradient(self, register, device):
        op = register(PROGRAM, backward="swish_backward")
        for shape in ((3, 5), (1, 7)):
            torch.library.opcheck(op, (torch.randn(*shape, device=device, requires_grad=True), 1.5))
        torch.library.opcheck(op, (torch.randn(5, 3, device=device).T, 1.5))

    def test_backward_kernels_are_compiled_as_the_kernel_is(self, register, monkeypatch):
        made = []

        def compile(text, kernel=None, **how):
            made.append(tegula.compile(text, kernel, **how))
            return made[-1]

        monkeypatch.setattr("tegula._library.compile", compile)
        register(PROGRAM, backward="swish_backward", checked=True, precision="tf32")
        assert [one.name for one in made] == ["swish_backward", "swish"]
        assert all(one._checked and one._precision == "tf32" for one in made)

    def test_gradient(self, register, device):
        op = register(PROGRAM, backward=["swish_backward"])
        x = torch.randn(4, 6, device=device, requires_grad=True)
        other = x.detach().clone().requires_grad_()
        op(x, 1.5).sum().backward()  # a gradient that is expanded, not contiguous
        swish(other, 1.5).sum().backward()
        torch.testing.assert_close(x.grad, other.grad)

    def test_gradient_of_a_gradient(self, register, device):
        op = register(PROGRAM, backward="swish_backward")
        x = torch.randn(4, 6, device=device, requires_grad=True)
        first, = torch.autograd.grad(op(x, 1.5).sum(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="gradients of gradients"):
            torch.autograd.grad(first.sum(), x)

    def test_opcheck_of_optionals_constants_and_ranks(self, register, device):
        op = register(POOL)
        assert str(op.default._schema).endswith(
            "(Tensor x, Tensor? b=None, int size=2, int? step=None, float scale=1., bool on=True)"
            " -> (Tensor, Tensor)")
        for dtype, shape in ((torch.float32, (2, 9)), (torch.float16, (3, 2, 8)), (torch.float32, (9,))):
            x = torch.randn(*shape, device=device).to(dtype)
            for arguments in ((x,), (x, None, 3, 1), (x, torch.ones(shape[-1] // 2, device=device).to(dtype))):
                torch.library.opcheck(op, arguments, {"scale": 2.0})
        y, n = op(torch.ones(1, 6, device=device), size=3, step=2)
        assert y.tolist() == [[3, 3]] and n.item() == 3

    def test_opcheck_of_inout(self, register, device):
        op = register(BUMP)
        torch.library.opcheck(op, (torch.zeros(4, device=device), torch.ones(4, device=device), 2))

        def twice(c, v):
            op(c, v)
            op(c, v, by=3)
            return c * 1

        c, v = torch.zeros(4, device=device), torch.ones(4, device=device)
        assert torch.compile(twice, backend="aot_eager", fullgraph=True)(c, v).tolist() == [4] * 4
        assert c.tolist() == [4] * 4

    def test_compile_with_dynamic_shapes_and_gradient(self, register, device):
        op = register(PROGRAM, backward="swish_backward")

        def f(x):
            return (op(x * 2, 1.5) + 1).sum()

        compiled = torch.compile(f, backend="aot_eager", fullgraph=True, dynamic=True)
        for rows in (3, 8, 1):
            x = torch.randn(rows, 6, device=device, requires_grad=True)
            other = x.detach().clone().requires_grad_()
            compiled(x).backward()
            (swish(other * 2, 1.5) + 1).sum().backward()
            torch.testing.assert_close(x.grad, other.grad)

    def test_export(self, register, device):
        op = register(POOL)

        class Model(torch.nn.Module):
            def forward(self, x):
                return op(x + 1, size=3, step=1)[0]

        x = torch.randn(4, 10, device=device)
        rows, columns = torch.export.Dim("rows", min=2), torch.export.Dim("columns", min=4)
        program = torch.export.export(Model(), (x,), dynamic_shapes=({0: rows, 1: columns},))
        for shape in ((4, 10), (3, 7)):
            x = torch.randn(*shape, device=device)
            torch.testing.assert_close(program.module()(x), Model()(x))
            torch.testing.assert_close(Model()(x), (x + 1).unfold(1, 3, 1).sum(2))

    def test_export_of_dims_that_are_linear_in_a_size(self, register, device):
        op = register("kernel halves(x: f32[M, 2*P]) -> (y: f32[M, P]) { y[m, p] = x[m, p] + x[m, p + P] }")

        class Model(torch.nn.Module):
            def forward(self, x):
                return op(torch.cat([x, x], dim=1))

        rows, columns = torch.export.Dim("rows", min=2), torch.export.Dim("columns", min=4)
        program = torch.export.export(Model(), (torch.randn(4, 10, device=device),),
                                      dynamic_shapes=({0: rows, 1: columns},))
        x = torch.randn(3, 7, device=device)
        torch.testing.assert_close(program.module()(x), 2 * x)

    def test_sizes_that_are_functions(self, register, device):
        op = register("""kernel sizes(x: f32[N], q: f32[H, D], g: f32[G, D]) -> (a: f32[P], b: f32[Q], c: f32[S], o: f32[H])
          where P = maximum(2, N - 3), Q = int(0.5*N), S = where(N < 6, 1, 2), R = H/G {
          a[i in P] = x[0]
          b[i in Q] = x[0]
          c[i in S] = x[0]
          o[(e in G, r in R)] = sum(q[(e, r), d] * g[e, d] for d)
        }""")
        compiled = torch.compile(lambda x, q, g: op(x, q, g), backend="aot_eager", fullgraph=True, dynamic=True)
        for count in (4, 5, 6, 7):
            arguments = [torch.ones(*shape, device=device) for shape in ((count,), (2 * count, 3), (count, 3))]
            shapes = [(max(2, count - 3),), (count // 2,), (1 if count < 6 else 2,), (2 * count,)]
            assert [tuple(one.shape) for one in op(*arguments)] == shapes
            assert [tuple(one.shape) for one in compiled(*arguments)] == shapes

    def test_settings_are_the_defaults_of_constants(self, register, device):
        text = """
        kernel times_backward(grad_y: T[N], factor: int = 1) -> (grad_x: T[N]) { grad_x[i] = factor * grad_y[i] }
        kernel times(x: T[N], factor: int = 1, step: int[2] = 1) -> (y: T[N]) {
          y[i] = factor * step[0] * step[1] * x[i]
        }
        """
        op = register(text, backward="times_backward", factor=3, step=(2, 1), T="f32")
        assert str(op.default._schema).endswith("(Tensor x, int factor=3, int[2] step=[2, 1]) -> Tensor")
        x = torch.ones(4, device=device, requires_grad=True)
        torch.library.opcheck(op, (x, 5))
        for arguments, wanted, gradient in (((x,), 6, 3), ((x, 1), 2, 1), ((x, 3, [1, 1]), 3, 3)):
            x.grad = None
            y = op(*arguments)
            y.sum().backward()
            assert y.tolist() == [wanted] * 4 and x.grad.tolist() == [gradient] * 4
        with pytest.raises(tegula.LaunchError, match="'x' is f32, the argument is f64"):
            op(x.double())

    def test_scalars_with_a_default(self, register, device):
        op = register("kernel f(x: f32[N], s: f32 = 2, n: i32 = 1) -> (y: f32[N]) { y[i] = x[i] * s + n }")
        x = torch.ones(2, device=device)
        compiled = torch.compile(lambda x, s, n: op(x, s, n), backend="aot_eager", fullgraph=True)
        for s, n, wanted in ((2.0, 1, 3), (0.5, 1, 1.5), (0.5, 3, 3.5)):
            torch.library.opcheck(op, (x, s, n))
            assert op(x, s, n).tolist() == compiled(x, s, n).tolist() == [wanted] * 2
        assert op(x).tolist() == [3] * 2

    def test_required_after_optional(self, register, device):
        op = register("kernel f(x: f32[N], b: f32[N] = 0, w: f32[N], c: inout f32[N]) -> (y: f32[N]) "
                      "{ y[i] = x[i] + b[i] + w[i]\n c[i] = c[i] + 1.0 }")
        x, c = torch.ones(3, device=device), torch.zeros(3, device=device)
        torch.library.opcheck(op, (x, None, x, c))
        assert op(x, w=x, c=c).tolist() == [2] * 3
        for make in (lambda: op(x), lambda: torch.compile(lambda t: op(t, None, t), backend="eager")(x)):
            with pytest.raises(Exception, match="needs '[wc]'"):
                make()

    def test_integers_of_a_call_compile_once(self, register, device):
        op = register("kernel f(x: f32[N], by: i32) -> (y: f32[N]) { y[i] = x[i] + by }")
        torch.library.opcheck(op, (torch.ones(3, device=device), 4))
        made = []

        def backend(module, inputs):
            made.append(module)
            return module

        compiled = torch.compile(lambda x, by: op(x, by + 1), backend=backend, fullgraph=True)
        for by in (7, 8, 9, 10):
            assert compiled(torch.zeros(3, device=device), by).tolist() == [by + 1] * 3
        assert len(made) <= 2  # one for the first number, one for all others

    def test_fake_refuses_what_the_kernel_refuses(self, register, device):
        op = register("kernel f(x: f32[M, K], w: f32[N, K]) -> (y: f32[M, N]) "
                      "{ y[m, n] = sum(x[m, k] * w[n, k] for k) }")
        x, w = torch.ones(2, 3, device=device), torch.ones(4, 3, device=device)
        for wrong in ((x, w[:, :2]), (x, w[0]), (x[0], w), (x, w.double()), (x.to(torch.complex64), w)):
            texts = []
            for tensors in (wrong, [one.to("meta") for one in wrong]):
                with pytest.raises(tegula.LaunchError) as caught:
                    op(*tensors)
                texts.append(str(caught.value))
            assert texts[0] == texts[1]
        compiled = torch.compile(op, backend="aot_eager", fullgraph=True, dynamic=True)
        torch.testing.assert_close(compiled(x, w), x @ w.T)
        with pytest.raises(Exception, match="'w' has dims"):
            compiled(x, w[:, :2])

    def test_wrong_backward_kernels(self, register):
        forward = "kernel f(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }"
        for backward, words in (
            ("kernel b(g: f32[N]) -> (grad_x: f32[N]) { grad_x[i] = g[i] }", "takes 'g'"),
            ("kernel b(grad_y: f32[N]) -> (dx: f32[N]) { dx[i] = grad_y[i] }", "the output 'dx'"),
        ):
            with pytest.raises(ValueError, match=words):
                register(backward + forward, backward="b")
        with pytest.raises(tegula.LaunchError, match="no kernel 'c'"):
            register(forward, backward="c")
        with pytest.raises(ValueError, match="updates a tensor in place"):
            register("kernel b(v: f32[N]) -> (grad_v: f32[N]) { grad_v[i] = v[i] }" + BUMP, backward="b")
        with pytest.raises(ValueError, match="no tensor that every call gives"):
            register("kernel f(n: i32) -> (y: i32) { y = n }")


@pytest.mark.gpu
def test_cuda_graph(register):
    op = register("kernel s(x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = softmax(sin(x[i, j]), over=j) }")
    x = torch.randn(64, 4096, device="cuda")
    op(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = op(x) + op(x)
    for _ in range(3):
        x.copy_(torch.randn_like(x))
        graph.replay()
        torch.testing.assert_close(y, 2 * torch.softmax(x.sin(), 1))
    compiled = torch.compile(lambda t: op(t * 2) + 1, mode="reduce-overhead", fullgraph=True)
    for _ in range(4):
        x = torch.randn(64, 4096, device="cuda")
        torch.testing.assert_close(compiled(x), torch.softmax((2 * x).sin(), 1) + 1)
