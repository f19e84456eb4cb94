#!/usr/bin/env python3
"""Says where the tree breaks the rules of the house, one line each. Exit code 1 where it does.

    docs/dev/check_house.py [--root=FOLDER]

- Folders of code form a DAG: each has a README.md whose last paragraph, `Includes: ...`, names the folders whose headers it
  includes, those and no others; following them never comes back to where one began.
- No folder has more than 45 files, but for cases that nobody reads from one end to the other (CASES).
- No source, page or comment uses a retired word of docs/dev/retired.txt.
- No function has more than 120 lines, and the methods of a class stand in at most 4 files.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

CODE = {".cpp", ".h", ".td", ".def"}
INCLUDE = re.compile(r'^\s*(?:#\s*)?include\s+"([^"]+)"', re.M)
MOST_FILES = 45
# Programs and cases, a file each, which nobody reads from one end to the other.
CASES = re.compile(r"(^|/)(programs|Inputs|corpus|hacks|kernels|cases|rejected|std|results)(/|$)|^test/|^bench/(kernelbench|teaching)")
# These tell of old words.
TELL = re.compile(r"^(docs/dev/|docs/results/|CHANGELOG|docs/glossary\.md|support/Switches\.def|test/driver/passes\.test|test/house/)")


MOST_LINES = 120
MOST_CLASS_FILES = 4
DEFINED = re.compile(r"(\w+(?:::~?\w+)*)\s*\(")
CLASS = re.compile(r"^(?:class|struct) (\w+)(?: final)?(?:\s*:[^;{]*)?\s*\{", re.M)
METHOD = re.compile(r"^(?!\s|//|#|using\b|return\b)[^\n;={]*?\b(\w+)::~?\w+\(", re.M)
NO_FUNCTION = ("namespace", "class", "struct", "union", "enum", "extern", "public:", "protected:", "private:")


def tracked(root):
    told = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True).stdout
    return [name for name in told.split("\0") if name and (root / name).is_file()]


def included_folders(root, files):
    """For each folder the folders whose headers it includes, and a file that does."""
    found = collections.defaultdict(dict)
    for name in files:
        if pathlib.PurePath(name).suffix not in CODE or name.startswith(("test/", "examples/", "editors/")):
            continue
        folder = str(pathlib.PurePath(name).parent)
        found[folder]
        for header in INCLUDE.findall((root / name).read_text()):
            at = pathlib.PurePath(re.sub(r"\.(h|cpp)\.inc$", ".td", header))
            if not (root / at).exists() and not header.endswith(".inc"):
                continue
            other = str(at.parent)
            if other != folder and (root / other).is_dir() and other != ".":
                found[folder].setdefault(other, name)
    return found


def told_folders(readme):
    """What the README says that a folder includes; None where it does not say."""
    paragraph = re.search(r"^Includes: (.*?)(?:\n\n|\Z)", readme, re.M | re.S)
    return None if not paragraph else set(re.findall(r"`([\w/]+)`", paragraph[1]))


def find_cycle(edges):
    """A list of folders each of which includes the next, the last the first; or None."""
    state, path = {}, []

    def visit(folder):
        state[folder] = 1
        path.append(folder)
        for other in sorted(edges.get(folder, ())):
            if state.get(other) == 1:
                return path[path.index(other):]
            if other not in state and (cycle := visit(other)):
                return cycle
        state[folder] = 2
        path.pop()
        return None

    for folder in sorted(edges):
        if folder not in state and (cycle := visit(folder)):
            return cycle
    return None


def check_includes(root, files):
    edges = included_folders(root, files)
    for folder, others in sorted(edges.items()):
        if folder.endswith("/tools") or folder in (".", "cmake"):
            continue
        readme = root / folder / "README.md"
        told = told_folders(readme.read_text()) if readme.exists() else None
        if told is None:
            yield f"{folder}: no README.md with a paragraph 'Includes: ...'"
            continue
        for other in sorted(set(others) - told):
            yield f"{others[other]}: includes a header of {other}, which {folder}/README.md does not list"
        for other in sorted(told - set(others)):
            yield f"{folder}/README.md: lists {other}, of which no file includes a header"
    if cycle := find_cycle(edges):
        yield "folders include each other: " + " -> ".join([*cycle, cycle[0]])


def check_sizes(files):
    sizes = collections.Counter(str(pathlib.PurePath(name).parent) for name in files)
    for folder, size in sorted(sizes.items()):
        if size > MOST_FILES and not CASES.search(folder):
            yield f"{folder}: {size} files, more than {MOST_FILES}: what belongs together wants a folder of its own"


def functions(text):
    """The functions of a source and their lines: (name, first line, number of lines), by the layout of clang-format."""
    lines = text.splitlines()
    head, inner = 0, 0  # the last lines that begin something: at the margin, and inside of a class
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if line and indent == 0 and line[0] not in "}/#":
            head = inner = number
        elif line and indent == 2 and line[2] not in "}/#:":
            inner = number
        in_class = lines[head].startswith(("class", "struct", "public:", "protected:", "private:"))
        if line == "}":
            first = head
        elif line == "  }" and in_class:
            first = inner
        else:
            continue
        begin = lines[first].strip()
        name = DEFINED.search(" ".join(part.strip() for part in lines[first:first + 3]))
        if name and not begin.startswith(NO_FUNCTION):
            yield name[1].removeprefix("tegula::"), first + 1, number - first + 1


def check_functions(root, files):
    for name in files:
        if pathlib.PurePath(name).suffix not in {".cpp", ".h"}:
            continue
        for function, line, count in functions((root / name).read_text(errors="replace")):
            if count > MOST_LINES:
                yield f"{name}:{line}: {function} has {count} lines, more than {MOST_LINES}: give its steps names of their own"


def check_classes(root, files):
    texts = {name: (root / name).read_text(errors="replace") for name in files if pathlib.PurePath(name).suffix in {".cpp", ".h"}}
    declared = collections.defaultdict(set)  # class: top folders
    for name, text in texts.items():
        for found in CLASS.findall(text):
            declared[found].add(pathlib.PurePath(name).parts[0])
    defined = collections.defaultdict(set)
    for name, text in texts.items():
        for found in set(METHOD.findall(text)):
            top = pathlib.PurePath(name).parts[0]
            # Classes of one name: each folder's own.
            if folders := declared.get(found):
                defined[(top if top in folders else min(folders), found)].add(name)
    for (top, found), places in sorted(defined.items()):
        if len(places) > MOST_CLASS_FILES:
            yield (f"{top}: methods of {found} stand in {len(places)} files, more than {MOST_CLASS_FILES}: "
                   "make what belongs together a class or functions of its own")


def check_words(root, files):
    rows = [line.split("\t") for line in (root / "docs/dev/retired.txt").read_text().splitlines() if line and line[0] != "#"]
    new = {old: word for old, word in rows}
    retired = re.compile(r"(?<![\w-])(" + "|".join(sorted(map(re.escape, new), key=len, reverse=True)) + r")(?![\w-])")
    for name in files:
        if TELL.search(name) or pathlib.PurePath(name).suffix not in CODE | {".md", ".py", ".txt", ".test", ".mlir"}:
            continue
        for number, line in enumerate((root / name).read_text(errors="replace").splitlines(), 1):
            for word in retired.findall(line):
                yield f"{name}:{number}: '{word}' is now '{new[word]}'"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    root = parser.parse_args().root
    files = tracked(root)
    wrong = [
        *check_includes(root, files), *check_sizes(files), *check_words(root, files), *check_functions(root, files),
        *check_classes(root, files)
    ]
    print("\n".join(wrong) if wrong else f"{len(files)} files keep the rules of the house")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
