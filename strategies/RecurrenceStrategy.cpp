//===- RecurrenceStrategy.cpp - Strategy `recurrence`: persistent RNNs ----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a GPU a launch of one statement whose rows walk a loop with resident weights
// (strategies/recurrence/plan/Recurrence.h).
//
//===----------------------------------------------------------------------===//
#include "strategies/ScheduleBlock.h"
#include "strategies/Strategy.h"
#include "strategies/recurrence/plan/Recurrence.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

static Matched<RecurrenceShape> chooseShape(ParallelOp op, const ScheduleRequest &request) {
  Matched<RecurrencePlan> plan = planRecurrence(op);
  if (!plan)
    return plan.mismatch();
  std::optional<int64_t> asked =
      settingOf(scheduleSettings(op->getParentOfType<KernelOp>()), "cluster");
  return chooseRecurrenceShape(*plan, request.target.clusterBlocks, asked.value_or(0));
}

namespace {
class Recurrence final : public Strategy {
public:
  StringRef name() const override { return "recurrence"; }

  bool applies(LaunchOp launch, const ScheduleRequest &request) const override {
    return request.target.isGpu() &&
           matchesAny(launch, name(), [&](ParallelOp op) { return chooseShape(op, request); });
  }

  void schedule(LaunchOp launch, const ScheduleRequest &request,
                ScheduleCounts &counts) const override {
    generalStrategy().schedule(launch, request, counts);
    for (ParallelOp op : launch.getBody().getOps<ParallelOp>())
      if (std::optional<RecurrenceShape> shape = chooseShape(op, request)) {
        shape->countsBytes = request.usesAsyncStores && shape->cluster > 1;
        op->setAttr("recurrence", shape->toAttribute(op.getContext()));
        ++counts.resident;
      }
  }
};
} // namespace

const Strategy &tegula::recurrenceStrategy() {
  static const Recurrence instance;
  return instance;
}
