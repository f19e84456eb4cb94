//===- ParserFuzz.cpp - Any bytes through parser, messages and printer -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is wrong is reported inside of the text and rendered; what is right is printed to a text with
// the same tree, and printing that changes nothing.
//
//===----------------------------------------------------------------------===//
#include "frontend/Diagnostics.h"
#include "frontend/Parser.h"
#include "frontend/Printer.h"
#include <cstdlib>

using namespace llvm;
using namespace tegula;

static void require(bool holds, const char *what) {
  if (holds)
    return;
  errs() << "violated: " << what << '\n';
  abort();
}

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
  auto file = parse(sources, id, diagnostics);
  std::string rendered;
  raw_string_ostream os(rendered);
  diagnostics.printText(os, /*color=*/false);
  diagnostics.printJson(os);
  applyFixes(diagnostics, id);
  for (const Diagnostic &each : diagnostics.all())
    require(each.span.file == id && each.span.end <= size, "spans lie inside of the text");
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
