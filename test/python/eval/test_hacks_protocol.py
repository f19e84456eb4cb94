"""Hacks of hacks/protocol (corpus.py): each is told as its file says."""
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


@pytest.mark.parametrize("hack", corpus.hacks("protocol"), ids=lambda hack: hack.name.partition("/")[2])
def test_is_told(hack):
    corpus.check(hack)
