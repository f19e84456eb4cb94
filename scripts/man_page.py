#!/usr/bin/env python3
"""Writes the manual page of the command from what it says of itself, and docs/environment.md.

  man_page.py --tegula=PATH [--out=tegula.1]
"""
import argparse
import pathlib
import re
import sys

from command_help import ask, commands_of, groups_of

ROOT = pathlib.Path(__file__).resolve().parents[1]

def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def variables(page):
    """The rows of docs/environment.md that are of the command: name, meaning, default."""
    for row in re.findall(r"^\| `([A-Z_]+)` \|(.+)\|$", page, re.M):
        cells = [re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", cell).strip() for cell in row[1].split("|")]
        if len(cells) == 3 and ("command" in cells[0] or "tegula " in cells[0]):
            yield row[0], cells[1], cells[2]


def page(tegula):
    told = ask(tegula, "--help")
    version = ask(tegula, "--version").split()[1]
    lines = [f'.TH TEGULA 1 "" "tegula {escape(version)}" "User Commands"', ".SH NAME",
             "tegula \\- compile and run kernels in index notation", ".SH SYNOPSIS", ".B tegula",
             ".I command", "[options] [file...]", ".SH DESCRIPTION",
             "Checks, compiles, runs and measures programs in the language Tegula, on the CPU and on NVIDIA GPUs.",
             ".SH COMMANDS"]
    for name, description in commands_of(told):
        lines += [".TP", f".B {escape(name)}", escape(description)]
    for name, description in commands_of(told):
        usage, groups = groups_of(ask(tegula, name, "--help"))
        lines += [f'.SH "TEGULA {escape(name.upper())}"', escape(description) + ".", ".PP", f".B {escape(usage)}"]
        for heading, explanation, options in groups:
            lines += [f'.SS "{escape(heading)}"']
            lines += [escape(explanation) + "."] if explanation else []
            for option, text in options:
                lines += [".TP", f".B {escape(option)}", escape(text)]
    codes = " ".join(re.search(r"Exit codes: (.*)", told, re.S)[1].split())
    lines += [".SH EXIT STATUS", escape(codes), ".SH ENVIRONMENT"]
    for name, meaning, default in variables((ROOT / "docs/environment.md").read_text()):
        lines += [".TP", f".B {name}", escape(meaning + (f" (default: {default})" if default else ""))]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tegula", required=True)
    parser.add_argument("--out")
    args = parser.parse_args()
    text = page(args.tegula)
    if args.out:
        pathlib.Path(args.out).write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
