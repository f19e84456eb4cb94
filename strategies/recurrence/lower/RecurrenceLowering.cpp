//===- RecurrenceLowering.cpp - The launch of a recurrence ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/RecurrenceStrategy.h"
#include "strategies/lower/StrategyLowering.h"
#include "strategies/recurrence/lower/PersistentRecurrence.h"

using namespace llvm;
using namespace tegula;

/// Of weights in shared memory.
static int64_t sharedBytesOf(const RecurrenceMatch &match) {
  return match.shape.sharedBytes(match.shape.weightsOfThread(match.plan).value_or(0));
}

namespace {
class RecurrenceLowering final : public StrategyLowering {
public:
  /// All, where the device's clusters are as large as the shape's.
  Coverage coverage(const StatementMatch &match, const EmitterOptions &options) const override {
    const auto &recurrence = cast<RecurrenceMatch>(match);
    bool fits = recurrence.shape.cluster <= options.target.clusterBlocks &&
                sharedBytesOf(recurrence) <= options.target.sharedBytes;
    return fits && !options.checked ? Coverage::Whole : Coverage::None;
  }

  void lower(StatementLowering &statement, const StatementMatch &match) const override {
    const RecurrencePlan &plan = cast<RecurrenceMatch>(match).plan;
    const RecurrenceShape &shape = cast<RecurrenceMatch>(match).shape;
    DeviceEmitter emitter = statement.kernel.newEmitter();
    PersistentRecurrence recurrence(emitter, plan, shape);
    PlanFunction &function = statement.step.byTeam;
    function.name = statement.name + "_steps";
    function.threads = shape.threads;
    function.unitsPerBlock = 1;
    function.cluster = shape.cluster;
    function.sharedBytes = sharedBytesOf(cast<RecurrenceMatch>(match));
    emitter.emitTeamFunction(statement.op, function.name, statement.inputs,
                             PersistentRecurrence::deviceShape(shape), [&] { recurrence.emit(); });
    statement.kernel.finish(emitter);
  }
};
} // namespace

const StrategyLowering &tegula::recurrenceLowering() {
  static const RecurrenceLowering instance;
  return instance;
}
