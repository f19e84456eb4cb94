"""Differences between a module and its program that one call does not show."""
import collections
import copy
import enum
import functools
import pickle
import re
import types

import pytest
import torch
from swap_models import Around, make
from torch import nn

import tegula
from tegula._swap import program as program_module
from tegula._swap.module import kinds_of

pytestmark = pytest.mark.filterwarnings("ignore::tegula.TegulaWarning")
DOUBLE = "kernel double(x: T[M, N]) -> (y: T[M, N]) { y[i, j] = 2 * x[i, j] }"
LINEAR = "kernel l(x: f32[N, D], weight: f32[H, D]) -> (y: f32[N, H]) { y[n, h] = sum(x[n, d]*weight[h, d] for d) }"
NORM = """kernel norm(x: f32[N, D]OF) -> (y: f32[N, D]) {
  m[n] = mean(x[n, d] for d)
  v[n] = mean((x[n, d] - m[n])**2 for d)
  y[n, d] = (x[n, d] - m[n]) / sqrt(v[n] + 1e-5)BY
}"""
SCALED = """kernel backward(x: f32[N, D], w: f32[D], grad_y: f32[N, D]) -> (grad_x: f32[N, D], grad_w: f32[D]) {
  grad_x[n, d] = grad_y[n, d]*w[d]
  grad_w[d] = sum(grad_y[n, d]*x[n, d] for n)
}
kernel scaled(x: f32[N, D], w: f32[D]) -> (y: f32[N, D]) { y[n, d] = x[n, d]*w[d] }"""


@pytest.fixture
def swap_part(tmp_path):
    """Swaps the part of a model that calls it as it is called."""

    def swap(part, program, *calls, **options):
        path = tmp_path / "part.tgl"
        path.write_text(program)
        model = Around(part)
        trained = {"kernel": "scaled", "backward": "backward"} if options.pop("trained", False) else {}
        options.setdefault("gradients", None if trained else False)
        return model, tegula.swap(model, {"part": tegula.Replacement(path, **trained)}, list(calls), **options)

    return swap


@pytest.fixture
def refusal(swap_part):
    def refuse(*args, **options):
        with pytest.raises(tegula.SwapError) as error:
            swap_part(*args, **options)
        return error.value.refusals["part"]

    return refuse


@pytest.fixture
def x():
    torch.manual_seed(0)
    return torch.randn(4, 8)


def fallbacks(swap):
    return dict(swap.report()[0].fallbacks)


class TestState:
    def test_that_the_program_does_not_read(self, refusal, x):
        class Lora(nn.Module):
            def __init__(self):
                super().__init__()
                self.base, self.a, self.b = nn.Linear(8, 8, bias=False), nn.Linear(8, 2), nn.Linear(2, 8)
                nn.init.zeros_(self.b.weight)
                nn.init.zeros_(self.b.bias)

            def forward(self, x):
                return self.base(x) + self.b(self.a(x))

        plain = NORM.replace("OF", "").replace("BY", "")
        assert "does not read 'weight', 'bias'" in refusal(nn.LayerNorm(8), plain, (x,))
        kept = "kernel k(x: f32[N, D]) -> (y: f32[N, D]) { y[n, d] = x[n, d] / sqrt(1 + 1e-5) }"
        assert "'running_mean', 'running_var'" in refusal(nn.BatchNorm1d(8, affine=False).eval(), kept, (x,))
        assert "'b.weight'" in refusal(Lora(), LINEAR.replace("weight", "base_weight"), (x,))

    def test_that_equals_what_the_program_reads(self, refusal, x):
        class Norms(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.LayerNorm(8, bias=False), nn.LayerNorm(8, bias=False)

            def forward(self, x):
                return self.a(x)

        program = NORM.replace("OF", ", b_weight: f32[D]").replace("BY", " * b_weight[d]")
        assert "with other values of the parameters and buffers: 'y'" in refusal(Norms(), program, (x,))

    def test_that_hides_a_gradient(self, refusal, x):
        program = SCALED.replace("grad_y[n, d]*w[d]", "grad_y[n, d]")
        part = make(lambda self, x: x*self.w, w=torch.ones(8))
        assert "'grad_x' is not as accurate" in refusal(part, program, (x.requires_grad_(),), trained=True)

    def test_that_forward_does_not_read(self, swap_part, x):
        part = make(lambda self, x: 2*x, other=torch.ones(3))
        part.register_buffer("count", torch.tensor(0))
        part.register_buffer("places", torch.arange(3))
        part.register_buffer("wide", torch.ones(1, 3).expand(3, 3))
        part.register_buffer("no", torch.zeros(2, dtype=torch.bool))
        part.register_buffer("small", torch.ones(2).to(torch.float8_e4m3fn))
        part.register_buffer("complex", torch.zeros(2, dtype=torch.complex64))
        assert len(swap_part(part, DOUBLE, (x,))[1].modules) == 1

    def test_subscripts_that_the_program_does_not_read(self, refusal, x):
        part = make(lambda self, x: x[:, self.places]*2)
        part.register_buffer("places", torch.arange(8))
        assert "'places'" in refusal(part, DOUBLE, (x,))

    def test_ties_that_end(self, swap_part, x):
        part = make(lambda self, x: x @ self.other.T, weight=torch.randn(8, 8))
        part.other = part.weight
        model, swap = swap_part(part, LINEAR, (x,))
        part.other = nn.Parameter(torch.randn(8, 8))
        with torch.no_grad():
            torch.testing.assert_close(model(x), x @ part.other.T)
        assert fallbacks(swap) == {"tie of other": 1}


class TestGradients:
    @pytest.mark.parametrize("forward", [lambda self, x: x.detach()*self.w, lambda self, x: x*self.w.detach()])
    def test_that_the_module_does_not_give(self, refusal, x, forward):
        part = make(forward, w=torch.randn(8))
        assert "the program gives a gradient of" in refusal(part, SCALED, (x.requires_grad_(),), trained=True)

    def test_that_forward_switches_off(self, refusal, x):
        def forward(self, x):
            with torch.no_grad():
                return x*self.w

        part = make(forward, w=torch.randn(8))
        assert "need gradients where" in refusal(part, SCALED, (x.requires_grad_(),), trained=True)

    def test_of_tied_parameters(self, swap_part, x):
        part = make(lambda self, x: x*self.w*self.v, w=torch.randn(8))
        part.v = part.w
        program = """
        kernel backward(x: f32[N, D], w: f32[D], v: f32[D], grad_y: f32[N, D])
          -> (grad_x: f32[N, D], grad_w: f32[D], grad_v: f32[D]) {
          grad_x[n, d] = grad_y[n, d]*w[d]*v[d]
          grad_w[d] = sum(grad_y[n, d]*x[n, d]*v[d] for n)
          grad_v[d] = sum(grad_y[n, d]*x[n, d]*w[d] for n)
        }
        kernel scaled(x: f32[N, D], w: f32[D], v: f32[D]) -> (y: f32[N, D]) { y[n, d] = x[n, d]*w[d]*v[d] }"""
        model, swap = swap_part(part, program, (x,), trained=True)
        model(x).sum().backward()
        torch.testing.assert_close(part.w.grad, (2*x*part.w).sum(0))
        assert fallbacks(swap) == {}


class Mode(enum.Enum):
    TWICE, THRICE = 2.0, 3.0


class Config:
    def __init__(self):
        self.scales, self.name = {"scale": [1.0, 2.0]}, "config"


class Slotted:
    __slots__ = ("scale",)

    def __init__(self):
        self.scale = 2.0


class WithDefault(nn.Module):
    scale = 2.0
    table = [2.0]

    def forward(self, x):
        return x*self.scale*self.table[0]/2


class TestAttributes:
    @pytest.mark.parametrize("value, read, change", [
        ([2.0], lambda one: one[0], lambda one: one.__setitem__(0, 3.0)),
        ({"a": 2.0}, lambda one: one["a"], lambda one: one.update(a=3.0)),
        (((2.0,),), lambda one: one[0][0], lambda one: ((3.0,),)),
        (collections.deque([2.0]), lambda one: one[-1], lambda one: one.append(3.0)),
        (types.SimpleNamespace(a=2.0), lambda one: one.a, lambda one: setattr(one, "a", 3.0)),
        (Config(), lambda one: one.scales["scale"][1], lambda one: one.scales["scale"].insert(1, 3.0)),
        (Config(), lambda one: getattr(one, "new", 2.0), lambda one: setattr(one, "new", 3.0)),
        (Slotted(), lambda one: one.scale, lambda one: setattr(one, "scale", 3.0)),
        (Mode.TWICE, lambda one: one.value, lambda one: Mode.THRICE),
        (functools.partial(int, 2.0), lambda one: one(), lambda one: functools.partial(int, 3.0)),
        ([2], lambda one: one[0], lambda one: [torch.tensor([3.0])]),
    ], ids=str)
    def test_that_change(self, swap_part, x, value, read, change):
        part = make(lambda self, x: x*read(self.held), held=copy.deepcopy(value))
        model, swap = swap_part(part, DOUBLE, (x,))
        assert torch.equal(copy.deepcopy(model)(x), 2*x)
        model(x)
        assert fallbacks(swap) == {}
        changed = change(part.held)
        if changed is not None:
            part.held = changed
        assert torch.equal(model(x), 3*x) and fallbacks(swap) == {"value of held": 1}

    def test_of_the_class(self, swap_part, x, monkeypatch):
        part = WithDefault()
        model, swap = swap_part(part, DOUBLE, (x,))
        model(x)
        part.scale = 3.0
        assert torch.equal(model(x), 3*x)
        del part.scale
        monkeypatch.setattr(WithDefault, "table", [4.0])
        assert torch.equal(model(x), 4*x) and fallbacks(swap) == {"value of scale": 1, "value of table": 1}

    def test_that_come_later(self, swap_part, x):
        part = make(lambda self, x: x*getattr(self, "scale", 2.0))
        model, swap = swap_part(part, DOUBLE, (x,))
        part.scale = 3.0
        assert torch.equal(model(x), 3*x) and fallbacks(swap) == {"presence of scale": 1}

    @pytest.mark.parametrize("value, message", [
        ([torch.ones(2)], "'held\\[0\\]' is a tensor"), ({"a": (1, nn.ReLU())}, "is a module that is no part"),
        (torch.Generator(), "is a Generator, which no guard"), ([0]*5000, "more than 2000 values")], ids=str)
    def test_that_no_guard_compares(self, refusal, x, value, message):
        assert re.search(message, refusal(make(lambda self, x: 2*x, held=value), DOUBLE, (x,)))

    @pytest.mark.parametrize("kept", [collections.deque(), {"seen": []}, types.SimpleNamespace(seen=[])], ids=str)
    def test_that_forward_changes(self, refusal, x, kept):
        def forward(self, x):
            inner = self.held if isinstance(self.held, collections.deque) else \
                self.held["seen"] if isinstance(self.held, dict) else self.held.seen
            inner.append(1)
            return 2*x

        assert "sets the attribute 'held'" in refusal(make(forward, held=kept), DOUBLE, (x,))

    def test_parameters_and_buffers_that_were_none(self, swap_part, x):
        part = nn.Linear(8, 8, bias=False)
        model, swap = swap_part(part, LINEAR.replace("x", "input"), (x,))
        part.bias = nn.Parameter(torch.ones(8))
        with torch.no_grad():
            torch.testing.assert_close(model(x), x @ part.weight.T + 1)
        part.bias = None
        part.register_buffer("mask", torch.ones(8))
        model(x)
        assert fallbacks(swap) == {"presence of bias": 1, "names of parameters and buffers": 1}

    def test_forward_of_a_class_that_is_replaced(self, swap_part, x):
        part = make(lambda self, x: 2*x)
        model, swap = swap_part(part, DOUBLE, (x,))
        type(part)._tegula_base.forward = lambda self, x: 3*x
        assert torch.equal(model(x), 3*x) and fallbacks(swap) == {"forward": 1}

    def test_default_dtype(self, swap_part, x):
        part = make(lambda self, x: x*torch.tensor([2.0], dtype=torch.get_default_dtype()))
        model, swap = swap_part(part, DOUBLE, (x,))
        torch.set_default_dtype(torch.float64)
        try:
            assert model(x).dtype is torch.float64 and fallbacks(swap) == {"default dtype": 1}
        finally:
            torch.set_default_dtype(torch.float32)

    def test_in_a_graph(self, swap_part, x):
        part = make(lambda self, x: x*self.held["a"][0]*self.config.scales["scale"][1]/2, held={"a": [2.0]}, config=Config())
        model, _ = swap_part(part, DOUBLE, (x,))
        torch.compiler.reset()
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        assert torch.equal(compiled(x), 2*x)
        part.held["a"][0] = 3.0
        assert torch.equal(compiled(x), 3*x)
        part.config.scales["scale"][1] = 4.0
        assert torch.equal(compiled(x), 6*x)


def appends(self, x, kept):
    kept.append(x)
    return 2*x


def sets(self, x, kept):
    kept["new"] = x
    return 2*x


def replaces(self, x, kept):
    kept["a"] = kept["a"] + x
    return 2*x


class TestInputs:
    @pytest.mark.parametrize("forward, kept", [(appends, []), (sets, {}), (replaces, {"a": torch.ones(4, 8)})])
    def test_containers_that_forward_changes(self, refusal, x, forward, kept):
        program = DOUBLE.replace("x: T[M, N]", "x: T[M, N], kept_a: T[M, N] = 0")
        assert "changes a list or a dict among its inputs" in refusal(make(forward), program, (x, kept))

    def test_containers_that_forward_returns(self, refusal, x):
        assert "returns a list or a dict of its inputs" in refusal(
            make(lambda self, x, kept: (2*x, kept)), DOUBLE, (x, []))

    def test_keys_of_other_types(self, swap_part, x):
        part = make(lambda self, kept: 2*kept[1] if 1 in kept else 3*kept["1"])
        model, swap = swap_part(part, DOUBLE.replace("x", "kept_1"), ({1: x},))
        assert torch.equal(model({1: x}), 2*x) and fallbacks(swap) == {}
        assert torch.equal(model({"1": x}), 3*x) and fallbacks(swap) == {"arguments": 1}

    def test_changes_that_leave_the_same_bits(self, refusal, x):
        def forward(self, x):
            torch.relu_(x)
            return 2*x

        program = DOUBLE.replace("2 * x[i, j]", "2 * relu(x[i, j])")
        assert "changes its input 'x' in place" in refusal(make(forward), program, (x.abs(),))

        def clamps(self, x):
            self.low.clamp_(min=0)
            return x*self.low

        part = make(clamps)
        part.register_buffer("low", torch.ones(8))
        program = "kernel k(x: f32[N, D], low: f32[D]) -> (y: f32[N, D]) { y[n, d] = x[n, d] * low[d] }"
        assert "changes 'low' of the module" in refusal(part, program, (x,))

    def test_devices_of_tensors_in_containers_and_state(self, x):
        far = x.to("meta")
        assert kinds_of((None, {"a": (far, [x])}), nn.Linear(2, 2)) == ["meta", "cpu"]
        assert kinds_of((None, {}), nn.Linear(2, 2).to("meta")) == ["meta"]

    def test_another_kind_of_device(self, swap_part, x):
        model, swap = swap_part(nn.Linear(8, 8, bias=False), LINEAR.replace("x", "input"), (x,))
        assert model.to("meta")(x.to("meta")).is_meta and fallbacks(swap) == {"device of input": 1}

    def test_whole_numbers_between(self, swap_part, x):
        part = make(lambda self, x, n: x*n if n != 2 else x*100)
        program = "kernel k(x: f32[N, D], n: i64) -> (y: f32[N, D]) { y[i, d] = x[i, d]*n }"
        model, swap = swap_part(part, program, (x, 1), (x, 3))
        assert torch.equal(model(x, 2), 100*x) and torch.equal(model(x, 3), 3*x) and fallbacks(swap) == {"value of n": 1}

    @pytest.mark.parametrize("backend", ["eager", "aot_eager"])
    def test_updates_in_a_graph(self, swap_part, x, backend):
        program = "kernel k(c: inout f32[N, D], x: f32[N, D]) { c[n, d] = c[n, d] + x[N - 1 - n, d] }"

        def forward(self, c, x):
            c.add_(x.flip(0))

        model, _ = swap_part(make(forward), program, (torch.zeros(4, 8), x))
        torch.compiler.reset()
        compiled = torch.compile(model, backend=backend, fullgraph=True)
        both, wide = x.clone(), torch.zeros(8, 4).T
        compiled(both, both)
        compiled(wide, x)
        assert torch.equal(both, x + x.flip(0)) and torch.equal(wide, x.flip(0))


class TestHow:
    def test_kernels_stay_checked(self, x):
        model = Around(make(lambda self, x: 2*x))
        tegula.swap(model, {"part": tegula.compile(DOUBLE, checked=True)}, (x,), gradients=False)
        program = model.part._tegula_swap.program
        assert pickle.loads(pickle.dumps(program))._digest == program._digest
        assert program_module._made[program._digest][1]._checked
        tegula.swap(Around(make(lambda self, x: 2*x)), {"part": tegula.compile(DOUBLE)}, (x,), gradients=False)
        assert not all(made[1]._checked for made in program_module._made.values())

    def test_a_part_with_another_name(self, tmp_path, x):
        path = tmp_path / "part.tgl"
        path.write_text(DOUBLE)
        inner = make(lambda self, x: 2*x)
        model = nn.ModuleDict({"inner": inner, "outer": Around(inner)})
        with pytest.raises(ValueError, match="'inner' lies in 'outer', which is swapped as a whole"):
            tegula.swap(model, {"outer": path, "inner": path}, lambda model: model["outer"](x), gradients=False)

    def test_two_kernels_for_one_gradient(self, tmp_path):
        path = tmp_path / "part.tgl"
        path.write_text(SCALED + "\n" + SCALED.split("kernel scaled")[0].replace("backward", "again"))
        with pytest.raises(ValueError, match="'backward' and 'again' both give 'grad_x'"):
            tegula.library(path, "tegula_tests::given_twice", kernel="scaled", backward=["backward", "again"])

    def test_tolerance_of_copies(self, swap_part, x):
        program = "kernel r(x: f32[M, N]) -> (y: f32[M]) { h: bf16[i, j] = x[i, j]\n y[i] = sum(h[i, j] for j) }"
        model, _ = swap_part(make(lambda self, x: x.sum(-1)), program, (x,), tolerance=1e9)
        tegula.swapped(copy.deepcopy(model)).check((x[:2],), gradients=False)
