"""tegula-eval audit: each flag on a task that deserves it, and none on one that does not."""
import json

import pytest
from conftest import SCALE, module

from tegula_eval import cli
from tegula_eval.commands import audit
from tegula_eval.judge.audit import audit as audit_task
from tegula_eval.records import audits, summary
from tegula_eval.rule import tasks

GOOD = SCALE.replace("1024 * 4", "32").replace("features = 512", "features = 16").replace("0.25", "25.0")


def flags(text):
    record = audit_task({"task": text, "secret": "s"}, lambda name: None)
    assert record["outcome"] == audits.AUDITED, record
    return record["flags"]


def test_a_task_that_says_something_has_no_flag():
    assert flags(GOOD) == []
    assert flags(module("return 3*x")) == []


@pytest.mark.parametrize("forward, found", [
    ("return 1e-6*x", "zero"),
    ("return x.sign() + 7", "one-number"),
    ("return 5 + 1e-4*x", "one-number"),
    ("return torch.clamp(x, 2, 3)", "constant"),
    ("return x*(1 + 1e-5)", "copy"),
    ("return torch.relu(x)", "copy"),
    ("return x.round()", "bf16"),
    ("return torch.zeros_like(x) + x.sum()*1e-4", "tf32"),
    ("return x + torch.rand_like(x)", "random"),
    ("y = x + 1e6\n        return (y - y.mean()).mean(1)", "unstable"),
    ("y = x + 1e6\n        return (y - y.mean()).mean(1)", "amplifies"),
    ("return (x*1000).sin().sum(1)*1000 - 3", "amplifies"),  # accurate as a whole, not where elements are near zero
])
def test_flags(forward, found):
    assert found in flags(module(forward))


def test_flags_that_are_not_there():
    assert "copy" not in flags(module("return x.T", sizes="rows = 8"))
    assert "one-number" not in flags(module("return x + 7"))
    assert "constant" not in flags(module("return x*x"))
    assert not {"tf32", "f16", "bf16", "amplifies"} & set(flags(module("return 3*x")))


def test_how_far_roundings_reach():
    record = audit_task({"task": module("y = x + 1e6\n        return y - y.mean()"), "secret": "s"}, lambda name: None)
    told = record["cases"][-1]["roundings"]
    assert told["elements"] == 128 and told["beyond"] > 100 and told["moved_beyond"] > 100 and told["explained"]
    assert told["error"] > 1e-3 and told["moved_error"] > 1e-3
    page = audit.as_markdown([{**record, "task": "level1/7_near", "level": 1}], [])
    assert "| `amplifies` | 1 | 7 |" in page and "| level1/7_near | own | 128 |" in page


def test_command_and_summary(root, tmp_path, capsys):
    (root / "level1" / "3_Scale.py").write_text(GOOD)
    (root / "level1" / "4_nothing.py").write_text(module("return 1e-6*x"))
    (root / "level1" / "5_broken.py").write_text("def")
    out = tmp_path / "audit"
    command = ["audit", f"--root={root}", f"--out={out}", "--plain", "--bytes=64K", "--flops=1e6"]
    assert cli.main(command) == 1
    told = capsys.readouterr().out
    assert "level1/5_broken: task (broken)" in told and "4 tasks, 2 without any of these" in told
    page = (out / "audit.md").read_text()
    assert "| `zero` | 1 | 4 |" in page and "| `copy` | 1" not in page and "## Not audited" in page
    assert cli.main(command) == 1 and len((out / "results.jsonl").read_text().splitlines()) == 4  # nothing again
    found = audits.read_flags(out)
    assert "zero" in found["level1/4_nothing"] and found["level1/3_Scale"] == []
    records = [{"task": f"level1/{name}", "level": 1, "outcome": "right", "reason": "", "flags": []}
               for name in ("3_Scale", "4_nothing")]
    counted = summary.summarize(audits.add_flags(records, found))
    assert counted["unflagged"]["right"] == 1 and counted["flagged"]["zero"]["right"] == 1
    assert "1 of 1 right on tasks without a flag" in summary.as_text(counted)


def test_what_is_no_audit(tmp_path):
    (tmp_path / "results.jsonl").write_text(json.dumps([1]))
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(tasks.TaskError):
            audits.read_flags(path)


def test_a_flag_that_goes_by_the_draw():
    """A sum of which a few results are near zero: whether one of them is inaccurate is chance."""
    text = module("return (x - 0.5).sum(1)*1000", "torch.rand(rows, 256)", "rows = 2048")
    found = [flag in audit_task({"task": text, "secret": secret}, lambda name: None)["flags"]
             for secret in "abcdef" for flag in ("inaccurate", "amplifies")]
    assert sum(found) >= 10, found
