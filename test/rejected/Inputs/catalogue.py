#!/usr/bin/env python3
"""Holds dsl/Errors.def against what the compiler does.

For every code: a file test/rejected/<CODE>.{tgl,test}; the wrong example gives that code and no other;
the right one gives nothing; where the wrong one's diagnostics carry fixes, 'tegula fix --maybe' makes
a program without that code of them, and does so again without change.
"""
import json
import os
import re
import subprocess
import sys

folder, scratch = sys.argv[1], sys.argv[2]
# Their wrong examples are too long to show: the tests of these codes make them.
SHORTENED = {"E0105", "E0107"}
# What these say is no mistake of the program: this command alone says it.
COMMANDS = {"E0913": ("grad", "--json")}


def tegula(*arguments):
    return subprocess.run(["tegula", *arguments], capture_output=True)


def examples(code):
    """The two programs of 'tegula explain', byte by byte."""
    text = tegula("explain", code).stdout
    wrong, right = text.split(b"\nWrong:\n\n")[1].split(b"\nRight:\n\n")
    return [b"\n".join(line[4:] for line in part.split(b"\n")) for part in (wrong, right)]


def diagnostics_of(path, remarks, command=("check", "--json")):
    run = tegula(*command, *(["--guards"] if remarks else []), path)
    assert run.returncode in (0, 1), run
    found = []
    for line in run.stdout.splitlines() if run.returncode or command[0] == "check" else []:
        record = json.loads(line)
        if record["schema"] == "tegula.diagnostic":
            found.append(record)
    return found


def main():
    wrong_ones = []

    def expect(condition, text):
        if not condition:
            wrong_ones.append(text)

    listed = tegula("explain").stdout.decode().splitlines()
    codes = [line.split()[0] for line in listed]
    expect(len(codes) > 80, "the list of codes is too short")
    files = {os.path.splitext(name)[0]: name for name in os.listdir(folder)}
    for code in codes:
        # Remarks are made where they are asked for.
        remarks = tegula("explain", code).stdout.startswith(f"{code} (remark".encode())
        expect(code in files, f"{code}: no file {code}.tgl or {code}.test")
        if code in files:
            with open(os.path.join(folder, files[code]), encoding="utf-8") as file:
                expect(re.search(rf"(error|warning|remark)\[{code}\]", file.read()), f"{code}: not checked for")
        wrong, right = examples(code)
        for name, text in (("wrong", wrong), ("right", right)):
            path = os.path.join(scratch, f"{code}-{name}.tgl")
            with open(path, "wb") as file:
                file.write(text)
            found = diagnostics_of(path, remarks, COMMANDS.get(code, ("check", "--json")))
            if name == "right":
                expect(not found, f"{code}: its right example gives {[one['code'] for one in found]}")
                continue
            if code in SHORTENED:
                continue
            expect(found, f"{code}: its wrong example gives nothing")
            others = {one["code"] for one in found} - {code}
            expect(not others, f"{code}: its wrong example gives {sorted(others)}")
            if not any(one["fixes"] for one in found):
                continue
            tegula("fix", "--maybe", path)
            left = diagnostics_of(path, remarks)
            expect(code not in {one["code"] for one in left}, f"{code}: still there after its fix")
            expect(not any(one["severity"] == "error" for one in left), f"{code}: its fix leaves errors: {left}")
            with open(path, "rb") as file:
                once = file.read()
            tegula("fix", "--maybe", path)
            with open(path, "rb") as file:
                expect(file.read() == once, f"{code}: fixing twice differs from fixing once")
    for name in files:
        expect(name in codes or not re.fullmatch(r"[EW]\d{4}", name), f"{name}: there is no such code")
    print("\n".join(wrong_ones) if wrong_ones else f"{len(codes)} codes are what they say")
    return 1 if wrong_ones else 0


sys.exit(main())
