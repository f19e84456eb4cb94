//===- LineDiff.h - Lines that two texts of IR have in common *- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_REPORT_LINEDIFF_H
#define TEGULA_BENCH_REPORT_LINEDIFF_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <vector>

namespace tegula::report {

struct DiffLine {
  enum Kind { Same, Removed, Added } kind;
  llvm::StringRef text; ///< of the text that has it; of the second where both have
};

/// The lines of two texts in the order of both, with as few removed and added as there must be.
/// Lines that differ in the numbers of values alone (`%12`, `^bb3`) are the same.
std::vector<DiffLine> diffLines(llvm::StringRef before, llvm::StringRef after);

/// A stretch of lines around changes; `before` and `after` number its first line in the two texts,
/// from 1.
struct Hunk {
  size_t before, after;
  llvm::ArrayRef<DiffLine> lines;
};

/// The stretches that differ, with `context` lines before and after each change: those of a unified
/// diff.
std::vector<Hunk> hunksOf(llvm::ArrayRef<DiffLine> lines, size_t context = 3);

} // namespace tegula::report

#endif // TEGULA_BENCH_REPORT_LINEDIFF_H
