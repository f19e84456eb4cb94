"""tegula-eval profile: modules by time, and those that became tasks, which run."""
import json

import pytest
import torch

from tegula_eval import cli
from tegula_eval.profiling import ranking, spans
from tegula_eval.rule.variants import build

MODEL = '''
import dataclasses
import torch
from torch import nn

@dataclasses.dataclass
class Shape:
    width: int = 32
    inner: int = 64

class Mlp(nn.Module):
    def __init__(self, shape: Shape, scale=0.5):
        super().__init__()
        self.up, self.down, self.scale = nn.Linear(shape.width, shape.inner), nn.Linear(shape.inner, shape.width), scale

    def forward(self, x, mask=None, pair=None, *, twice=False):
        x = self.down(torch.relu(self.up(x))) * (2 if twice else 1) * self.scale
        return torch.where(mask[:, None], x + pair[0] - pair[1], x)

class Around(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x, **more):
        return self.part(x, **more)

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList(Around(Mlp(Shape(width), scale=0.25)) for _ in range(3))
        self.norm = nn.BatchNorm1d(width).eval()

    def forward(self, x, ids):
        for layer in self.layers:
            x = layer(x, mask=ids > 3, pair=(x, x), twice=True)
        return self.norm(x)

def get_inputs():
    return [torch.randn(7, 32), torch.randint(2, 9, (7,))]

def get_init_inputs():
    return [32]
'''


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("profile")
    (folder / "net.py").write_text(MODEL)
    out = folder / "out"
    assert cli.main(["profile", str(folder / "net.py"), f"--out={out}", "--calls=3", "--least=0", "--dtype=bf16",
                     "--torch-compile=eager"]) == 0
    return json.loads((out / "profile.json").read_text()), out / "tasks"


def test_modules(profiled):
    told, _ = profiled
    rows = {one["module"]: one for one in told["modules"]}
    assert (rows["layers.*.part"]["class"], rows["layers.*.part"]["calls"], rows["layers.*.part"]["modules"]) == ("Mlp", 3, 3)
    shares = [one["share"] for one in told["modules"]]
    assert shares == sorted(shares, reverse=True) and 0 < shares[-1] <= shares[0] < 1
    assert rows["layers.*"]["share"] > rows["layers.*.part"]["share"] > rows["layers.*.part.up"]["share"]
    assert told["eager_s"] > 0 and told["compiled_s"] > 0
    assert "aten::addmm" in told["operators"] and "aten::addmm" in told["compiled_operators"]


def test_tasks_run_with_the_sizes_of_the_model(profiled):
    told, folder = profiled
    rows = {one["module"]: one for one in told["modules"]}
    [path] = folder.glob("*_layers_part.py")
    assert rows["layers.*.part"]["task"] == str(path)
    built = build(path.read_text())
    assert [tuple(one.shape) for one in built.inputs] == [(7, 32), (7,), (7, 32), (7, 32)]
    assert [one.dtype for one in built.inputs] == [torch.bfloat16, torch.bool, torch.bfloat16, torch.bfloat16]
    assert list(built.model.state_dict()) == ["up.weight", "up.bias", "down.weight", "down.bias"]
    assert built.model.up.weight.dtype == torch.bfloat16 and built.model.scale == 0.25 and built.model.training
    assert built.model(*built.inputs).shape == (7, 32)
    [norm] = folder.glob("*_norm.py")
    assert not build(norm.read_text()).model.training
    assert rows["layers.*"]["no_task"] == "its constructor takes a Mlp"


def test_amdahl():
    group = ranking.Group("a", "A", torch.nn.Identity(), spans.Call("a", (), {}), 1, 0.5, 1)
    assert group.speedup(2) == pytest.approx(4 / 3)


def test_a_module_that_is_called_in_two_ways():
    net = torch.nn.Sequential(torch.nn.Linear(4, 4))
    calls = [spans.Call(name, (torch.ones(rows, 4),), {}) for name, rows in (("", 2), ("0", 2), ("0", 3))]
    ranked = ranking.rank(spans.Times({0: 1.0, 1: 2.0, 2: 1.0}, {0: 1, 1: 1, 2: 1}, {}, calls), net)
    assert [(one.share, one.calls) for one in ranked] == [(0.5, 1), (0.25, 1)]


@pytest.mark.parametrize("text, message", [
    ("class Model: pass", "defines no get_inputs"), (MODEL.replace("randn(7, 32)", "randn(7, 31)"), "the model does not run")])
def test_wrong_models(tmp_path, capsys, text, message):
    (tmp_path / "net.py").write_text(text)
    assert cli.main(["profile", str(tmp_path / "net.py"), f"--out={tmp_path / 'out'}"]) == 2
    assert message in capsys.readouterr().err


def test_configuration(tmp_path, capsys):
    config = dict(model_type="llama", vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                  num_attention_heads=4, num_key_value_heads=2)
    (tmp_path / "llama.json").write_text(json.dumps(config))
    try:
        import transformers  # noqa: F401
    except ImportError:
        assert cli.main(["profile", str(tmp_path / "llama.json"), f"--out={tmp_path / 'out'}"]) == 2
        assert "the package transformers is needed" in capsys.readouterr().err
        return
    assert cli.main(["profile", str(tmp_path / "llama.json"), "--tokens=8", "--least=0", f"--out={tmp_path / 'out'}"]) == 0
    [path] = (tmp_path / "out" / "tasks").glob("*_model_layers_mlp.py")
    built = build(path.read_text())
    assert built.model(*built.inputs).shape == (1, 8, 32)
