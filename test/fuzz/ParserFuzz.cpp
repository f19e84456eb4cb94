//===- ParserFuzz.cpp - Any bytes through parser, messages and printer -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is wrong is reported inside of the text and rendered; what is right is printed to a text
// with the same tree, and printing that changes nothing.
//
//===----------------------------------------------------------------------===//
#include "Require.h"
#include "frontend/diagnostics/Diagnostics.h"
#include "frontend/parse/Module.h"
#include "frontend/parse/Parser.h"
#include "frontend/print/Printer.h"

using namespace llvm;
using namespace tegula;

static std::string dumped(const ast::File &file) {
  std::string text;
  raw_string_ostream os(text);
  dump(file, os);
  return text;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  SourceManager sources;
  uint32_t id = sources.add("fuzz.tgl", text);
  Diagnostics diagnostics(sources);
  Module module(sources, id, diagnostics); // parses, and suggests rewrites
  const ast::File *file = &module.file();
  std::string rendered;
  raw_string_ostream os(rendered);
  diagnostics.printText(os, /*color=*/false);
  diagnostics.printJson(os);
  applyFixes(diagnostics, id);
  applyFixes(diagnostics, id, /*maybe=*/true);
  for (const Diagnostic &each : diagnostics.all()) {
    require(each.span.file == id && each.span.end <= size, "spans lie inside of the text");
    for (const Fix &fix : each.fixes) {
      std::vector<Edit> edits = fix.edits;
      llvm::sort(edits, [](const Edit &a, const Edit &b) { return a.span.begin < b.span.begin; });
      for (size_t i = 0; i != edits.size(); ++i)
        require(edits[i].span.file == id && edits[i].span.begin <= edits[i].span.end &&
                    edits[i].span.end <= size &&
                    (i == 0 || edits[i - 1].span.end <= edits[i].span.begin),
                "edits lie inside of the text and side by side");
    }
  }
  if (diagnostics.hasErrors())
    return 0;

  std::string printed = print(*file, sources.text(id));
  uint32_t again = sources.add("printed.tgl", printed);
  Diagnostics none(sources);
  auto second = parse(sources, again, none);
  require(!none.hasErrors(), "what is printed parses");
  require(dumped(*file) == dumped(*second), "what is printed has the same tree");
  require(print(*second, sources.text(again)) == printed, "printing is idempotent");
  return 0;
}
