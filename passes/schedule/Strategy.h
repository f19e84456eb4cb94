//===- Strategy.h - Ways to run a launch --------------------------------*- C++ -*-===//
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
#ifndef TEGULA_PASSES_SCHEDULE_STRATEGY_H
#define TEGULA_PASSES_SCHEDULE_STRATEGY_H

#include "ir/Tgl.h"
#include "passes/Pipeline.h"

namespace tegula {

/// Over the launches of a kernel so far.
struct ScheduleCounts {
  unsigned axesReordered = 0;
  unsigned tiled = 0; // statements that tensor cores compute
  unsigned resident = 0; // loops that keep their weights
};

struct ScheduleRequest {
  Machine machine;
  std::string tensorTile; // PipelineOptions::tensorTile
  int64_t clusterBlocks;  // PipelineOptions::clusterBlocks
  TileMachine tiles;      // PipelineOptions::tiles
  bool countedStores;     // of a recurrence's states; else its clusters meet at barriers
};

class Strategy {
public:
  virtual ~Strategy() = default;
  virtual llvm::StringRef name() const = 0;
  virtual bool applies(tgl::LaunchOp launch, const ScheduleRequest &request) const = 0;
  /// Orders axes and sets `mapping`s and parameters; changes nothing but the order of computation.
  virtual void schedule(tgl::LaunchOp launch, const ScheduleRequest &request, ScheduleCounts &counts) const = 0;
};

/// All strategies in order of preference.
llvm::ArrayRef<const Strategy *> strategies();

/// Matrix products on tensor cores.
const Strategy &contractionStrategy();
/// Tile loops with matrix products inside on tensor cores.
const Strategy &rowTilesStrategy();
/// Loops over time with weights in registers.
const Strategy &recurrenceStrategy();
/// The strategy of last resort.
const Strategy &generalStrategy();

} // namespace tegula

#endif // TEGULA_PASSES_SCHEDULE_STRATEGY_H
