#!/usr/bin/env python3
"""Adds a pass: its source, its entry in Passes.td, its place in the build and the pipeline, its test.

    docs/dev/new_pass.py FoldSigns --summary "folds signs into constants" --after tgl-simplify-accesses

The new pass counts the kernels that it sees and changes nothing; it builds, and its test passes. What
to do next is in docs/add-a-pass.md.
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

SOURCE = """\
//===- {name}.cpp - {title}{pad}===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/Nest.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {{
#define GEN_PASS_DEF_{upper}PASS
#include "passes/Passes.h.inc"
}} // namespace tegula

namespace {{
struct {name}Pass : Counted<tegula::impl::{name}PassBase<{name}Pass>> {{
  void runOnOperation() override {{
    KernelOp kernel = getOperation();
    (void)kernel;
    count("kernels seen");
  }}
}};
}} // namespace
"""

ENTRY = """\
def {name}Pass : Pass<"{flag}", "::tegula::tgl::KernelOp"> {{
  let summary = "{summary}";
  let description = [{{
    {sentence}

    *Why here*: say what must have happened before, and what relies on this.
    *Rounding*: say whether results change, and how.
    *Stops*: say what it leaves alone, and why that is right.
  }}];
}}

"""

TEST = """\
// RUN: tegula-opt %s --{flag} --tgl-counters 2>&1 | FileCheck %s

// CHECK-LABEL: tgl.kernel @copy
// CHECK: tgl.write %{{{{.*}}}}, %y[%i]
// CHECK: {flag}: 1 kernels seen
tgl.kernel @copy(%x: !tgl.tensor<[N], f32> {{tgl.name = "x", tgl.role = "in"}},
                 %y: !tgl.tensor<[N], f32> {{tgl.name = "y", tgl.role = "out"}}) sizes [N = 0 : 0] {{
  tgl.parallel (%i = 0 to N) {{
    %v = tgl.read %x[%i] : !tgl.tensor<[N], f32>
    tgl.write %v, %y[%i] : f32, !tgl.tensor<[N], f32>
  }}
}}
"""


def fail(text):
    sys.exit(f"new_pass.py: {text}")


def insert_after(text, pattern, addition, what):
    """`text` with `addition` after the last match of `pattern`."""
    matches = list(re.finditer(pattern, text, re.MULTILINE))
    if not matches:
        fail(f"cannot find {what}")
    end = matches[-1].end()
    return text[:end] + addition + text[end:]


def add_to_pipeline(text, previous, addition):
    """`text` with the statement, a comment and a call, behind the first one that adds the pass `previous`; nothing
    where there is none. In the same block; behind the whole of an `if` whose branches have no braces, so that what
    is added does not become one of them."""
    found = re.search(rf"^( +)pipeline\.add\(create{previous}Pass\(.*\)\);\n", text, re.MULTILINE)
    if not found:
        return None
    indent, end = found.group(1), found.end()
    branch = r" *(?:\} )?(?:else )?if \(.*\)\n$| *(?:\} )?else\n$"
    if re.search(branch, text[: found.start()].splitlines(keepends=True)[-1]):
        indent = indent[2:]
        rest = re.match(rf"(?:{indent}else.*\n{indent}  .*\n)*", text[end:])
        end += rest.end()
    return text[:end] + "".join(f"{indent}{line}\n" for line in addition) + text[end:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="a verb phrase in CamelCase: FoldSigns")
    parser.add_argument("--summary", default="", help="what it does, as `folds signs into constants`")
    parser.add_argument("--after", default="tgl-simplify-accesses", help="flag of the pass that it follows")
    parser.add_argument("--root", default=str(ROOT), help=argparse.SUPPRESS)
    options = parser.parse_args()
    root = pathlib.Path(options.root)
    name = options.name
    if not re.fullmatch(r"[A-Z][a-z0-9]+([A-Z][a-z0-9]+)*", name):
        fail(f"a pass is called like FoldSigns, not '{name}'")
    words = re.findall(r"[A-Z][a-z0-9]+", name)
    stem = "-".join(word.lower() for word in words)
    flag = f"tgl-{stem}"
    title = " ".join([words[0]] + [word.lower() for word in words[1:]])
    summary = options.summary or title[0].lower() + title[1:]
    sentence = summary[0].upper() + summary[1:] + "."

    test = root / "test" / "passes" / f"{stem}.mlir"
    table = root / "passes" / "Passes.td"
    build = root / "passes" / "CMakeLists.txt"
    pipeline = root / "passes" / "Pipeline.cpp"
    td = table.read_text()
    before = re.search(rf'def (\w+)Pass : Pass<"{re.escape(options.after)}"', td)
    if not before:
        fail(f"no pass has the flag {options.after}")
    previous = before.group(1)
    build_text = build.read_text()
    # In the folder, that of a phase, of the pass that it follows.
    folder = re.search(rf"^  (\w+)/{previous}\.cpp$", build_text, re.MULTILINE)
    if not folder:
        fail(f"cannot find {previous}.cpp in CMakeLists.txt")
    folder = folder.group(1)
    source = root / "passes" / folder / f"{name}.cpp"
    for path in (source, test):
        if path.exists():
            fail(f"{path.relative_to(root)} is there already")

    head = f"//===- {name}.cpp - {title} "
    pad = "-" * max(3, 100 - 7 - len(head))
    fields = dict(name=name, title=title + " ", pad=pad, upper=name.upper(), flag=flag, summary=summary,
                  sentence=sentence)
    entry = ENTRY.format(**fields)
    # Behind the previous entry: it ends at the first closing brace in column 0.
    end = td.index("\n}\n", before.start()) + len("\n}\n")
    new_td = td[:end] + "\n" + entry.rstrip("\n") + "\n" + td[end:]
    new_build = insert_after(build_text, rf"^  {folder}/{previous}\.cpp\n", f"  {folder}/{name}.cpp\n",
                             f"{previous}.cpp in CMakeLists.txt")
    text = pipeline.read_text()
    text = insert_after(text, rf"^  registerCounted\(\[\] \{{ return create{previous}Pass\(\); \}}, counters\);\n",
                        f"  registerCounted([] {{ return create{name}Pass(); }}, counters);\n", "the registration")
    text = add_to_pipeline(text, previous, [f"// {sentence}", f"pipeline.add(create{name}Pass());"])
    if text is None:
        fail(f"cannot find {options.after} in the pipeline")

    source.parent.mkdir(exist_ok=True)
    source.write_text(SOURCE.format(**fields))
    test.write_text(TEST.format(**fields))
    table.write_text(new_td)
    build.write_text(new_build)
    pipeline.write_text(text)
    print(f"wrote  passes/{folder}/{name}.cpp\n       test/passes/{stem}.mlir\n"
          f"added  {flag} to passes/Passes.td, CMakeLists.txt and Pipeline.cpp, after {options.after}\n"
          f"next   ninja -C build/dev tegula-opt && lit-22 -v build/dev/test --filter passes/{stem}")


if __name__ == "__main__":
    main()
