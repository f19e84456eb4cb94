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

namespace {
class RecurrenceStrategy final : public StatementStrategy {
public:
  RecurrenceStrategy() : StatementStrategy("recurrence", "recurrence") {}

protected:
  Matched<Attribute> match(ParallelOp op, const ScheduleRequest &request) const override {
    Matched<RecurrencePlan> plan = planRecurrence(op);
    if (!plan)
      return plan.mismatch();
    std::optional<int64_t> asked =
        settingOf(scheduleSettings(op->getParentOfType<KernelOp>()), "cluster");
    Matched<RecurrenceShape> shape =
        chooseRecurrenceShape(*plan, request.target.clusterBlocks, asked.value_or(0));
    if (shape)
      shape->countsBytes = request.usesAsyncStores && shape->cluster > 1;
    return attributeOf(shape, op);
  }

  unsigned &counterIn(ScheduleCounts &counts) const override { return counts.resident; }
};
} // namespace

const StatementStrategy &tegula::recurrenceStrategy() {
  static const RecurrenceStrategy instance;
  return instance;
}
