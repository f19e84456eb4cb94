//===- StatementWork.h - Chooses a thread or a team for each point -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_GENERAL_PLAN_STATEMENTWORK_H
#define TEGULA_STRATEGIES_GENERAL_PLAN_STATEMENTWORK_H

#include "codegen/simt/DeviceShape.h"
#include "ir/tgl/Tgl.h"

namespace tegula {

/// Fewer points in a nest than this are not worth a team.
inline constexpr int64_t shortNest = 16;
/// Rows of a length that data gives begin anywhere: threads with a row each waste most of what
/// memory delivers.
inline constexpr int64_t shortRange = 4;
/// Threads that keep a large GPU busy: a point for each is as good as a team for each.
inline constexpr int64_t manyThreads = 32768;

/// The properties of a statement that decide between a thread and a team for each point.
struct StatementWork {
  bool hasParallel = false, hasReduce = false, hasSort = false, hasPrefix = false;
  bool hasTemporaries = false, hasLarge = false; ///< temporaries that a thread has no room for
  bool hasShared = false; ///< temporaries of which threads of a team read each other's elements
  bool hasSteps = false;  ///< loops whose steps are nests
  /// Threads that share a point, where tgl-chain-launches has chosen them.
  std::optional<int64_t> team;
  bool hasRanges = false; ///< reductions of a length that data gives; `inside` counts with its mean
  /// All teams do the same, and none reads what another writes: nests of known points that hold no
  /// others.
  bool isPlain = true;
  std::optional<int64_t> points;
  /// Points of the largest nest that a team deals out; nothing: not known.
  std::optional<int64_t> inside = 0;

  explicit StatementWork(tgl::ParallelOp op);
  bool isKnown() const { return points && inside; }
};

/// The team for nests of so many points.
DeviceShape teamFor(const StatementWork &work);

} // namespace tegula

#endif // TEGULA_STRATEGIES_GENERAL_PLAN_STATEMENTWORK_H
