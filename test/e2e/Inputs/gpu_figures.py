"""Prints every table of bench/gpu_figures.py of made-up figures, right, wrong and failing, and looks at what it prints."""
import contextlib
import inspect
import io
import pathlib
import re
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench"))
import gpu_figures  # noqa: E402
from gpu.measure import Measure  # noqa: E402

TINY, LARGE = 1e-9, 0.5
# Of each method its result with an error of ours of that size, theirs being TINY.
FIGURES = {
    "product": lambda error: ([20.0, 30.0], [error, TINY], [2.0, 3.0]),
    "f32_product": lambda error: ([20.0, 30.0], [(error, TINY), (TINY, TINY)]),
    "attention": lambda error: ([20.0, 30.0, None, 40.0], error),
    "f32_attention": lambda error: ([20.0, 30.0, 25.0], [error, TINY, TINY]),
    "grouped": lambda error: ([20.0, None, None, 30.0], error),
    "along": lambda error: ([20.0, 30.0], error, True),
    "graphs": lambda error: ([20.0, 30.0], [error, TINY], 1.5),
    "compile_times": lambda error: (50.0, 40.0),
}
NEVER_WRONG = {"small", "compile"}  # a process says what is wrong with these: they end in an error


def fixed(is_wrong=lambda call: False, error=None):
    """A class of Measure whose calls, numbered, give LARGE errors, or raise `error`, where `is_wrong` says so."""
    class Fixed(Measure):
        calls = 0

        def __init__(self, tegula, seconds):
            pass

    def method(name, signature):
        def call(self, *given, **named):
            signature.bind(self, *given, **named)  # raises where the real one would
            Fixed.calls += 1
            if is_wrong(Fixed.calls) and error:
                raise error
            figures = FIGURES[name](LARGE if is_wrong(Fixed.calls) else TINY)
            if name == "f32_attention":  # one time for each of the backends that were asked for
                count = 1 + len(given[1])
                return tuple(ones[:count] for ones in figures)
            return figures
        return call
    for name in FIGURES:
        setattr(Fixed, name, method(name, inspect.signature(getattr(Measure, name))))
    return Fixed


def printed(section, make, *more):
    """The exit code and the lines of the section's table."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = gpu_figures.main([f"--only={section}", *more], make)
    return code, [line for line in out.getvalue().splitlines() if line.startswith("|")]


names = list(gpu_figures.SECTIONS)
told = re.findall(r"^([a-z]\w*)  ", gpu_figures.__doc__, re.M)
usage = "".join(gpu_figures.__doc__.split("--only=")[1].split("]")[0].split())
assert told == names == usage.split(","), (told, names, usage)

for section in names:
    code, right = printed(section, fixed())
    width = right[0].count("|")
    assert code == 0 and len(right) >= 4 and all(line.count("|") == width for line in right), (section, right)
    assert "wrong" not in "".join(right), (section, right)
    rows = [line.split(" | ")[0][2:] for line in right[2:]]
    assert len(set(rows)) == len(rows), (section, rows)
    if section not in NEVER_WRONG:
        code, wrong = printed(section, fixed(lambda call: call == 2))
        assert code == 4 and ", wrong |" in wrong[3] and "5.0e-01" in wrong[3], (section, wrong)
        assert wrong[:3] + wrong[4:] == right[:3] + right[4:], (section, wrong)
    code, failed = printed(section, fixed(lambda call: call == 2, RuntimeError("out of\nmemory")))
    assert code == 4 and failed[3] == f"| {rows[1]}, wrong | RuntimeError: out of memory |", (section, failed)
    assert failed[:3] + failed[4:] == right[:3] + right[4:], (section, failed)
    code, one = printed(section, fixed(), f"--rows={rows[-1]}")
    assert code == 0 and one == right[:2] + [line for line, row in zip(right[2:], rows) if rows[-1] in row], (section, one)

# An error that is the reference's too is none: of data that nobody adds up better.
Same = fixed()
Same.f32_product = lambda self, *case, **timed: ([20.0, 30.0], [(LARGE, LARGE), (LARGE, LARGE)])
assert printed("wide", Same)[0] == 0
Same.along = lambda self, *case: ([20.0, 30.0], TINY, False)
code, lines = printed("memory", Same)
assert code == 4 and all(line.endswith("not the same twice |") for line in lines[2:])
