//===- UnifiedDiff.cpp - Two texts as a patch --------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/UnifiedDiff.h"
#include <dtl/dtl.hpp>
#include <sstream>
#include <string>
#include <vector>

using namespace llvm;

namespace tegula {

/// The lines of a text; a last line without an end carries the note that patches have for it.
static std::vector<std::string> linesOf(StringRef text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    lines.push_back(line.str());
    if (line.size() == text.size())
      lines.back() += "\n\\ No newline at end of file";
    text = rest;
  }
  return lines;
}

void printUnifiedDiff(raw_ostream &os, StringRef path, StringRef before, StringRef after) {
  if (before == after)
    return;
  dtl::Diff<std::string> diff(linesOf(before), linesOf(after));
  diff.compose();
  diff.composeUnifiedHunks();
  std::ostringstream hunks;
  diff.printUnifiedFormat(hunks);
  os << "--- " << path << "\n+++ " << path << '\n' << hunks.str();
}

} // namespace tegula
