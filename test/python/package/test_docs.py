"""The examples of pages run as they stand there, one after another; so does that of README.md."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.mark.filterwarnings("ignore::tegula.TegulaWarning")
@pytest.mark.parametrize("name", ["python.md", "models.md"])
def test_examples(name, tmp_path, monkeypatch):
    page = ROOT / "docs" / name
    text = page.read_text()
    monkeypatch.chdir(tmp_path)
    files = re.findall(r"^`(\w+\.tgl)`:\n\n```\n(.*?)^```$", text, re.M | re.S)
    assert files
    for file, content in files:
        (tmp_path / file).write_text(content)
    blocks = [(text.count("\n", 0, found.start(1)), found.group(1))
              for found in re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S)]
    assert len(blocks) >= 4
    names = {}
    for line, block in blocks:
        exec(compile("\n" * line + block, str(page), "exec"), names)


def test_readme():
    text = (ROOT / "README.md").read_text()
    [found] = re.finditer(r"^```python\n(import tegula.*?)^```$", text, re.M | re.S)
    exec(compile("\n" * text.count("\n", 0, found.start(1)) + found.group(1), "README.md", "exec"), {})
