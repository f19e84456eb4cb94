"""The examples of `tegula prompt` are right, judged as any program is."""
import json
from pathlib import Path

from tegula_eval import cli

EXAMPLES = Path(__file__).resolve().parents[3] / "dsl" / "prompt" / "examples"


def test_examples(tmp_path):
    code = cli.main(["kernelbench", f"--root={EXAMPLES}", f"--programs={EXAMPLES}", f"--out={tmp_path / 'run'}",
                     "--jobs=2", "--plain"])
    records = [json.loads(line) for line in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
    assert {one["task"]: one["outcome"] for one in records if one["outcome"] != "right"} == {}
    assert code == 0 and len(records) == len(list(EXAMPLES.glob("*.tgl"))) > 10
