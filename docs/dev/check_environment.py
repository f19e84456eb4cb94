#!/usr/bin/env python3
"""Compares the environment variables that sources read with those that docs/environment.md lists; those that only tests read
with docs/testing.md.

    docs/dev/check_environment.py [--root=FOLDER]

Exit code 1 where one is not listed, or a listed one is not read.
"""
import argparse
import pathlib
import re
import subprocess
import sys

C_READ = re.compile(r'\b(?:secure_)?(?:getenv|GetEnv)\(\s*("?)(\w+)"?')
PYTHON_READ = re.compile(r"""\benviron(?:\.(?:get|pop|setdefault)\(|\[)\s*["'](\w+)["']|\bgetenv\(\s*["'](\w+)["']"""
                         r"""|["'](\w+)["'] (?:not )?in os\.environ\b""")
SHELL_READ = re.compile(r"\$\{?(TEGULA_\w+)")
SET = r"(?:^|[\s;(])(?:export |readonly )?{}="
TOML_READ = re.compile(r'env = "(\w+)"')
ROW = re.compile(r"^\|(?:[^|]*\|)*$", re.M)


def reads(path, text):
    """The names that a file reads; of one that is no literal the constant's value."""
    suffix = path.suffix
    if suffix in (".cpp", ".h", ".c"):
        for quote, name in C_READ.findall(text):
            value = re.search(rf'\b{name}\s*=\s*"(\w+)"', text)
            yield name if quote else value[1] if value else f"{name} (no literal)"
    elif suffix == ".py":
        for found in PYTHON_READ.findall(text):
            yield next(filter(None, found))
    elif suffix == ".toml":
        yield from TOML_READ.findall(text)
    elif suffix == ".sh" or text.startswith("#!/usr/bin/env bash"):
        for name in SHELL_READ.findall(text):
            if not re.search(SET.format(name), text, re.M):
                yield name


def listed(page):
    """The variables in the tables of a page: names in capitals in backticks, in its first cell or its last."""
    for line in ROW.findall(page):
        yield from re.findall(r"`([A-Z][A-Z0-9_]+)`", line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    root = parser.parse_args().root
    names = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True).stdout.split("\0")
    read, of_tests = {}, {}
    for name in filter(None, names):
        path = root / name
        if not path.is_file() or name.startswith(("docs/", "test/house/")) or path.suffix not in (".cpp", ".h", ".c", ".py", ".toml", ".sh", ""):
            continue
        for variable in reads(path, path.read_text(errors="replace")):
            if not name.startswith("test/"):
                read.setdefault(variable, name)
            elif variable.startswith("TEGULA_"):
                of_tests.setdefault(variable, name)
    page = set(listed((root / "docs/environment.md").read_text()))
    tests_page = set(re.findall(r"`(TEGULA_[A-Z_]+)", (root / "docs/testing.md").read_text()))
    wrong = [f"{file} reads {variable}, which docs/environment.md does not list" for variable, file in sorted(read.items())
             if variable not in page]
    wrong += [f"docs/environment.md lists {variable}, which nothing reads" for variable in sorted(page - set(read))]
    wrong += [f"{file} reads {variable}, which neither docs/testing.md nor docs/environment.md names"
              for variable, file in sorted(of_tests.items()) if variable not in tests_page | page]
    print("\n".join(wrong) if wrong else f"{len(read)} variables, {len(of_tests)} of tests")
    return 1 if wrong or not read else 0


if __name__ == "__main__":
    sys.exit(main())
