"""No false alarm: what bench/kernelbench/honest.py makes of tasks, which are our own here, is judged right."""
import importlib.util
import itertools

import corpus
import pytest
from conftest import TREE, module

from tegula_eval.confine import child
from tegula_eval.judge import candidates
from tegula_eval.records.outcomes import outcome_record
from tegula_eval.rule import variants

spec = importlib.util.spec_from_file_location("honest", TREE / "bench" / "kernelbench" / "honest.py")
honest = importlib.util.module_from_spec(spec)
spec.loader.exec_module(honest)


def task(members: str, forward: str, inputs: str) -> str:
    made = "\n        ".join(["super().__init__()", *members.strip().splitlines()])
    body = "\n        ".join(forward.strip().splitlines())
    return f'''
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        {made}

    def forward(self, x):
        {body}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
'''


TASKS = {
    "image": task("self.conv = nn.Conv2d(4, 6, 3, padding=1)\nself.norm = nn.BatchNorm2d(6)\n"
                  "self.last = nn.Conv2d(6, 5, 1)",
                  "x = self.conv(x)\nx = torch.relu(x)\nx = self.norm(x)\nx = x * 2.0\n"
                  "return nn.functional.max_pool2d(self.last(x), 2)", "torch.rand(6, 4, 12, 10)"),
    "block": task("self.up = nn.Linear(24, 40)\nself.norm = nn.LayerNorm(24)\nself.down = nn.Linear(40, 24)",
                  "y = nn.functional.gelu(self.up(self.norm(x)))\nreturn torch.softmax(x + self.down(y), -1)",
                  "torch.rand(9, 7, 24)"),
    "recurrent": task("self.rnn = nn.GRU(8, 12, 2, batch_first=True)",
                      "y, h = self.rnn(x)\nreturn y.mean(1), h", "torch.randn(4, 6, 8)"),
    "scan": module("return torch.cumsum(torch.sigmoid(x), 1).logsumexp(1)", "torch.randn(16, 40)"),
    "groups": task("self.conv = nn.ConvTranspose3d(4, 8, 3, groups=2)\nself.norm = nn.GroupNorm(4, 8)",
                   "return nn.functional.leaky_relu(self.norm(self.conv(x)), 0.1)", "torch.rand(3, 4, 5, 4, 6)"),
}
PAIRS = list(zip(honest.FORMS, itertools.cycle(TASKS)))  # every form, and every task in two of them or more


@pytest.fixture(scope="module", autouse=True)
def starter():
    yield candidates.starter()
    candidates.starter().stop()
    candidates.starter.cache_clear()


@pytest.mark.parametrize("form, name", PAIRS)
def test_is_right(form, name, tmp_path_factory):
    text = honest.FORMS[form](TASKS[name])
    assert honest.is_honest(TASKS[name], text)
    request = {"task": TASKS[name], "program": text, "secret": "s", "seeds": 2,
               "cache": str(tmp_path_factory.getbasetemp())}
    variants.warm()  # before the fork, as a worker does: seconds, which every child would spend anew
    record = outcome_record(child.run(candidates.evaluate, request, 120, 8 << 30, None))
    candidates.starter().end()
    assert record["outcome"] == "right" and not record["flags"], record


@pytest.mark.parametrize("variant", corpus.honest(), ids=lambda variant: variant.path.stem)
def test_variant_is_right(variant):
    """Processes, compilers, other libraries, other orders of sums: unusual, and right."""
    record = corpus.check(variant)
    assert not set(record["flags"]) - {"excessive"}, record


@pytest.mark.parametrize("form, name", [("chunked", "image"), ("chunked", "recurrent")])
def test_a_form_that_changes_what_is_computed_is_not_honest(form, name):
    assert not honest.is_honest(TASKS[name], honest.FORMS[form](TASKS[name]))


@pytest.mark.parametrize("text", ["return super().forward(x) * (1 + 1e-6)", "return super().forward(x).float()",
                                  "return super().forward(x.bfloat16().to(x))", "raise ValueError"])
def test_a_text_that_cheats_is_not_honest(text):
    cheat = f"{TASKS['block']}\nclass ModelNew(Model):\n    def forward(self, x):\n        {text}\n"
    assert not honest.is_honest(TASKS["block"], cheat)


def test_the_command(root, tmp_path, capsys, monkeypatch):
    command = ["honest.py", f"--root={root}", f"--out={tmp_path / 'out'}", "--forms=renamed,chunked", "--each=1",
               "--bytes=65536", "--flops=1e6"]
    monkeypatch.setattr("sys.argv", command)
    assert honest.main() == 0
    told = capsys.readouterr().out.splitlines()
    assert told[-1].startswith("2 candidates for 2 tasks: 2 right, 0 not judged") and len(told) == 3
    place = tmp_path / "out" / "candidates" / "renamed" / "level1" / "3_Scale.py"
    place.write_text(place.read_text() + "\nclass ModelNew(ModelNew):\n    def forward(self, x):\n"
                                         "        return super().forward(x) * 1.01\n")
    assert honest.main() == 1
    told = capsys.readouterr().out.splitlines()
    assert "renamed level1/3_Scale: wrong (value)" in told[-2] and told[-1].endswith("1 false alarms")
