//===- LineDiff.cpp - Lines that two texts of IR have in common ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/report/LineDiff.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <algorithm>

using namespace llvm;

namespace tegula::report {
namespace {

/// Texts that differ by more edits than this are told as one removed and one added.
constexpr int maxEdits = 2000;

std::string withoutNumbers(StringRef line) {
  std::string key;
  for (size_t at = 0; at < line.size();) {
    size_t start = at;
    if (line[at] == '%')
      at += 1;
    else if (line.substr(at).starts_with("^bb"))
      at += 3;
    if (at == start || at == line.size() || !isDigit(line[at])) {
      key += line[start];
      at = start + 1;
      continue;
    }
    key += line.slice(start, at);
    while (at < line.size() && isDigit(line[at]))
      ++at;
  }
  return key;
}

/// The shortest way from one sequence to another (Myers, "An O(ND) Difference Algorithm and Its
/// Variations", 1986).
class Difference {
public:
  Difference(const std::vector<unsigned> &before, const std::vector<unsigned> &after)
      : a(before), b(after) {}

  /// Whether each step of the way is one in both (Same), in `before` or in `after`.
  std::vector<DiffLine::Kind> run() {
    int n = a.size(), m = b.size(), most = std::min(n + m, maxEdits);
    std::vector<int> furthest(2 * most + 3, 0); // by diagonal x - y
    std::vector<std::vector<int>> trace;
    auto at = [&](int diagonal) -> int & { return furthest[diagonal + most + 1]; };
    for (int edits = 0; edits <= most; ++edits) {
      trace.emplace_back(furthest.begin() + (most + 1 - edits - 1),
                         furthest.begin() + (most + 1 + edits + 2));
      for (int diagonal = -edits; diagonal <= edits; diagonal += 2) {
        bool down =
            diagonal == -edits || (diagonal != edits && at(diagonal - 1) < at(diagonal + 1));
        int x = down ? at(diagonal + 1) : at(diagonal - 1) + 1;
        while (x < n && x - diagonal < m && a[x] == b[x - diagonal])
          ++x;
        at(diagonal) = x;
        if (x >= n && x - diagonal >= m)
          return wayBack(trace, edits);
      }
    }
    std::vector<DiffLine::Kind> all(n, DiffLine::Removed);
    all.insert(all.end(), m, DiffLine::Added);
    return all;
  }

private:
  std::vector<DiffLine::Kind> wayBack(const std::vector<std::vector<int>> &trace, int edits) {
    std::vector<DiffLine::Kind> way;
    int x = a.size(), y = b.size();
    for (; edits >= 0; --edits) {
      const std::vector<int> &before = trace[edits]; // diagonals -edits - 1 to edits + 1
      auto at = [&](int diagonal) { return before[diagonal + edits + 1]; };
      int diagonal = x - y;
      bool down = diagonal == -edits || (diagonal != edits && at(diagonal - 1) < at(diagonal + 1));
      int fromX = edits ? at(down ? diagonal + 1 : diagonal - 1) : 0;
      int fromY = edits ? fromX - (down ? diagonal + 1 : diagonal - 1) : 0;
      while (x > fromX && y > fromY) {
        way.push_back(DiffLine::Same);
        --x, --y;
      }
      if (edits)
        way.push_back(down ? DiffLine::Added : DiffLine::Removed);
      x = fromX, y = fromY;
    }
    std::reverse(way.begin(), way.end());
    return way;
  }

  const std::vector<unsigned> &a, &b;
};

} // namespace

std::vector<DiffLine> diffLines(StringRef before, StringRef after) {
  StringMap<unsigned> numbers;
  auto split = [&](StringRef text, SmallVectorImpl<StringRef> &lines) {
    std::vector<unsigned> result;
    text.rtrim('\n').split(lines, '\n');
    for (StringRef line : lines)
      result.push_back(numbers.try_emplace(withoutNumbers(line), numbers.size()).first->second);
    return result;
  };
  SmallVector<StringRef> oldLines, newLines;
  std::vector<unsigned> a = split(before, oldLines), b = split(after, newLines);
  std::vector<DiffLine> result;
  size_t x = 0, y = 0;
  for (DiffLine::Kind kind : Difference(a, b).run()) {
    result.push_back({kind, kind == DiffLine::Removed ? oldLines[x] : newLines[y]});
    x += kind != DiffLine::Added;
    y += kind != DiffLine::Removed;
  }
  return result;
}

std::vector<Hunk> hunksOf(ArrayRef<DiffLine> lines, size_t context) {
  std::vector<Hunk> hunks;
  size_t before = 1, after = 1; // of line `at`
  size_t end = 0;               // of the last hunk
  for (size_t at = 0; at < lines.size(); ++at) {
    if (lines[at].kind != DiffLine::Same) {
      size_t begin = at - std::min(at, context);
      if (hunks.empty() || begin > end) {
        begin = std::max(begin, end);
        hunks.push_back({before - (at - begin), after - (at - begin), {}});
        hunks.back().lines = lines.slice(begin, 0);
      }
      end = std::min(at + 1 + context, lines.size());
      size_t first = hunks.back().lines.data() - lines.data();
      hunks.back().lines = lines.slice(first, end - first);
    }
    before += lines[at].kind != DiffLine::Added;
    after += lines[at].kind != DiffLine::Removed;
  }
  return hunks;
}

} // namespace tegula::report
