//===- FixUntilStable.cpp - Fixes applied until none is left -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/diagnostics/FixUntilStable.h"
#include "llvm/ADT/Twine.h"
#include <map>
#include <set>

using namespace llvm;

namespace tegula {

/// Identifies a diagnostic by its text, not by its position.
using Message = std::pair<Code, std::string>;

/// Applies fixes, except those of messages in `refused`, round after round. Returns false where the
/// rounds do not end, and adds the messages of the repeating fixes to `endless`.
static bool fixInRounds(FixedText &result, bool maybe, CheckText check,
                        const std::set<Message> &refused, std::set<Message> &endless) {
  // Each round may open one level of what nests, of which there are 256.
  constexpr unsigned rounds = 300;
  // Edits that make a text longer than this write without an end.
  const size_t longest = 2 * result.text.size() + 65536;
  std::map<std::string, size_t> seen; // the round that began with the text
  std::vector<std::set<Message>> made;
  while (true) {
    auto [known, isNew] = seen.try_emplace(result.text, made.size());
    if (!isNew || made.size() == rounds || result.text.size() > longest) {
      // All of a circle; of what grows the last few rounds.
      size_t from = isNew ? made.size() - std::min<size_t>(made.size(), 8) : known->second;
      for (; from != made.size(); ++from)
        endless.insert(made[from].begin(), made[from].end());
      return false;
    }
    std::set<Message> &now = made.emplace_back();
    std::string fixed;
    check(result.text, [&](const Diagnostics &diagnostics, uint32_t file) {
      std::vector<Edit> edits;
      auto isRefused = [&](const Diagnostic &one) {
        return refused.count({one.code, one.message}) != 0;
      };
      for (const auto &[diagnostic, fix] : chooseFixes(diagnostics, file, maybe, isRefused)) {
        edits.insert(edits.end(), fix->edits.begin(), fix->edits.end());
        now.insert({diagnostic->code, diagnostic->message});
        auto [line, column] =
            diagnostics.sourceManager().lineAndColumn(file, diagnostic->span.begin);
        result.done.push_back((Twine(line) + ":" + Twine(column) + ": fixed " +
                               codeInfo(diagnostic->code).code + ": " + fix->message)
                                  .str());
      }
      fixed = applyEdits(result.text, std::move(edits));
    });
    if (fixed == result.text)
      return true;
    result.text = std::move(fixed);
  }
}

FixedText fixUntilStable(StringRef text, bool maybe, CheckText check) {
  std::set<Message> refused;
  constexpr unsigned attempts = 8;
  for (unsigned attempt = 0; attempt != attempts; ++attempt) {
    FixedText result{text.str(), {}};
    std::set<Message> endless;
    if (fixInRounds(result, maybe, check, refused, endless))
      return result;
    refused.insert(endless.begin(), endless.end());
  }
  return {text.str(), {}};
}

} // namespace tegula
