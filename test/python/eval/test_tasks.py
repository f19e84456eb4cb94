import pytest
from conftest import SCALE, module

from tegula_eval.rule.tasks import TaskError, find_tasks, load


def keys(*arguments):
    return [task.key for task in find_tasks(*arguments)]


def test_levels_and_names(root):
    assert keys(root) == ["level1/3_Scale", "level2/11_Negate"]
    assert keys(root, [2]) == ["level2/11_Negate"]
    assert keys(root, None, ["*Scale"]) == ["level1/3_Scale"]
    assert keys(root, None, ["2/11"]) == ["level2/11_Negate"]


def test_names_that_nothing_has(root):
    with pytest.raises(TaskError, match="--level: .* has no level 9, but 1, 2"):
        find_tasks(root, [9])
    with pytest.raises(TaskError, match="--tasks: none of 2 tasks is '1'$"):
        find_tasks(root, None, ["1"])
    with pytest.raises(TaskError, match="--tasks: none of 2 tasks is 'Scale'; nearest is '3_Scale'"):
        find_tasks(root, None, ["*Negate", "Scale"])


def test_kernelbench_keeps_its_levels_in_a_folder(root, tmp_path):
    (tmp_path / "KernelBench").symlink_to(root)
    assert keys(tmp_path, [1]) == ["level1/3_Scale"]


def test_plain_folder_and_numeric_order(tmp_path):
    for name in ("10_b", "9_a", "own"):
        (tmp_path / f"{name}.py").write_text(SCALE)
    assert keys(tmp_path) == ["9_a", "10_b", "own"]


def test_nothing_there(tmp_path):
    with pytest.raises(TaskError, match="holds no tasks"):
        find_tasks(tmp_path)
    with pytest.raises(TaskError, match="no folder"):
        find_tasks(tmp_path / "absent")


@pytest.mark.parametrize("text, message", [
    ("def f(:", "SyntaxError"), ("import no_such_module", "ModuleNotFoundError"), ("x = 1", "defines no Model"),
    (module("return x").replace("def get_inputs", "def other"), "defines no get_inputs")])
def test_broken_file(text, message):
    with pytest.raises(TaskError, match=message):
        load(text)
