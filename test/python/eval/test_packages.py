"""What the packages of tegula_eval import of each other is what each of them says, and they are told in an order."""
import ast
import re
from pathlib import Path

import pytest
import tegula_eval

TOP = Path(tegula_eval.__file__).parent
ORDER = re.findall(r"^  (\w+)", tegula_eval.__doc__.partition("The packages,")[2], re.MULTILINE)


def imported(package: str) -> set[str]:
    """Packages and modules of tegula_eval's own folder that files of one of its packages import, at any place in them."""
    found = set()
    for path in (TOP / package).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 2:
                found |= {node.module.partition(".")[0]} if node.module else {one.name for one in node.names}
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
                assert not any(name.partition(".")[0] == "tegula_eval" for name in names), f"{path}: not a relative import"
    return found


def text(package: str) -> str:
    return ast.get_docstring(ast.parse((TOP / package / "__init__.py").read_text(encoding="utf-8")))


def test_all_are_told():
    assert sorted(ORDER) == sorted(path.parent.name for path in TOP.glob("*/__init__.py"))


@pytest.mark.parametrize("package", ORDER)
def test_imports(package):
    [told] = re.findall(r"May import: ([\w, ]+)\.", text(package))
    allowed = [] if told == "nothing" else told.split(", ")
    assert imported(package) == set(allowed)
    assert set(allowed) <= set(ORDER[:ORDER.index(package)])


@pytest.mark.parametrize("package", ORDER)
def test_modules_are_told(package):
    modules = {path.stem for path in (TOP / package).glob("*.py")} - {"__init__"}
    assert set(re.findall(r"^  (\w+)  +\S", text(package), re.MULTILINE)) == modules
