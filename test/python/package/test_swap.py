"""Modules of a model that run as programs: what is refused, what falls back, what stays as it was."""
import copy
import io
import pickle

import pytest
import torch
from swap_models import MLP, Around, Mlp, Net, make
from torch import nn

import tegula

pytestmark = pytest.mark.filterwarnings("ignore::tegula.TegulaWarning")
DOUBLE = "kernel double(x: T[M, N]) -> (y: T[M, N]) { y[i, j] = 2 * x[i, j] }"
ADD = "kernel add(a: f32[M, N], b: f32[M, N] = 0) -> (y: f32[M, N]) { y[i, j] = a[i, j] + 3*b[i, j] }"


@pytest.fixture
def mlp(tmp_path):
    path = tmp_path / "mlp.tgl"
    path.write_text(MLP)
    return tegula.Replacement(path, kernel="mlp")


@pytest.fixture
def trained(mlp):
    return tegula.Replacement(mlp.source, kernel="mlp", backward="mlp_backward")


@pytest.fixture
def swap_part(tmp_path):
    """Swaps the part of a model that calls it as it is called."""

    def swap(part, program, *calls, **options):
        path = tmp_path / "part.tgl"
        path.write_text(program)
        model = Around(part)
        constants = options.pop("constants", {})
        options.setdefault("gradients", False)
        return model, tegula.swap(model, {"part": tegula.Replacement(path, constants=constants)}, list(calls), **options)

    return swap


def refusal(swap_part, part, program, *calls, **options):
    with pytest.raises(tegula.SwapError) as error:
        swap_part(part, program, *calls, **options)
    return error.value.refusals["part"]


def counts(swap):
    return {row.name: (row.calls, dict(row.fallbacks)) for row in swap.report()}


class TestServed:
    def test_layers(self, mlp, device):
        torch.manual_seed(0)
        net = Net().to(device)
        keys = list(net.state_dict())
        x = torch.randn(2, 5, 8, device=device)
        with torch.no_grad():
            want = net(x)
            swap = tegula.swap(net, {"layers.*.mlp": mlp}, [(x,), (x[:, :2],)])
            torch.testing.assert_close(net(x), want)
            net(x[:, :3])
        assert counts(swap) == {f"layers.{one}.mlp": (2, {}) for one in (0, 1)}
        assert list(net.state_dict()) == keys and isinstance(net.layers[0].mlp, Mlp)
        assert 0 < swap.report()[0].errors["program"] < 1e-6
        swap.restore()
        assert type(net.layers[0].mlp) is Mlp and "_tegula_swap" not in vars(net.layers[0].mlp)
        torch.testing.assert_close(net(x), want)

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_lower_precision(self, mlp, dtype):
        torch.manual_seed(0)
        net = Net().to(dtype)
        swap = tegula.swap(net, {"**.mlp": mlp}, (torch.randn(4, 8).to(dtype),), gradients=False)
        assert len(swap.modules) == 2

    def test_a_module_with_two_names(self, mlp):
        part = Mlp()
        net = nn.ModuleDict({"a": Around(part), "b": Around(part)})
        x = torch.randn(3, 8)
        swap = tegula.swap(net, {"b.part": mlp}, lambda model: model["a"](x), gradients=False)
        with torch.no_grad():
            torch.testing.assert_close(net["b"](x), net["a"](x))
        assert counts(swap) == {"a.part": (2, {})}

    def test_inference_mode_and_checkpoints(self, trained):
        net, x = Net(1), torch.randn(3, 8)
        with torch.inference_mode():
            swap = tegula.swap(net, {"layers.*.mlp": trained}, (torch.randn(3, 8),))
            net(torch.randn(3, 8))
        swap.check((x,))
        torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False).sum().backward()
        # The second forward ends early, inside of the program's operator.
        assert counts(swap)["layers.0.mlp"] == (2, {}) and net.layers[0].mlp.up.weight.grad is not None

    def test_a_type_that_forward_names(self, swap_part):
        program = "kernel low(x: f32[M, N]) -> (y: bf16[M, N]) { y[i, j] = 3 * x[i, j] }"
        swap_part(make(lambda self, x: (3 * x.bfloat16()).bfloat16()), program, (torch.randn(2, 3),))

    def test_weights_are_read_at_each_call(self, mlp):
        net, x = Net(), torch.randn(3, 8)
        swap = tegula.swap(net, {"layers.*.mlp": mlp}, (x,), gradients=False)
        other = Net()
        with torch.no_grad():
            net.load_state_dict(other.state_dict())
            torch.testing.assert_close(net(x), other(x))
            net.layers[0].mlp.up.weight.mul_(2)
            other.layers[0].mlp.up.weight.mul_(2)
            torch.testing.assert_close(net(x), other(x))
            net.layers[0].mlp.up.weight = other.layers[0].mlp.up.weight = nn.Parameter(torch.randn(12, 8))  # tied
            torch.testing.assert_close(net(x), other(x))
            net.load_state_dict(Net().state_dict(), assign=True)
            assert counts(swap)["layers.0.mlp"] == (3, {})
            net.double()(x.double())
        assert counts(swap)["layers.0.mlp"] == (3, {"dtype of weight": 1})

    def test_copies_and_pickles(self, mlp):
        net, x = Net(), torch.randn(3, 8)
        tegula.swap(net, {"layers.*.mlp": mlp}, (x,), gradients=False)
        saved = io.BytesIO()
        torch.save(net, saved)
        saved.seek(0)
        with torch.no_grad():
            want = net(x)
            others = [copy.deepcopy(net), pickle.loads(pickle.dumps(net)), torch.load(saved, weights_only=False)]
            for one in net.parameters():
                one.add_(0.125)
            for other in others:
                torch.testing.assert_close(other(x), want)  # its own weights
                assert counts(tegula.swapped(other))["layers.1.mlp"][1] == {}
                restored = tegula.swapped(other)
                restored.restore()
                assert type(other.layers[0].mlp) is Mlp and not restored.modules

    def test_hooks_of_the_module_are_called(self, mlp):
        net, x, seen = Net(1), torch.randn(3, 8), []
        part = net.layers[0].mlp
        part.register_forward_hook(lambda module, inputs, result: seen.append(result) or 2 * result)
        part.register_forward_pre_hook(lambda module, inputs: (3 * inputs[0],))
        with torch.no_grad():
            want = net(x)
            swap = tegula.swap(net, {"layers.*.mlp": mlp}, (x,))
            seen.clear()
            torch.testing.assert_close(net(x), want)
        assert len(seen) == 1 and counts(swap)["layers.0.mlp"] == (1, {})

    def test_keyword_arguments_none_and_tuples(self, swap_part):
        def forward(self, a, b=None, flag=True):
            return a + 3 * b if b is not None else a.clone(), None

        a, b = torch.randn(2, 3), torch.randn(2, 3)
        model, swap = swap_part(make(forward), ADD, (a,), dict(b=b, a=a), (a, b), dict(a=a, b=None))
        for call in (lambda: model(a, b), lambda: model(b=b, a=a), lambda: model(a=a, b=None), lambda: model(a)):
            got = call()
            assert isinstance(got, tuple) and got[1] is None
        torch.testing.assert_close(model(b=b, a=a)[0], a + 3 * b)
        assert counts(swap)["part"] == (5, {})
        model(a, b, flag=False)
        model(a, b=b)
        assert counts(swap)["part"] == (5, {"arguments": 2})

    def test_inputs_in_tuples_results_in_dicts(self, swap_part):
        program = """kernel rotate(x: f32[M, N], pair_0: f32[N], pair_1: f32[N]) -> (a: f32[M, N], b: f32[M, N]) {
          a[i, j] = x[i, j] * pair_0[j]
          b[i, j] = x[i, j] * pair_1[j]
        }"""

        def forward(self, x, pair):
            return {"a": x * pair[0], "rest": [x * pair[1]]}

        x, pair = torch.randn(2, 3), (torch.randn(3), torch.randn(3))
        model, swap = swap_part(make(forward), program, (x, pair))
        got = model(x, pair)
        torch.testing.assert_close(got["rest"][0], x * pair[1])
        model(x, list(pair))
        assert counts(swap)["part"] == (1, {"value of pair": 1})

    def test_not_contiguous(self, swap_part):
        model, swap = swap_part(make(lambda self, x: 2 * x), DOUBLE, (torch.randn(3, 3).T,))
        x = torch.randn(3, 6)[:, ::2]
        assert torch.equal(model(x), 2 * x)
        y = torch.randn(1, 3).expand(3, 3)
        assert torch.equal(model(y), 2 * y)
        assert counts(swap)["part"] == (2, {})

    def test_updates_its_input(self, swap_part):
        program = "kernel bump(c: inout f32[N], v: f32[N]) { c[i] = c[i] + v[i] }"
        c, v = torch.ones(4), torch.ones(4)
        model, swap = swap_part(make(lambda self, c, v: c.add_(v)), program, (c.clone(), v))
        version = c._version
        assert model(c, v) is c and torch.equal(c, 2 * v) and c._version > version
        wide = torch.ones(8)
        assert torch.equal(model(wide[::2], v), 2 * v) and torch.equal(wide[1::2], v)
        model(v, v)
        assert counts(swap)["part"] == (1, {"layout of c": 1, "c and v share memory": 1})

    def test_constants_and_scalars(self, swap_part):
        program = """kernel affine(x: f32[M, N], s: f32, eps: float = 1e-3, shift: float = 0.0) -> (y: f32[M, N]) {
          y[i, j] = s * x[i, j] + eps + shift
        }"""

        def forward(self, x, s):
            return s * x + self.eps + 5

        part, x = make(forward, eps=0.5), torch.randn(2, 3)
        model, swap = swap_part(part, program, (x, 1.0), (x, 3.0), constants={"shift": 5.0})
        torch.testing.assert_close(model(x, 2.0), 2 * x + 5.5)
        torch.testing.assert_close(model(x, 4.0), 4 * x + 5.5)
        part.eps = 0.75
        torch.testing.assert_close(model(x, 2.0), 2 * x + 5.75)
        assert counts(swap)["part"] == (1, {"value of s": 1, "value of eps": 1})

    def test_further_calls(self, swap_part):
        def forward(self, x):
            return 2 * x if x.is_floating_point() else 3 * x

        model, swap = swap_part(make(forward), DOUBLE, (torch.randn(2, 3),))
        with pytest.raises(tegula.SwapError, match="wrong integer"):
            swap.check((torch.ones(2, 3, dtype=torch.int64),))
        swap.check((torch.randn(2, 3, dtype=torch.float64),))
        model(torch.randn(2, 3, dtype=torch.float64))
        assert counts(swap)["part"] == (1, {})


class TestRefused:
    def test_wrong_program(self, swap_part):
        assert "not as accurate" in refusal(swap_part, make(lambda self, x: 2.001 * x), DOUBLE, (torch.randn(2, 3),))

    def test_less_accurate(self, swap_part):
        program = "kernel r(x: f32[M, N]) -> (y: f32[M]) { h: bf16[i, j] = x[i, j]\n y[i] = sum(h[i, j] for j) }"
        reason = refusal(swap_part, make(lambda self, x: x.sum(-1)), program, (torch.randn(4, 64),))
        assert "not as accurate as the module" in reason
        model, swap = swap_part(make(lambda self, x: x.sum(-1)), program, (torch.randn(4, 64),), tolerance=1e9)
        assert swap.report()[0].errors["program"] > 1e-4

    def test_wrong_at_one_size(self, swap_part):
        def forward(self, x):
            return 2 * x if x.shape[0] < 4 else 3 * x

        x = torch.randn(8, 3)
        assert "not as accurate" in refusal(swap_part, make(forward), DOUBLE, (x[:2],), (x,))
        model, swap = swap_part(make(forward), DOUBLE, (x[:2],), (x[:3],))
        assert torch.equal(model(x), 3 * x) and counts(swap)["part"] == (0, {"shape of x": 1})

    def test_dtype(self, swap_part):
        program = "kernel r(x: T[M, N]) -> (y: f32[M, N]) { y[i, j] = x[i, j] }"
        assert "is float32, the module's is bfloat16" in refusal(
            swap_part, make(lambda self, x: x.clone()), program, (torch.ones(2, 3).bfloat16(),))

    def test_batch_norm_in_training(self, swap_part):
        program = """kernel bn(input: f32[N, C], weight: f32[C], bias: f32[C]) -> (y: f32[N, C]) {
          y = batch_norm1d(input, weight, bias)
        }"""
        x = torch.randn(6, 3)
        assert "changes 'running_mean'" in refusal(swap_part, nn.BatchNorm1d(3), program, (x,))
        part = nn.BatchNorm1d(3, track_running_stats=False).requires_grad_(False)
        model, swap = swap_part(part, program, (x,))
        model(x)
        part.eval()
        model(x)
        assert counts(swap)["part"] == (1, {"training mode": 1})

    def test_dropout(self, swap_part):
        part = nn.Dropout(0.5)
        program = "kernel same(input: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = input[i, j] + 0.0 }"
        x = torch.randn(2, 3)
        assert "random numbers" in refusal(swap_part, part, program, (x,))
        model, swap = swap_part(nn.Sequential(nn.Dropout(0.5), nn.ReLU()).eval(),
                                program.replace("input[i, j] + 0.0", "relu(input[i, j])"), (x,))
        model.part[0].train()
        model(x)
        assert counts(swap)["part"] == (0, {"training mode": 1})

    def test_attributes_that_forward_sets(self, swap_part):
        def remembers(self, x):
            self.last = x
            return 2 * x

        def counts_up(self, x):
            self.seen.append(1)
            return 2 * x

        x = torch.randn(2, 3)
        assert "sets the attribute 'last'" in refusal(swap_part, make(remembers, last=None), DOUBLE, (x,))
        assert "sets the attribute 'seen'" in refusal(swap_part, make(counts_up, seen=[]), DOUBLE, (x,))
        part = make(lambda self, x: 2 * x)
        part.scale = torch.tensor([2])
        assert "register it as a buffer" in refusal(swap_part, part, DOUBLE, (x,))

    def test_shared_memory(self, swap_part):
        copies = "kernel same(x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = x[i, j] }"
        twice = "kernel same(x: f32[M, N]) -> (y: f32[M, N], z: f32[M, N]) { y[i, j] = 2*x[i, j]\n z[i, j] = 2*x[i, j] }"
        weight = "kernel same(w: f32[M, N], x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = w[i, j] + 0*x[i, j] }"
        x = torch.randn(2, 3)
        assert "shares memory with the input 'x'" in refusal(swap_part, make(lambda self, x: x), copies, (x,))
        assert "shares memory with the input 'x'" in refusal(swap_part, make(lambda self, x: x[:]), copies, (x,))
        assert "shares memory with 'w'" in refusal(swap_part, make(lambda self, x: self.w, w=x.clone()), weight, (x,))

        def both(self, x):
            y = 2 * x
            return y, y

        assert "shares memory with result 0" in refusal(swap_part, make(both), twice, (x,))

    def test_in_place(self, swap_part):
        def forward(self, x):
            return x.add_(1).clone()

        more = "kernel more(x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = x[i, j] + 1 }"
        x = torch.randn(2, 3)
        assert "changes its input 'x' in place" in refusal(swap_part, make(forward), more, (x,))
        updates = "kernel more(x: inout f32[M, N]) -> (y: f32[M, N]) { y[i, j] = x[i, j] + 1\n x[i, j] = x[i, j] + 1 }"
        assert "which forward leaves as it is" in refusal(swap_part, make(lambda self, x: x + 1), updates, (x,))

    def test_binding(self, swap_part):
        x = torch.randn(2, 3)
        assert "did you mean weight?" in refusal(
            swap_part, nn.Linear(3, 4), "kernel l(x: f32[M, K], weigth: f32[N, K]) -> (y: f32[M, N]) "
            "{ y[i, j] = sum(x[i, k]*weigth[j, k] for k) }", (x,))
        assert "no parameter for b" in refusal(swap_part, make(lambda self, a, b: 2 * a), DOUBLE, (x, x))
        assert "is a Size" in refusal(swap_part, make(lambda self, x, size: 2 * x), DOUBLE, (x, x.shape))
        assert "returns Size" in refusal(swap_part, make(lambda self, x: (2 * x).shape), DOUBLE, (x,))

    def test_autocast_and_inner_hooks(self, swap_part):
        x = torch.randn(2, 3)

        def cast(model):
            with torch.autocast("cpu", torch.bfloat16):
                model(x)

        assert "autocast" in refusal(swap_part, make(lambda self, x: 2 * x), DOUBLE, cast)
        part = nn.Sequential(nn.ReLU())
        part[0].register_forward_hook(lambda *_: None)
        relu = "kernel r(x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = relu(x[i, j]) }"
        assert "'0' in it has hooks" in refusal(swap_part, part, relu, (x,))

    def test_a_model_that_is_refused_stays_as_it_was(self, mlp, tmp_path):
        net, x = Net(), torch.randn(3, 8)
        wrong = tmp_path / "wrong.tgl"
        wrong.write_text(MLP.replace("silu(sum(x", "relu(sum(x"))
        both = {"layers.0.mlp": mlp, "layers.1.mlp": tegula.Replacement(wrong, kernel="mlp")}
        with pytest.raises(tegula.SwapError) as error:
            tegula.swap(net, both, (x,), gradients=False)
        assert list(error.value.refusals) == ["layers.1.mlp"]
        assert all(type(one.mlp) is Mlp for one in net.layers)
        swap = tegula.swap(net, both, (x,), gradients=False, strict=False)
        assert list(swap.modules) == ["layers.0.mlp"]
        assert "layers.1.mlp: not swapped: 'y' is not as accurate" in str(swap.report())

    def test_an_exception_of_the_model_leaves_it_as_it_was(self, mlp):
        net = Net()
        with pytest.raises(RuntimeError):
            tegula.swap(net, {"layers.*.mlp": mlp}, (torch.randn(3, 7),))
        assert type(net.layers[0].mlp) is Mlp

    @pytest.mark.parametrize("patterns, message", [
        (["layers.*.mpl"], "nearest is"), (["mlp"], "no module is named"), (["layers.0.mlp", "layers.*.mlp"], "two patterns"),
        (["layers.0", "layers.0.mlp"], "swapped as a whole")])
    def test_patterns(self, mlp, patterns, message):
        with pytest.raises(ValueError, match=message):
            tegula.swap(Net(), dict.fromkeys(patterns, mlp), (torch.randn(3, 8),))

    def test_never_called(self, mlp):
        with pytest.raises(tegula.SwapError, match="not called"):
            tegula.swap(Net(), {"layers.*.mlp": mlp}, lambda model: model.layers[0](torch.randn(3, 8)), gradients=False)


class TestFallsBack:
    @pytest.fixture
    def net(self, mlp):
        self.x = torch.randn(3, 8)
        net = Net(1)
        self.swap = tegula.swap(net, {"layers.*.mlp": mlp}, (self.x,), gradients=False)
        return net

    def reasons(self, net, x=None):
        with torch.no_grad():
            net(self.x if x is None else x)
        return counts(self.swap)["layers.0.mlp"]

    def test_gradients(self, net):
        net(self.x).sum().backward()
        assert net.layers[0].mlp.up.weight.grad is not None
        net.requires_grad_(False)
        net(self.x)
        net(self.x.clone().requires_grad_()).sum().backward()
        assert counts(self.swap)["layers.0.mlp"] == (1, {"gradient of gate.weight": 1, "gradient of x": 1})

    def test_dtype_rank_shape(self, net):
        self.reasons(net, self.x[0])
        self.reasons(net, self.x[:0])
        self.reasons(net, self.x[:1])
        assert self.reasons(net, torch.randn(9, 8)) == (0, {"rank of x": 1, "shape of x": 3})

    def test_autocast(self, net):
        with torch.autocast("cpu", torch.bfloat16):
            assert self.reasons(net) == (0, {"autocast": 1})

    def test_hooks_on_parts(self, net):
        seen = []
        handle = net.layers[0].mlp.up.register_forward_hook(lambda *_: seen.append(1))
        assert self.reasons(net) == (0, {"hooks": 1}) and seen
        handle.remove()
        with torch.nn.modules.module.register_module_forward_hook(lambda *_: seen.append(2)):
            assert self.reasons(net) == (0, {"hooks": 1, "global hooks": 1})

    def test_parts_that_were_replaced(self, net):
        class Adapted(nn.Module):
            def __init__(self, base):
                super().__init__()
                self.base, self.weight = base, base.weight

            def forward(self, x):
                return 2 * self.base(x)

        net.layers[0].mlp.up = Adapted(net.layers[0].mlp.up)
        assert self.reasons(net) == (0, {"structure": 1})
        del net.layers[0].mlp.up.base
        net.layers[0].mlp.up = nn.Linear(8, 12, bias=False)
        assert self.reasons(net) == (1, {"structure": 1})
        nn.utils.parametrizations.weight_norm(net.layers[0].mlp.up)
        assert self.reasons(net) == (1, {"structure": 2})
        net.layers[0].mlp.extra = nn.ReLU()
        assert self.reasons(net) == (1, {"structure": 3})

    def test_subclasses_and_transforms(self, net):
        class Own(torch.Tensor):
            pass

        assert self.reasons(net, self.x.as_subclass(Own))[1] == {"type of x": 1}
        torch.func.vmap(net)(self.x[None])
        torch.func.jvp(net, (self.x,), (self.x,))
        assert counts(self.swap)["layers.0.mlp"] == (0, {"type of x": 1, "torch.func": 2})

    def test_guards_of_the_program(self, swap_part):
        program = """kernel pairs(x: f32[N]) -> (y: f32[P]) where P = N/2 { y[i] = x[2*i] + x[2*i + 1] }"""

        def forward(self, x):
            return x[:x.shape[0] // 2 * 2].view(-1, 2).sum(-1)

        model, swap = swap_part(make(forward), program, (torch.randn(4),), (torch.randn(8),))
        assert model(torch.ones(5)).shape == (2,) and model(torch.ones(6)).shape == (3,)
        calls, fallbacks = counts(swap)["part"]
        assert calls == 1 and list(fallbacks.values()) == [1] and "N" in list(fallbacks)[0]


    def test_sizes_that_were_equal(self, swap_part):
        program = "kernel outer(a: f32[N], b: f32[N]) -> (y: f32[N, N]) { y[i, j] = a[i] * b[j] }"
        vectors = [torch.randn(size) for size in (2, 5)]
        model, swap = swap_part(make(lambda self, a, b: torch.outer(a, b)), program, *((one, one) for one in vectors))
        assert model(*vectors).shape == (2, 5)
        assert counts(swap)["part"] == (0, {"shapes together": 1})


class TestTraining:
    def test_needs_a_backward_kernel(self, mlp):
        with pytest.raises(tegula.SwapError, match="'gate.weight' is needed, and the program has no backward kernel"):
            tegula.swap(Net(), {"layers.*.mlp": mlp}, (torch.randn(3, 8),))

    def test_gradients(self, trained):
        torch.manual_seed(0)
        net, x = Net(), torch.randn(2, 3, 8)
        other = copy.deepcopy(net)
        swap = tegula.swap(net, {"layers.*.mlp": trained}, (x,))
        for _ in range(2):
            for one in (net, other):
                one.zero_grad()
                one(x).square().sum().backward()
                torch.optim.SGD(one.parameters(), 0.01).step()
        for mine, theirs in zip(net.parameters(), other.parameters()):
            torch.testing.assert_close(mine.grad, theirs.grad)
            torch.testing.assert_close(mine, theirs)
        assert counts(swap)["layers.0.mlp"] == (2, {})
        with torch.inference_mode():
            torch.testing.assert_close(net(x), other(x))

    def test_wrong_gradient(self, trained):
        trained.source.write_text(MLP.replace("g[..., h] * a[..., h] * s[..., h]\n", "g[..., h] * a[..., h]\n"))
        with pytest.raises(tegula.SwapError, match="'grad_x' is not as accurate"):
            tegula.swap(Net(1), {"layers.*.mlp": trained}, (torch.randn(3, 8, requires_grad=True),))

    def test_missing_gradient(self, trained):
        trained.source.write_text(MLP.replace("  grad_up_weight[h, d] = sum(gb[..., h] * x[..., d] for ...)\n", "").replace(
            "grad_up_weight: T[H, D], ", ""))
        with pytest.raises(tegula.SwapError, match="gradient of 'up.weight' is needed"):
            tegula.swap(Net(1), {"layers.*.mlp": trained}, (torch.randn(3, 8),))
        net = Net(1)
        net.layers[0].mlp.up.weight.requires_grad_(False)
        swap = tegula.swap(net, {"layers.*.mlp": trained}, (torch.randn(3, 8),))
        net.layers[0].mlp.up.weight.requires_grad_(True)
        net(torch.randn(3, 8)).sum().backward()
        assert net.layers[0].mlp.up.weight.grad is not None
        assert counts(swap)["layers.0.mlp"] == (0, {"gradient of up.weight": 1})


class TestCompile:
    @pytest.fixture(autouse=True)
    def nothing_compiled(self):
        torch.compiler.reset()

    @pytest.mark.parametrize("backend, grad", [("eager", False), ("aot_eager", False), ("aot_eager", True)])
    def test_whole_graph(self, trained, backend, grad):
        net, x = Net(), torch.randn(2, 3, 8)
        want = net(x)
        want.sum().backward()
        gradients = [one.grad.clone() for one in net.parameters()]
        tegula.swap(net, {"layers.*.mlp": trained}, (x,))
        compiled = torch.compile(net, backend=backend, fullgraph=True)
        net.zero_grad()
        with torch.set_grad_enabled(grad):
            got = compiled(x)
        torch.testing.assert_close(got, want)
        if grad:
            got.sum().backward()
            for one, theirs in zip(net.parameters(), gradients):
                torch.testing.assert_close(one.grad, theirs)

    def test_it_is_in_the_graph_and_falls_back_by_shape(self, mlp):
        graphs = []

        def backend(graph, inputs):
            graphs.append([str(node.target) for node in graph.graph.nodes if node.op == "call_function"])
            return graph

        net, x = Net(1), torch.randn(4, 3, 8)
        tegula.swap(net, {"layers.*.mlp": mlp}, [(x,), (x[:2],)], gradients=False)
        compiled = torch.compile(net, backend=backend, fullgraph=True)
        with torch.no_grad():
            for count in (4, 3, 2, 1):
                torch.testing.assert_close(compiled(x[:count]), net(x[:count]))
            torch.testing.assert_close(compiled(torch.ones(9, 3, 8)), net(torch.ones(9, 3, 8)))
        served = [any("tegula_swap" in one for one in graph) for graph in graphs]
        assert served == [True, True, False, False]  # 4 rows, any number up to 4, 1 row, more than 4

    def test_conditions_of_the_program(self, swap_part):
        program = "kernel pairs(x: f32[N]) -> (y: f32[P]) where P = N/2 { y[i] = x[2*i] + x[2*i + 1] }"

        def forward(self, x):
            return x[:x.shape[0] // 2 * 2].view(-1, 2).sum(-1)

        model, _ = swap_part(make(forward), program, (torch.randn(4),), (torch.randn(8),))
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        for count in (4, 5, 6, 7, 8):
            assert compiled(torch.ones(count)).shape == (count // 2,)

    def test_export(self, mlp):
        net, x = Net(1).requires_grad_(False), torch.randn(4, 8)
        tegula.swap(net, {"layers.*.mlp": mlp}, (x,))
        exported = torch.export.export(net, (x,))
        assert "tegula_swap" in str(exported.graph)
        torch.testing.assert_close(exported.module()(x), net(x))

    @pytest.mark.gpu
    def test_cuda_graph(self, mlp):
        net, x = Net().cuda(), torch.randn(4, 8, device="cuda")
        swap = tegula.swap(net, {"layers.*.mlp": mlp}, (x,), gradients=False)
        with torch.no_grad():
            net(x)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = net(x)
            x.copy_(torch.randn(4, 8, device="cuda"))
            net.layers[0].mlp.up.weight.mul_(2)
            graph.replay()
            torch.cuda.synchronize()
            got = y.clone()
            swap.restore()
            torch.testing.assert_close(got, net(x))
