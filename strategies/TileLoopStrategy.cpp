//===- TileLoopStrategy.cpp - Strategy `tile-loop`: fused tile loops on tensor cores ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a GPU a launch with a nest whose rows go through a tile loop together (TileLoop.h).
//
//===----------------------------------------------------------------------===//
#include "strategies/ScheduleBlock.h"
#include "strategies/Strategy.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace {
class TileLoopStrategy final : public StatementStrategy {
public:
  TileLoopStrategy() : StatementStrategy("tile-loop", "row_tile") {}

protected:
  Matched<Attribute> match(ParallelOp op, const ScheduleRequest &request) const override {
    Matched<TileLoopPlan> plan = planTileLoop(op);
    if (!plan)
      return plan.mismatch();
    return attributeOf(
        chooseTileLoopShape(*plan, scheduleSettings(op->getParentOfType<KernelOp>())), op);
  }
};
} // namespace

const StatementStrategy &tegula::tileLoopStrategy() {
  static const TileLoopStrategy instance;
  return instance;
}
