//===- Recurrence.cpp - Loops whose state stays with a cluster of blocks --------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a GPU a launch of one statement whose rows walk a loop with resident weights (passes/Recurrence.h).
//
//===----------------------------------------------------------------------===//
#include "passes/Recurrence.h"
#include "passes/ScheduleBlock.h"
#include "passes/schedule/Strategy.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

static std::optional<RecurrenceShape> chooseShape(ParallelOp op, const ScheduleRequest &request) {
  std::optional<RecurrencePlan> plan = planRecurrence(op);
  std::optional<int64_t> asked = settingOf(scheduleSettings(op->getParentOfType<KernelOp>()), "cluster");
  return plan ? chooseRecurrenceShape(*plan, request.clusterBlocks, asked.value_or(0)) : std::nullopt;
}

namespace {
class Recurrence final : public Strategy {
public:
  StringRef name() const override { return "recurrence"; }

  bool applies(LaunchOp launch, const ScheduleRequest &request) const override {
    return request.machine == Machine::GPU &&
           llvm::any_of(launch.getBody().getOps<ParallelOp>(),
                        [&](ParallelOp op) { return chooseShape(op, request).has_value(); });
  }

  void schedule(LaunchOp launch, const ScheduleRequest &request, ScheduleCounts &counts) const override {
    generalStrategy().schedule(launch, request, counts);
    for (ParallelOp op : launch.getBody().getOps<ParallelOp>())
      if (std::optional<RecurrenceShape> shape = chooseShape(op, request)) {
        shape->countsBytes = request.countedStores && shape->cluster > 1;
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
