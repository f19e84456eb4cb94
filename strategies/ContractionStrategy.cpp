//===- ContractionStrategy.cpp - Matrix products on tensor cores ------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a GPU a launch with statements that are matrix products (ContractionPlan.h) of f16, bf16 or
// f32 elements. Each such statement gets its tile; what is none of them is scheduled as `general`
// does.
//
//===----------------------------------------------------------------------===//
#include "strategies/ScheduleBlock.h"
#include "strategies/Strategy.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace {
class ContractionStrategy final : public Strategy {
public:
  StringRef name() const override { return "contraction"; }

  bool applies(LaunchOp launch, const ScheduleRequest &request) const override {
    return request.target.isGpu() &&
           matchesAny(launch, name(), [&](ParallelOp op) { return chooseTile(op); });
  }

  void schedule(LaunchOp launch, const ScheduleRequest &request,
                ScheduleCounts &counts) const override {
    generalStrategy().schedule(launch, request, counts);
    SmallVector<ScheduleSetting> settings = scheduleSettings(launch->getParentOfType<KernelOp>());
    for (ParallelOp op : launch.getBody().getOps<ParallelOp>())
      if (std::optional<TensorTile> tile = chooseTile(
              op, settings, request.target, wantedTile(request.tensorTile, counts.tiled))) {
        op->setAttr("tile", tile->toAttribute(op.getContext()));
        ++counts.tiled;
      }
  }
};
} // namespace

const Strategy &tegula::contractionStrategy() {
  static const ContractionStrategy instance;
  return instance;
}
