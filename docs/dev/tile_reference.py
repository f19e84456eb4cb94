#!/usr/bin/env python3
"""Writes docs/tile-reference.md, the reference of the dialect `tile`, from the tables in ir/tile.

    docs/dev/tile_reference.py            writes the page
    docs/dev/tile_reference.py --check    says whether the page is what it would write

Descriptions stand in TileDialect.td and TileOps.td; mlir-tblgen makes a page of them. The order is that of the
tables. Each op has an example.
"""
import argparse
import difflib
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "ir" / "tile" / "TileOps.td"
PAGE = ROOT / "docs" / "tile-reference.md"
HEAD = """\
<!-- docs/dev/tile_reference.py writes this page from ir/tile/TileDialect.td and TileOps.td. -->

# The dialect `tile`: reference

Ops come in the order of `ir/tile/TileOps.td`: structure, tiles of values, reductions, the placed stage. Why they are as they
are: [tile-dialect.md](design/tile-dialect.md). How to change them by a pass: [add-a-tile-pass.md](add-a-tile-pass.md).
"""


def fail(text):
    sys.exit(f"tile_reference.py: {text}")


def generated(tblgen):
    """What mlir-tblgen says of the dialect."""
    include = pathlib.Path(tblgen).resolve().parents[1] / "include"
    command = [tblgen, "-gen-dialect-doc", "-dialect=tile", "-I", ROOT, "-I", include, TABLE]
    told = subprocess.run(command, capture_output=True, text=True)
    if told.returncode:
        fail(f"mlir-tblgen refuses ir/tile/TileOps.td\n{told.stderr}")
    return told.stdout


def in_order(ops):
    """The descriptions of ops, by mnemonic, under the headings of the table and in its order."""
    lines = []
    for heading, op in re.findall(r'^//===-+===//\n// (.+)\n//===-+===//$|^def \w+ : Tile_Op<"(\w+)"', TABLE.read_text(), re.M):
        lines.append(f"## {heading}\n\n" if heading else f"### `tile.{op}`\n{ops.pop(op)}")
    if ops:
        fail(f"the table does not show where {', '.join(ops)} stands")
    return "".join(lines)


def page(text):
    """The page: neither C++ names nor traits, which say how an op is made, nor enumerations of other dialects."""
    body = text[text.index("A `tile.kernel` is a launch"):].replace("[TOC]\n\n", "")
    body = re.sub(r"^(### `tile\.\w+`) \(::[\w:]+\)$", r"\1", body, flags=re.M)
    body = re.sub(r"^(Traits|Interfaces|Effects): .*\n+", "", body, flags=re.M)
    body = re.sub(r"^### (?!CopyKind|ReduceKind)\w+Kind\n(?:(?!^##?#? ).*\n)*", "", body, flags=re.M)
    body = re.sub(r"\n{3,}", "\n\n", body).rstrip("\n") + "\n"
    head, rest = body.split("## Operations\n\n")
    operations, types = rest.split("## Attributes\n", 1)
    ops = dict(re.findall(r"^### `tile\.(\w+)`\n((?:(?!^### ).*\n)*)", operations, re.M))
    for name, rest in ops.items():
        shown = re.sub(r"^Syntax:\n\n```\n.*?\n```\n", "", rest, flags=re.M | re.S)
        if f"tile.{name}" not in shown:
            fail(f"the description of tile.{name} has no example")
    return HEAD + "\n" + head + in_order(ops) + "## Attributes\n" + types


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where the page is not current")
    parser.add_argument("--tblgen", default=shutil.which("mlir-tblgen") or shutil.which("mlir-tblgen-22"),
                        help="mlir-tblgen (default: that of the path)")
    parser.add_argument("--page", type=pathlib.Path, default=PAGE, help="the page (default: docs/tile-reference.md)")
    options = parser.parse_args()
    if not options.tblgen:
        fail("no mlir-tblgen on the path; name it by --tblgen")
    new = page(generated(options.tblgen))
    old = options.page.read_text() if options.page.exists() else ""
    if not options.check:
        options.page.write_text(new)
    elif new != old:
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), str(options.page), "new"))
        fail(f"{options.page.name} is not what ir/tile says; run docs/dev/tile_reference.py")


if __name__ == "__main__":
    main()
