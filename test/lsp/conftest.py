import os

import pytest

from client import Editor


@pytest.fixture
def editor():
    with Editor(os.environ["TEGULA_COMMAND"]) as one:
        yield one
    assert one.code == 0
