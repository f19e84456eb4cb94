#!/usr/bin/env python3
"""Programs with plausible mistakes, each beside what it becomes: NAME.tgl and NAME.fixed.

The first diagnostic of each carries an edit; 'tegula fix --maybe' makes the program that is expected of it,
which checks, and fixing that again changes nothing.
"""
import json
import os
import subprocess
import sys

folder, scratch = sys.argv[1], sys.argv[2]


def tegula(*arguments):
    return subprocess.run(["tegula", *arguments], capture_output=True, text=True)


def main():
    wrong, count = [], 0
    for name in sorted(os.listdir(folder)):
        stem, kind = os.path.splitext(name)
        if kind != ".tgl":
            continue
        count += 1
        with open(f"{folder}/{name}", encoding="utf-8") as file:
            program = file.read()
        with open(f"{folder}/{stem}.fixed", encoding="utf-8") as file:
            expected = file.read()
        path = f"{scratch}/{name}"
        with open(path, "w", encoding="utf-8") as file:
            file.write(program)
        records = [json.loads(line) for line in tegula("check", "--json", path).stdout.splitlines()]
        if not records or not any(record["fixes"] for record in records):
            wrong.append(f"{stem}: no edit")
        for round_ in ("once", "twice"):
            fixed = tegula("fix", "--maybe", path)
            with open(path, encoding="utf-8") as file:
                got = file.read()
            if fixed.returncode != 0:
                wrong.append(f"{stem}: exit code {fixed.returncode} after fixing {round_}:\n{fixed.stderr}")
            if got != expected:
                wrong.append(f"{stem}: fixed {round_} it is\n{got}\nand not\n{expected}")
        if tegula("check", path).returncode != 0:
            wrong.append(f"{stem}: does not check")
    print("\n".join(wrong) if wrong else f"{count} programs become what they meant")
    return 1 if wrong else 0


sys.exit(main())
