//===- UnifiedDiff.cpp - Two texts as a patch --------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/UnifiedDiff.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FormatVariadic.h"
#include <vector>

using namespace llvm;

namespace tegula {

namespace {
struct Line {
  char mark; // ' ', '-' or '+'
  StringRef text;
};
} // namespace

/// Lines with their ends, so that a last line without one differs from one with it.
static SmallVector<StringRef> linesOf(StringRef text) {
  SmallVector<StringRef> lines;
  while (!text.empty()) {
    size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.take_front(length));
    text = text.drop_front(length);
  }
  return lines;
}

/// What changed in the middle, as few lines as there must be.
static void compare(ArrayRef<StringRef> before, ArrayRef<StringRef> after,
                    std::vector<Line> &lines) {
  constexpr size_t largest = 1 << 22; // cells of the table; beyond it all is taken as changed
  if (before.size() * after.size() > largest) {
    for (StringRef line : before)
      lines.push_back({'-', line});
    for (StringRef line : after)
      lines.push_back({'+', line});
    return;
  }
  size_t width = after.size() + 1;
  std::vector<unsigned> common((before.size() + 1) * width); // of what follows
  for (size_t i = before.size(); i--;)
    for (size_t j = after.size(); j--;)
      common[i * width + j] =
          before[i] == after[j] ? common[(i + 1) * width + j + 1] + 1
                                : std::max(common[(i + 1) * width + j], common[i * width + j + 1]);
  size_t i = 0, j = 0;
  while (i != before.size() || j != after.size()) {
    if (i != before.size() && j != after.size() && before[i] == after[j]) {
      lines.push_back({' ', before[i]});
      ++i, ++j;
    } else if (j == after.size() ||
               (i != before.size() && common[(i + 1) * width + j] >= common[i * width + j + 1])) {
      lines.push_back({'-', before[i++]});
    } else {
      lines.push_back({'+', after[j++]});
    }
  }
}

void printUnifiedDiff(raw_ostream &os, StringRef path, StringRef before, StringRef after) {
  if (before == after)
    return;
  SmallVector<StringRef> old = linesOf(before), made = linesOf(after);
  size_t head = 0, tail = 0;
  while (head < old.size() && head < made.size() && old[head] == made[head])
    ++head;
  while (tail < old.size() - head && tail < made.size() - head &&
         old[old.size() - 1 - tail] == made[made.size() - 1 - tail])
    ++tail;
  std::vector<Line> lines;
  for (StringRef line : ArrayRef(old).take_front(head))
    lines.push_back({' ', line});
  compare(ArrayRef(old).drop_front(head).drop_back(tail),
          ArrayRef(made).drop_front(head).drop_back(tail), lines);
  for (StringRef line : ArrayRef(old).take_back(tail))
    lines.push_back({' ', line});

  constexpr size_t around = 3;
  os << "--- " << path << "\n+++ " << path << '\n';
  size_t oldLine = 1, newLine = 1;
  for (size_t at = 0; at != lines.size();) {
    auto isChanged = [&](size_t i) { return lines[i].mark != ' '; };
    size_t change = at;
    while (change != lines.size() && !isChanged(change))
      ++change;
    if (change == lines.size())
      break;
    size_t begin = std::max(at, change - std::min(change, around)), end = change;
    for (size_t i = change; i != lines.size() && i <= end + 2 * around; ++i)
      if (isChanged(i))
        end = i;
    end = std::min(end + 1 + around, lines.size());
    oldLine += begin - at, newLine += begin - at;
    size_t oldCount = 0, newCount = 0;
    for (size_t i = begin; i != end; ++i) {
      oldCount += lines[i].mark != '+';
      newCount += lines[i].mark != '-';
    }
    os << formatv("@@ -{0},{1} +{2},{3} @@\n", oldCount ? oldLine : oldLine - 1, oldCount,
                  newCount ? newLine : newLine - 1, newCount);
    for (size_t i = begin; i != end; ++i) {
      os << lines[i].mark << lines[i].text;
      if (!lines[i].text.ends_with('\n'))
        os << "\n\\ No newline at end of file\n";
    }
    oldLine += oldCount, newLine += newCount;
    at = end;
  }
}

} // namespace tegula
