"""The examples of docs/python.md run as they stand there, one after another; so does that of README.md."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "python.md"


@pytest.mark.filterwarnings("ignore::tegula.TegulaWarning")
def test_examples(tmp_path, monkeypatch):
    text = PAGE.read_text()
    monkeypatch.chdir(tmp_path)
    files = re.findall(r"^`(\w+\.tgl)`:\n\n```\n(.*?)^```$", text, re.M | re.S)
    assert files
    for name, content in files:
        (tmp_path / name).write_text(content)
    blocks = [(text.count("\n", 0, found.start(1)), found.group(1))
              for found in re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S)]
    assert len(blocks) >= 5
    names = {}
    for line, block in blocks:
        exec(compile("\n" * line + block, str(PAGE), "exec"), names)


def test_readme():
    text = (ROOT / "README.md").read_text()
    [found] = re.finditer(r"^```python\n(import tegula.*?)^```$", text, re.M | re.S)
    exec(compile("\n" * text.count("\n", 0, found.start(1)) + found.group(1), "README.md", "exec"), {})
