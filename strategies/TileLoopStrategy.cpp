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

static Matched<TileLoopShape> chooseShape(ParallelOp op) {
  Matched<TileLoopPlan> plan = planTileLoop(op);
  if (!plan)
    return plan.mismatch();
  return chooseTileLoopShape(*plan, scheduleSettings(op->getParentOfType<KernelOp>()));
}

namespace {
class RowTiles final : public Strategy {
public:
  StringRef name() const override { return "tile-loop"; }

  bool applies(LaunchOp launch, const ScheduleRequest &request) const override {
    return request.target.isGpu() &&
           matchesAny(launch, name(), [&](ParallelOp op) { return chooseShape(op); });
  }

  void schedule(LaunchOp launch, const ScheduleRequest &request,
                ScheduleCounts &counts) const override {
    generalStrategy().schedule(launch, request, counts);
    for (ParallelOp op : launch.getBody().getOps<ParallelOp>())
      if (std::optional<TileLoopShape> tile = chooseShape(op)) {
        op->setAttr("row_tile", tile->toAttribute(op.getContext()));
        ++counts.tiled;
      }
  }
};
} // namespace

const Strategy &tegula::tileLoopStrategy() {
  static const RowTiles instance;
  return instance;
}
