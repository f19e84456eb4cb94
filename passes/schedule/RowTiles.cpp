//===- RowTiles.cpp - Tile loops on tensor cores --------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a GPU a launch with a nest whose rows go through a tile loop together (RowTiles.h).
//
//===----------------------------------------------------------------------===//
#include "passes/ScheduleBlock.h"
#include "passes/schedule/Strategy.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

static std::optional<RowTile> chooseShape(ParallelOp op) {
  std::optional<RowTilePlan> plan = planRowTiles(op);
  return plan ? chooseRowTile(*plan, scheduleSettings(op->getParentOfType<KernelOp>())) : std::nullopt;
}

namespace {
class RowTiles final : public Strategy {
public:
  StringRef name() const override { return "row-tiles"; }

  bool applies(LaunchOp launch, const ScheduleRequest &request) const override {
    return request.machine == Machine::GPU && llvm::any_of(launch.getBody().getOps<ParallelOp>(), [](ParallelOp op) {
             return chooseShape(op).has_value();
           });
  }

  void schedule(LaunchOp launch, const ScheduleRequest &request, ScheduleCounts &counts) const override {
    generalStrategy().schedule(launch, request, counts);
    for (ParallelOp op : launch.getBody().getOps<ParallelOp>())
      if (std::optional<RowTile> tile = chooseShape(op)) {
        op->setAttr("row_tile", tile->toAttribute(op.getContext()));
        ++counts.tiled;
      }
  }
};
} // namespace

const Strategy &tegula::rowTilesStrategy() {
  static const RowTiles instance;
  return instance;
}
