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
class ContractionStrategy final : public StatementStrategy {
public:
  ContractionStrategy() : StatementStrategy("contraction", "tile") {}

protected:
  Matched<Attribute> match(ParallelOp op, const ScheduleRequest &request) const override {
    return attributeOf(chooseTile(op), op);
  }

  Matched<Attribute> matchOrdered(ParallelOp op, const ScheduleRequest &request,
                                  unsigned count) const override {
    SmallVector<ScheduleSetting> settings = scheduleSettings(op->getParentOfType<KernelOp>());
    return attributeOf(
        chooseTile(op, settings, request.target, wantedTile(request.tensorTile, count)), op);
  }
};
} // namespace

const StatementStrategy &tegula::contractionStrategy() {
  static const ContractionStrategy instance;
  return instance;
}
