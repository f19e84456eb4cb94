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
#include "strategies/RecurrenceStrategy.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::tgl;

namespace {
class RecurrenceStrategy final : public Strategy {
public:
  StringRef name() const override { return "recurrence"; }
  StringRef attributeName() const override { return RecurrenceShape::attributeName; }
  SmallVector<StringRef> switches() const override { return {asyncStores}; }
  unsigned &counterIn(ScheduleCounts &counts) const override { return counts.resident; }

  Match match(ParallelOp op, const ScheduleRequest &request) const override {
    return RecurrenceMatch::make(op, planRecurrence(op), [&](const RecurrencePlan &plan) {
      std::optional<int64_t> asked = settingOf(request.settings, "cluster");
      Matched<RecurrenceShape> shape =
          chooseRecurrenceShape(plan, request.target.clusterBlocks, asked.value_or(0));
      if (shape)
        shape->countsBytes = !request.isOff(asyncStores) && shape->cluster > 1;
      return shape;
    });
  }
  Match restore(ParallelOp op) const override {
    return RecurrenceMatch::restore(op, planRecurrence(op), RecurrenceShape::of(op));
  }

  StatementCost cost(const StatementMatch &match) const override {
    const RecurrenceShape &shape = cast<RecurrenceMatch>(match).shape;
    return {"clusters of " + std::to_string(shape.cluster) + " blocks of " +
                std::to_string(shape.threads) + " threads",
            std::nullopt,
            {}};
  }

  StringRef settings() const override { return "cluster"; }
  std::optional<int64_t> valueIn(const ScheduleSetting &setting, const StatementMatch &match,
                                 const TargetInfo &) const override {
    if (setting.keyword != "cluster")
      return std::nullopt;
    return cast<RecurrenceMatch>(match).shape.cluster;
  }
  std::optional<NearestShape> nearestTo(const ScheduleSetting &, const StatementMatch &match,
                                        const TargetInfo &) const override {
    const RecurrenceShape &shape = cast<RecurrenceMatch>(match).shape;
    return NearestShape{"recurrence that this loop can be",
                        "a cluster of " + std::to_string(shape.cluster) + " blocks of " +
                            std::to_string(shape.threads) +
                            " threads: registers and shared memory keep all weights there"};
  }

private:
  /// Sends states by st.async; else clusters synchronise at barriers.
  static constexpr StringLiteral asyncStores = "async-stores";
};
} // namespace

const Strategy &tegula::recurrenceStrategy() {
  static const RecurrenceStrategy instance;
  return instance;
}
