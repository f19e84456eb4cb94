#!/usr/bin/env python3
"""Applies docs/dev/renames.tsv to this checkout: moves files, and puts new names for old ones into all tracked text.

    docs/dev/rename.py [--check] [--report]

A row is `kind <tab> old <tab> new` (`#` begins a comment):

file   a source file's old and new path. The file moves; includes, tables of sources, pages and comments that name it follow, and
       so do its include guard and its first line.
name   a word of C++: in code and comments of C++ and TableGen (not in string literals or #include lines), and in pages, Python and
       CMake, as a whole word. One that might be an English word (`mended`) in prose only between backticks.
in     `GLOB[,GLOB...]:old`: the same in these files alone; in their comments only where the old name is a camelBack of several words,
       or stands between backticks. `old` may be an access, `product.row`. GLOB is fnmatch's: `*` matches `/` too.
flag   a name that users type: as a whole word with its hyphens, where that is a flag: after `disable=` or a comma behind it, in a
       string literal of C++, in quotes or backticks. The command line still takes the old one (passes/Switches.def).
text   `GLOB:old`: exact text anywhere in these files.

All names are replaced in one pass, so the new name of one row may be the old name of another. Rows of files that are applied
already change nothing. Names are applied once: a branch from before the renaming runs the table of the commit that renamed, then
merges. --check changes nothing. --report lists rows that hit nothing, and new names that a file had before.
"""
import argparse
import collections
import fnmatch
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs/dev/renames.tsv"
CPP = {".cpp", ".h", ".def", ".c", ".cu", ".td"}
PROSE = {".md", ".py", ".txt", ".cmake", ".tsv"}
KEPT = ("docs/results/", "CHANGELOG.md", "docs/dev/renames.tsv", "docs/dev/rename.py", "docs/dev/retired.txt", "passes/Switches.def", "dsl/prompt/")
SEGMENT = re.compile(r'//[^\n]*|/\*.*?\*/|^[ \t]*#[ \t]*include[^\n]*|\[\{.*?\}\]|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S | re.M)

SINGLE = re.compile(r"[A-Za-z][a-z]*")  # might be an English word: in prose it is only replaced between backticks


def bounded(old):
    start = r"(?<!\w)" if re.match(r"\w", old) else ""
    end = r"(?!\w)" if re.search(r"\w$", old) else ""
    return start + re.escape(old) + end


def pattern(names):
    return re.compile("|".join(map(bounded, sorted(names, key=len, reverse=True)))) if names else None


class Table:
    def __init__(self, path):
        self.names, self.flags, self.local, self.text, self.files = {}, {}, [], [], []
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not line or line.startswith("#"):
                continue
            row = line.split("\t")
            if len(row) != 3:
                sys.exit(f"{path}:{number}: a row is kind, old, new")
            kind, old, new = row
            if kind == "name":
                if self.names.setdefault(old, new) != new:
                    sys.exit(f"{path}:{number}: {old} has two new names")
            elif kind == "flag":
                self.flags[old] = new
            elif kind in ("in", "text"):
                globs, old = old.split(":", 1)
                (self.local if kind == "in" else self.text).append((globs.split(","), old, new))
            elif kind == "file":
                self.files.append((old, new))
            else:
                sys.exit(f"{path}:{number}: no kind {kind}")
        self.hits = collections.Counter()

    def local_for(self, path):
        found = {}
        for globs, old, new in self.local:
            if any(fnmatch.fnmatch(path, glob) for glob in globs):
                found[old] = new  # later rows are more special
        return found


def replace(regex, table, text, hits, tag=""):
    def one(match):
        hits[tag + match[0]] += 1
        return table[match[0]]
    return regex.sub(one, text) if regex else text


def convert(path, text, table):
    suffix = pathlib.PurePath(path).suffix
    local = table.local_for(path)
    flag = None
    if table.flags:
        words = "|".join(sorted(map(re.escape, table.flags), key=len, reverse=True))
        flag = re.compile(rf"(?<![\w-])({words})(?![\w]|-\w)")
    if suffix in CPP:
        both = {**table.names, **local}
        said = {**{old: new for old, new in table.names.items() if not SINGLE.fullmatch(old)}, **{old: new for old, new in local.items() if re.fullmatch(r"\w*[a-z][A-Z]\w*", old)}}
        code, comment = pattern(both), pattern(said)
        ticked = {**local, **{old: new for old, new in table.names.items() if SINGLE.fullmatch(old)}}
        ticks = pattern(ticked)
        made, at = [], 0

        def prose(part):
            part = replace(comment, said, part, table.hits)
            if ticks:
                part = re.sub(r"`[^`\n]*`", lambda m: replace(ticks, ticked, m[0], table.hits), part)
            if flag:
                part = re.sub(r"`[^`\n]*`|--disable=\S+", lambda m: replace(flag, table.flags, m[0], table.hits), part)
            return part
        for match in SEGMENT.finditer(text):
            made.append(replace(code, both, text[at:match.start()], table.hits))
            part = match[0]
            if part.startswith(("//", "/*", "[{")):
                part = prose(part)
            elif part[0] == '"' and flag:
                whole = re.fullmatch(r'"[\w-]+"', part) or "disable" in part or "without" in part
                part = replace(flag, table.flags, part, table.hits) if whole else part
            made.append(part)
            at = match.end()
        made.append(replace(code, both, text[at:], table.hits))
        text = "".join(made)
    else:
        if suffix in PROSE:
            said = {old: new for old, new in table.names.items() if not SINGLE.fullmatch(old)}
            text = replace(pattern(said), said, text, table.hits)
            single = {old: new for old, new in table.names.items() if SINGLE.fullmatch(old)}
            text = re.sub(r"`[^`\n]*`", lambda m: replace(pattern(single), single, m[0], table.hits), text)
        if flag:
            text = re.sub(r"(?:--disable[= ]|disable=|without=|disabled=)[^\s`]+|`[\w-]+`|\"[\w-]+\"|'[\w-]+'",
                          lambda m: replace(flag, table.flags, m[0], table.hits), text)
    for globs, old, new in table.text:
        if any(fnmatch.fnmatch(path, glob) for glob in globs):
            table.hits["text " + old] += text.count(old)
            text = text.replace(old, new)
    return text


def guard(path):
    return "TEGULA_" + re.sub(r"[/.-]", "_", path).upper()


def old_guard(path):
    return "TEGULA_" + re.sub(r"[/.]", "_", path).upper()


def tracked():
    """(path, text) of every tracked text that may name another."""
    told = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, told.split("\0")):
        file = ROOT / name
        if name.startswith(KEPT) or not file.is_file():
            continue
        try:
            yield name, file.read_text()
        except UnicodeDecodeError:
            continue


def move(files):
    """Moves the files; the texts that name them follow. A bare file name follows where no two files have it."""
    changes, bare = {}, collections.defaultdict(set)
    for old, new in files:
        if (ROOT / old).exists():
            (ROOT / new).parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["git", "mv", old, new], cwd=ROOT, check=True)
        changes[old] = new
        if old.endswith(".h"):
            changes[old_guard(old)] = guard(new)
        bare[pathlib.PurePath(old).name].add(pathlib.PurePath(new).name)
    for old, news in bare.items():
        if len(news) == 1 and old not in news:
            changes[old] = next(iter(news))
    paths = re.compile(r"(?<![\w./-])(" + "|".join(sorted(map(re.escape, changes), key=len, reverse=True)) + r")(?![\w]|-\w)")
    new_names = {new: pathlib.PurePath(new).name for _, new in files}
    for name, text in tracked():
        made = paths.sub(lambda found: changes[found[1]], text)
        if name in new_names:  # its first line tells its name
            made = re.sub(r"\A(//===- |# |\"\"\")[\w.]+\.(?:cpp|h|td|def|py)\b", lambda found: found[1] + new_names[name], made)
        if made != text:
            (ROOT / name).write_text(made)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", action="store_true", help="the rows of files alone")
    parser.add_argument("--names", action="store_true", help="the other rows alone")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    table = Table(TABLE)
    if not given.check and not given.names:
        move(table.files)
    if given.files:
        return
    changed, collisions = 0, []
    word = re.compile(r"[A-Za-z_]\w*")
    for path, text in tracked():
        made = convert(path, text, table)
        if given.report and pathlib.PurePath(path).suffix in CPP and made != text:
            code = SEGMENT.sub(" ", text)
            had = set(word.findall(code))
            both = {**table.names, **table.local_for(path)}
            for old, new in both.items():
                last = word.findall(new)[-1]
                if last in had and last not in both and re.search(bounded(old), code):
                    collisions.append(f"{path}: {old} -> {new}")
        if made != text:
            changed += 1
            if not given.check:
                (ROOT / path).write_text(made)
    print(f"{changed} files change")
    if given.report:
        for old in list(table.names) + list(table.flags) + [old for _, old, _ in table.local]:
            if not table.hits[old]:
                print("NOTHING", old)
        for line in collisions:
            print("COLLISION", line)


if __name__ == "__main__":
    main()
