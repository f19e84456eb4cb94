//===- PrefixLoop.h - Matches loops that carry a running total --*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_ANALYSIS_PREFIXLOOP_H
#define TEGULA_PASSES_ANALYSIS_PREFIXLOOP_H

#include "passes/analysis/Matched.h"

namespace tegula {

/// A loop of plain operations whose steps meet in what it carries alone: what does not need that
/// may be done for several steps before.
struct SteppedLoop {
  tgl::ForOp loop;
  llvm::SmallVector<mlir::Operation *> before,
      after; ///< without what is carried; what needs it, and writes
};
std::optional<SteppedLoop> matchSteppedLoop(tgl::ForOp loop);

/// How many steps of it one thread takes together, so that their loads wait together; 1 where that
/// gains nothing. `hasLanes`: each step is a vector of points.
unsigned stepsTogether(const SteppedLoop &stepped, bool hasLanes);

/// Marks a loop that has work for data out of the ordinary alone: nothing waits for it.
inline constexpr llvm::StringLiteral seldomAttribute = "seldom";

/// Marks a write at places that data choose, of which no two steps of the loop around are the same:
/// it was a point's of a `parallel` (passes/fuse/MergeLoops.cpp).
inline constexpr llvm::StringLiteral apartAttribute = "apart";

/// One that carries a total: what is combined in each step does not depend on the total, and no two
/// steps replace one element.
struct PrefixLoop : SteppedLoop {
  mlir::Operation *combine = nullptr; ///< associative; of the total and `added`
  mlir::Value added;
};
Matched<PrefixLoop> matchPrefixLoop(tgl::ForOp loop);

/// One that carries h, of f32, and goes on with `factor*h + added`, neither of which depends on h;
/// no two steps replace one element.
struct AffineLoop : SteppedLoop {
  mlir::Value factor, added;
};
std::optional<AffineLoop> matchAffineLoop(tgl::ForOp loop);

} // namespace tegula

#endif // TEGULA_PASSES_ANALYSIS_PREFIXLOOP_H
