"""The program in an answer."""
import pytest

from tegula_eval.model.answers import NoProgram, find_program

PROGRAM = "kernel k(x: f32[N]) -> (y: f32[N]) {\n  y[i] = x[i]\n}\n"
OTHER = PROGRAM.replace("kernel k", "kernel other")


@pytest.mark.parametrize("answer", [
    f"```\n{PROGRAM}```",
    f"Here it is:\n\n```tegula\n{PROGRAM}```\nIt copies.",
    f"~~~\n{PROGRAM}~~~",
    f"```python\nprint(1)\n```\n```\n{PROGRAM}```",            # another block that holds no kernel
    f"```\n{PROGRAM.replace('x[i]', 'x[j]')}```\nNo:\n```\n{PROGRAM}```",  # an earlier form of the same
    f"<think>```\n{OTHER}```</think>\n```\n{PROGRAM}```",
    f"<think>never closed before?</think>{PROGRAM}",
    PROGRAM,
    f"```\n{PROGRAM}",                                          # cut off before the fence
    f"  ```\n{PROGRAM}  ```",
])
def test_found(answer):
    assert find_program(answer) == PROGRAM


@pytest.mark.parametrize("answer, reason", [
    ("", "empty"), ("  \n", "empty"), ("I cannot.", "none"), ("```python\nprint(1)\n```", "none"),
    (f"```\n{OTHER}```\n```\n{PROGRAM}```", "several"), ("x" * 2_000_000, "long"),
    ("<think>" + PROGRAM, "none"), ("```\n" + PROGRAM + "#" * 300_000 + "\n```", "long"),
])
def test_not_found(answer, reason):
    with pytest.raises(NoProgram) as caught:
        find_program(answer)
    assert caught.value.reason == reason


def test_helpers_stay():
    both = OTHER + "\n" + PROGRAM
    assert find_program(f"```\n{OTHER}```\nand all:\n```\n{both}```") == both
