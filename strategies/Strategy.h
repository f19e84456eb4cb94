//===- Strategy.h - The interface of strategies -----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A strategy says when it applies and writes its decisions into the launch. Each lives in a file of
// its own here; Strategy.cpp lists them, special ones first. `general` applies to everything.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_STRATEGY_H
#define TEGULA_STRATEGIES_STRATEGY_H

#include "ir/tgl/Tgl.h"
#include "passes/analysis/Matched.h"
#include "target/TargetInfo.h"
#include <string>

namespace tegula {

/// Over the launches of a kernel so far.
struct ScheduleCounts {
  unsigned axesReordered = 0;
  unsigned tiled = 0;    // statements that tensor cores compute
  unsigned resident = 0; // loops that keep their weights
};

struct ScheduleRequest {
  TargetInfo target;
  std::string tensorTile; // PipelineOptions::tensorTile
  bool usesAsyncStores;   // a recurrence sends its states by st.async; else clusters synchronise at
                          // barriers
};

class Strategy {
public:
  virtual ~Strategy() = default;
  virtual llvm::StringRef name() const = 0;
  /// Whether it computes a statement of the launch. Where it does not, and somebody listens,
  /// remarks say why.
  virtual bool applies(tgl::LaunchOp launch, const ScheduleRequest &request) const = 0;
  /// Orders axes and sets `mapping`s and parameters; changes nothing but the order of computation.
  virtual void schedule(tgl::LaunchOp launch, const ScheduleRequest &request,
                        ScheduleCounts &counts) const = 0;
};

/// Whether `match` matches a statement of the launch; else a remark of the strategy for each says
/// why not.
template <typename Match>
bool matchesAny(tgl::LaunchOp launch, llvm::StringRef strategy, Match match) {
  llvm::SmallVector<Mismatch> mismatches;
  for (auto op : launch.getBody().getOps<tgl::ParallelOp>()) {
    auto matched = match(op);
    if (matched)
      return true;
    mismatches.push_back(matched.mismatch());
    if (!mismatches.back().where)
      mismatches.back().where = op;
  }
  for (const Mismatch &mismatch : mismatches)
    remarkMismatch(launch, strategy, mismatch);
  return false;
}

/// All strategies in order of preference.
llvm::ArrayRef<const Strategy *> strategies();

/// Matrix products on tensor cores.
const Strategy &contractionStrategy();
/// Tile loops with matrix products inside on tensor cores.
const Strategy &tileLoopStrategy();
/// Loops over time with weights in registers.
const Strategy &recurrenceStrategy();
/// Reductions over the columns of products on tensor cores.
const Strategy &productReductionStrategy();
/// The strategy of last resort.
const Strategy &generalStrategy();

} // namespace tegula

#endif // TEGULA_STRATEGIES_STRATEGY_H
