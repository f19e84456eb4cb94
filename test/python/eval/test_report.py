"""The page of a run: whole, escaped, with every task; and what two runs differ in."""
import html.parser
import json

import pytest

from tegula_eval import cli
from tegula_eval.commands import exit_codes
from tegula_eval.records import report, summary


def record(task, outcome="right", program_s=None, asked=None, text="kernel k() {}", **more):
    timing = program_s and {"program_s": program_s, "eager_s": 2e-3, "eager_ratio": 2e-3 / program_s, "roofline_s": 1e-4,
                            "turns": 5}
    return {"key": f"{task}{asked}", "task": task, "level": int(task[5]), "program": "", "outcome": outcome,
            "reason": "" if outcome == "right" else "value", "message": "", "flags": [], "cases": [], "timing": timing,
            "seconds": 1.0, **({"asked": asked, "text": text} if asked else {"request": {"program": text}}), **more}


def written(folder, records, rest=""):
    folder.mkdir()
    (folder / "results.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records) + rest)
    return folder


class Page(html.parser.HTMLParser):
    """Its text, and whether what is opened is closed."""
    VOID = {"meta"}

    def __init__(self, path):
        super().__init__()
        self.open, self.text, self.tags = [], "", []
        self.feed(path.read_text())
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        assert not any(name in ("src", "href") for name, _ in attributes)  # nothing comes from elsewhere
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


WRONG = {"index": [1, 2], "expected": 1.5, "got": "nan", "pytorch": 1.5}


def test_a_run(tmp_path):
    run = written(tmp_path / "run <1>", [
        record("level1/2_b", program_s=1e-3), record("level1/10_a", "wrong", cases=[{"wrong": [WRONG], "pattern": "all rows"}],
                                                   text="<script>alert(1)</script> && '\"'"),
        record("level2/1_c", "refused", diagnostics=[{"severity": "error", "code": "E0301", "message": "a <b>",
                                                      "span": {"line": 3, "column": 4}}]),
        record("level1/2_b", program_s=5e-4)], rest='{"key": "half')
    assert cli.main(["report", str(run)]) == 0
    page = Page(run / "report.html")
    assert page.tags.count("script") == 0 and "<script>alert(1)</script> && '\"'" in page.text
    assert page.tags.count("svg") == 2 and page.tags.count("details") == 3
    assert page.text.index("level1/2_b: right") < page.text.index("level1/10_a: wrong") < page.text.index("level2/1_c")
    for part in ("4.00 times as fast", "all rows", "nan", "error E0301 at 3:4: a <b>", "33.3 %", "20.0 %"):
        assert part in page.text, part


def test_turns_and_pass_at(tmp_path):
    records = [record(f"level1/{task}_t", "right" if task < right and turn else "wrong", text=f"program {task} {turn}",
                      asked={"sample": 0, "turn": turn, "message": f"message {turn}", "tokens": {"prompt": 10**6, "completion": 10**5}})
               for right in (3,) for task in range(4) for turn in range(2)]
    run = written(tmp_path / "run", records)
    assert cli.main(["report", str(run), f"--out={tmp_path / 'page.html'}"]) == 0
    page = Page(tmp_path / "page.html")
    assert all(f"program {task} {turn}" in page.text for task in range(4) for turn in range(2))
    assert "message 1" in page.text and "message 0" not in page.text and "pass@k: 1: 75.0 %" in page.text
    told = summary.summarize(records, 1, (2.0, 10.0))["model"]
    assert told["cost"] == pytest.approx(8 * (2.0 + 1.0))
    low, high = told["pass_at_interval"]["1"]
    assert low == pytest.approx(0.3006, abs=1e-3) and high == pytest.approx(0.9544, abs=1e-3)


@pytest.mark.parametrize("share, count", [(0.0, 10), (1.0, 10), (0.5, 1)])
def test_interval_holds_the_share(share, count):
    low, high = summary.interval(share, count)
    assert 0 <= low <= share <= high <= 1 and high - low > 0.1


def test_two_runs(tmp_path):
    here = written(tmp_path / "here", [record("level1/1_a", program_s=1e-3), record("level1/2_b", program_s=1e-3),
                                       record("level1/3_c"), record("level1/4_d", "wrong"), record("level1/5_e")])
    there = written(tmp_path / "there", [record("level1/1_a", program_s=2e-3), record("level1/2_b", program_s=1.01e-3),
                                         record("level1/3_c", "wrong"), record("level1/4_d", "wrong")])
    assert cli.main(["report", str(here), f"--against={there}"]) == 0
    text = Page(here / "report.html").text
    assert "4 programs in both: 3 right here, 2 there; 2 with one outcome" in text and "Only here: 1, only there: 0" in text
    table = text[text.index("time here / there"):text.index("Tasks")]
    assert "level1/1_a" in table and "0.50" in table and "level1/3_c" in table and "wrong (value)" in table
    assert "level1/2_b" not in table and "level1/4_d" not in table


@pytest.mark.parametrize("damage", [None, "", "garbage\n", "[]\n", "{}\n"])
def test_no_run(tmp_path, damage, capsys):
    folder = tmp_path / "run" if damage is None else written(tmp_path / "run", [], damage)
    assert cli.main(["report", str(folder)]) == exit_codes.WRONG_CALL
    assert "run" in capsys.readouterr().err
    with pytest.raises(report.TaskError):
        report.read(folder)
