"""Hacks of hacks/results (corpus.py): each is told as its file says."""
import corpus
import pytest

from tegula_eval.confine import child
from tegula_eval.judge import candidates
from tegula_eval.rule import variants


@pytest.fixture(scope="module", autouse=True)
def starter():
    variants.warm()
    child.keep_memory()
    yield candidates.starter()
    candidates.starter().stop()
    candidates.starter.cache_clear()


@pytest.mark.parametrize("path", corpus.files("results"), ids=lambda path: path.stem)
def test_is_told(path):
    corpus.check(path)


def test_the_page_lists_every_hack():
    page = (corpus.FOLDER.parents[3] / "docs" / "trust.md").read_text(encoding="utf-8")
    assert page.endswith(corpus.table()), "docs/trust.md ends with what `corpus.py --table` prints"
    assert f"| {len(list(corpus.FOLDER.glob('*/*.py')))} of " in page
