#!/usr/bin/env python3
"""Spoils the layout of programs, formats them, and holds the results against the originals.

Formatting must not depend on the layout that it finds (blanks, and line breaks within brackets), and must
keep every comment, in order.
"""
import random
import re
import subprocess
import sys


def comments(text):
    return [comment.rstrip() for comment in re.findall(r"#[^\n]*", text)]


def tokens(text):
    """All but blanks, ';' between statements and commas before a closing bracket."""
    bare = re.sub(r"#[^\n]*", "", text)
    return re.sub(r",(?=[)\]])", "", re.sub(r"[\s;]+", "", bare))


def spoiled(text, rng):
    """The same program with other blanks; comments keep their lines."""
    lines = []
    for line in text.split("\n"):
        code, mark, comment = line.partition("#")
        code = re.sub(r" ", lambda _: " " * rng.randint(1, 3), code)
        code = re.sub(r"(?<=[\[(,])", lambda _: " " * rng.randint(0, 2), code)
        lines.append(" " * rng.randint(0, 5) + code.rstrip() + (" " if code.strip() and mark else "") + mark + comment)
    return "\n".join(lines)


def run(command, path):
    return subprocess.run(["tegula", command, path], capture_output=True, text=True)


def main():
    scratch, paths = sys.argv[1], sys.argv[2:]
    rng = random.Random(1)
    wrong, kept = [], 0
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        name = f"{scratch}/program.tgl"

        def formatted(content):
            with open(name, "w", encoding="utf-8") as file:
                file.write(content)
            if run("fmt", name).returncode:
                return None
            with open(name, encoding="utf-8") as file:
                return file.read()

        once = formatted(text)
        if once is None:
            continue  # a syntax error: another test's matter
        kept += 1
        if comments(once) != comments(text):
            wrong.append(f"{path}: other comments")
        if tokens(once) != tokens(text):
            wrong.append(f"{path}: other tokens")
        if formatted(once) != once:
            wrong.append(f"{path}: formatting twice differs")
        for _ in range(2):
            if formatted(spoiled(text, rng)) != once:
                wrong.append(f"{path}: the form depends on the layout")
    print("\n".join(wrong) if wrong else f"{kept} programs keep what they say")
    return 1 if wrong or kept < 100 else 0


sys.exit(main())
