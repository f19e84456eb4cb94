"""The cell magic %%tegula, with a shell that does what it asks of IPython's."""
import array

import pytest

import tegula
from tegula import _jupyter

CELL = """kernel scale(x: f32[N], factor: int = 1) -> (y: f32[N]) { y[i] = factor * x[i] }
kernel total(x: f32[N], factor: int = 1) -> (y: f32[1]) { y[0] = factor * sum(x[i] for i) }
"""


class Shell:
    def __init__(self):
        self.user_ns, self.magics = {}, {}

    def register_magic_function(self, function, magic_kind, magic_name):
        self.magics[magic_kind, magic_name] = function


@pytest.fixture
def shell():
    made = Shell()
    tegula.load_ipython_extension(made)
    assert set(made.magics) == {("cell", "tegula")}
    return made


def test_kernels_become_names(shell):
    shell.magics["cell", "tegula"]("factor=3", CELL)
    assert set(shell.user_ns) == {"scale", "total"}
    x, y, sums = (array.array("f", values) for values in ([1, 2], [0, 0], [0]))
    shell.user_ns["scale"](x, out=y)
    shell.user_ns["total"](x, out=sums)
    assert y.tolist() == [3, 6] and sums.tolist() == [9]


def test_a_wrong_program_shows_its_diagnostics_alone(shell):
    with pytest.raises(tegula.ProgramError) as caught:
        shell.magics["cell", "tegula"]("", "kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = z[i] }")
    shown = caught.value._render_traceback_()
    assert shown[0].startswith("<cell>:1:") and "'z'" in shown[0] and not any("_jupyter" in line for line in shown)
    assert shell.user_ns == {}
    for line, cell in (("factor:3", CELL), ("nothing=3", CELL), ("", "fn f(x) = x"), ("", "")):
        with pytest.raises(tegula.Error) as caught:
            shell.magics["cell", "tegula"](line, cell)
        assert caught.value._render_traceback_() and shell.user_ns == {}


def test_words_behind_the_magic():
    assert _jupyter.options_of("checked stride=(2,1) T=f16 eps=1e-3 causal=true name='a b'") == {
        "checked": True, "stride": (2, 1), "T": "f16", "eps": 1e-3, "causal": True, "name": "a b"}
    assert _jupyter.options_of("") == {}
