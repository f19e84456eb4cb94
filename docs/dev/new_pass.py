#!/usr/bin/env python3
"""Adds a pass: its source, its entry in Passes.td, its place in the build and the pipeline, its test.

    docs/dev/new_pass.py FoldSigns --summary "folds signs into constants" --after tgl-simplify-accesses
    docs/dev/new_pass.py --tile SplitPrecision --summary "splits operands into terms" --after tgl-form-tiles

The new pass counts the kernels that it sees and changes nothing; it builds, its test passes, and --disable
takes its flag. What to do next is in docs/add-a-pass.md, for one over the tile dialect (--tile) in
docs/add-a-tile-pass.md.
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

HEADER = """\
//===- {name}.cpp - {title}{pad}===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
"""

SOURCE = HEADER + """\
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

TILE_SOURCE = HEADER + """\
#include "passes/tile/TilePasses.h"

using namespace mlir;
using namespace tegula;

namespace tegula {{
#define GEN_PASS_DEF_{upper}PASS
#include "passes/tile/TilePasses.h.inc"
}} // namespace tegula

namespace {{
struct {name}Pass : Counted<tegula::impl::{name}PassBase<{name}Pass>> {{
  void runOnOperation() override {{
    getOperation().walk([&](tile::KernelOp kernel) {{
      (void)kernel;
      count("kernels seen");
    }});
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
  }}];{dialects}
}}

"""

TILE_DIALECTS = """
  let dependentDialects = ["::tegula::tile::TileDialect"];"""

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


TILE_TEST = """\
// RUN: tegula-opt %s --{flag} --tgl-counters 2>&1 | FileCheck %s

// CHECK-LABEL: tgl.kernel @rows
// CHECK: tile.zero : !tile.tile<32x16xf32, #tile.mma<2x1>>
// CHECK: {flag}: 1 kernels seen
tgl.kernel @rows(%x: !tgl.tensor<[M], f32> {{tgl.name = "x", tgl.role = "in"}}) sizes [M = 0 : 0] {{
  tgl.launch "a" strategy "product-reduction" {{
    tile.kernel "a" (%t = 0 to (M + 31) floordiv 32) attributes {{threads = 64 : i64}} {{
      %m = tile.span 32*%t to M : !tile.span<32>
      %c = tile.zero : !tile.tile<32x16xf32, #tile.mma<2x1>>
    }}
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
    found = re.search(rf"^( +)pipeline\.add(?:Preparation)?\(create{previous}Pass\(.*\)\);\n", text, re.MULTILINE)
    if not found:
        return None
    indent, end = found.group(1), found.end()
    branch = r" *(?:\} )?(?:else )?if \(.*\)\n$| *(?:\} )?else\n$"
    if re.search(branch, text[: found.start()].splitlines(keepends=True)[-1]):
        indent = indent[2:]
        rest = re.match(rf"(?:{indent}else.*\n{indent}  .*\n)*", text[end:])
        end += rest.end()
    return text[:end] + "".join(f"{indent}{line}\n" for line in addition) + text[end:]


def behind(text, previous, entry):
    """`text`, a table of passes, with an entry behind that of the pass `previous`."""
    start = text.index(f"def {previous}Pass : ")
    end = text.index("\n}\n", start) + len("\n}\n")  # the first closing brace in column 0
    return text[:end] + "\n" + entry.rstrip("\n") + "\n" + text[end:]


def add_pass(root, previous, fields):
    """The files of a pass over tgl, by path: written anew or with the pass added."""
    name = fields["name"]
    build, pipeline = root / "passes" / "CMakeLists.txt", root / "passes" / "Pipeline.cpp"
    # In the folder, that of a phase, of the pass that it follows.
    folder = re.search(rf"^  (\w+)/{previous}\.cpp$", build.read_text(), re.MULTILINE)
    if not folder:
        fail(f"cannot find {previous}.cpp in CMakeLists.txt")
    folder = folder.group(1)
    text = insert_after(pipeline.read_text(),
                        rf"^  registerCounted\(\[\] \{{ return create{previous}Pass\(\); \}}, counters\);\n",
                        f"  registerCounted([] {{ return create{name}Pass(); }}, counters);\n", "the registration")
    text = add_to_pipeline(text, previous, [f"// {fields['sentence']}", f"pipeline.add(create{name}Pass());"])
    if text is None:
        fail(f"cannot find {previous} in the pipeline")
    return {root / "passes" / folder / f"{name}.cpp": SOURCE.format(**fields),
            root / "test" / "passes" / f"{fields['stem']}.mlir": TEST.format(**fields),
            build: insert_after(build.read_text(), rf"^  {folder}/{previous}\.cpp\n", f"  {folder}/{name}.cpp\n",
                                f"{previous}.cpp in CMakeLists.txt"),
            pipeline: text}


def add_tile_pass(root, previous, fields):
    """The same of a pass over the tile dialect."""
    name = fields["name"]
    build, pipeline = root / "passes" / "CMakeLists.txt", root / "passes" / "tile" / "TilePipeline.cpp"
    text = insert_after(pipeline.read_text(), rf"^  registerCounted\(\[\] \{{ return create{previous}Pass\(\); \}}\);\n",
                        f"  registerCounted([] {{ return create{name}Pass(); }});\n", "the registration")
    text = insert_after(text, rf"^  passes\.push_back\(create{previous}Pass\(.*\)\);\n",
                        f"  passes.push_back(create{name}Pass());\n", f"{previous} in the pipeline")
    return {root / "passes" / "tile" / f"{name}.cpp": TILE_SOURCE.format(**fields),
            root / "test" / "passes" / f"tile-{fields['stem']}.mlir": TILE_TEST.format(**fields),
            build: insert_after(build.read_text(), rf"^  tile/{previous}\.cpp\n", f"  tile/{name}.cpp\n",
                                f"{previous}.cpp in CMakeLists.txt"),
            pipeline: text}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="a verb phrase in CamelCase: FoldSigns")
    parser.add_argument("--summary", default="", help="what it does, as `folds signs into constants`")
    parser.add_argument("--tile", action="store_true", help="a pass over the tile dialect, in passes/tile")
    parser.add_argument("--after", help="flag of the pass that it follows (default: tgl-simplify-accesses; with --tile "
                                        "tile-choose-copies)")
    parser.add_argument("--root", default=str(ROOT), help=argparse.SUPPRESS)
    options = parser.parse_args()
    root = pathlib.Path(options.root)
    name = options.name
    if not re.fullmatch(r"[A-Z][a-z0-9]+([A-Z][a-z0-9]+)*", name):
        fail(f"a pass is called like FoldSigns, not '{name}'")
    words = re.findall(r"[A-Z][a-z0-9]+", name)
    stem = "-".join(word.lower() for word in words)
    flag = f"tile-{stem}" if options.tile else f"tgl-{stem}"
    title = " ".join([words[0]] + [word.lower() for word in words[1:]])
    summary = options.summary or title[0].lower() + title[1:]
    after = options.after or ("tile-choose-copies" if options.tile else "tgl-simplify-accesses")

    table = root / "passes" / ("tile/TilePasses.td" if options.tile else "Passes.td")
    td = table.read_text()
    before = re.search(rf'def (\w+)Pass : Pass<"{re.escape(after)}"', td)
    if not before:
        fail(f"no pass has the flag {after}")
    head = f"//===- {name}.cpp - {title} "
    fields = dict(name=name, title=title + " ", pad="-" * max(3, 100 - 7 - len(head)), upper=name.upper(), flag=flag,
                  stem=stem, summary=summary, sentence=summary[0].upper() + summary[1:] + ".",
                  dialects=TILE_DIALECTS if options.tile else "")
    files = (add_tile_pass if options.tile else add_pass)(root, before.group(1), fields)
    source, test = list(files)[:2]
    for path in (source, test):
        if path.exists():
            fail(f"{path.relative_to(root)} is there already")
    files[table] = behind(td, before.group(1), ENTRY.format(**fields))

    for path, text in files.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    pipeline = "TilePipeline.cpp" if options.tile else "Pipeline.cpp"
    print(f"wrote  {source.relative_to(root)}\n       {test.relative_to(root)}\n"
          f"added  {flag} to {table.relative_to(root)}, CMakeLists.txt and {pipeline}, after {after}\n"
          f"next   ninja -C build/dev tegula-opt && lit-22 -v build/dev/test --filter passes/{test.stem}")


if __name__ == "__main__":
    main()
