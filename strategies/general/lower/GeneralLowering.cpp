//===- GeneralLowering.cpp - Statements as SIMT code ----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A statement becomes device functions in one or both of the forms of DeviceEmitter.h. With sizes
// that are known the better form is chosen here, else by the runtime.
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/NestShape.h"
#include "ir/tgl/Invariance.h"
#include "passes/analysis/Nest.h"
#include "passes/schedule/OrderSums.h"
#include "strategies/contraction/plan/TileReductions.h"
#include "strategies/general/plan/StatementWork.h"
#include "strategies/lower/StrategyLowering.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace tegula;

/// What adds parts up has one order without tiles too.
mlir::OwningOpRef<tgl::ParallelOp> tegula::orderedForm(tgl::ParallelOp op) {
  if (partialWrites(op).empty())
    return nullptr;
  mlir::OpBuilder before(op);
  tgl::ParallelOp ordered = orderSums(cast<tgl::ParallelOp>(before.clone(*op)));
  SmallVector<StringRef> mapping(ordered.getAxes().size(), "thread");
  ordered.setMapping(llvm::join(mapping, ","));
  return ordered;
}

static void emit(StatementLowering &statement, StringRef suffix, DeviceShape shape,
                 PlanFunction &result) {
  KernelLowering &kernel = statement.kernel;
  DeviceEmitter emitter = kernel.newEmitter();
  result.name = statement.name + suffix.str();
  result.workspaceBytes = emitter.emitFunction(statement.ordered, result.name, statement.inputs,
                                               statement.outer, shape);
  result.threads = shape.threads;
  result.unitsPerBlock = shape.unitsPerBlock();
  result.pointsPerUnit = shape.lanes * shape.rounds;
  result.units = shape.units;
  result.cluster = shape.cluster;
  result.sharedBytes = shape.sharedBytes;
  if (std::optional<RowLayout> row = emitter.rowLayout(result.name))
    kernel.code.rows.push_back(std::move(*row));
  if (emitter.clusterAnswer())
    kernel.code.clusters.push_back(*emitter.clusterAnswer());
  kernel.finish(emitter);
}

void tegula::lowerGenerally(StatementLowering &statement) {
  tgl::ParallelOp op = statement.ordered;
  StatementWork work(op);
  bool canBeThread = !work.hasSort && (!work.hasParallel || (work.isKnown() && !work.hasLarge));
  bool canBeTeam = work.hasParallel || work.hasReduce || work.hasSort || work.hasPrefix;
  if ((work.hasSteps || work.team) &&
      canBeTeam) // states of a thread alone would be in its local memory
    canBeThread = false;
  if (canBeThread && canBeTeam && work.isKnown()) {
    // Threads side by side should touch memory side by side.
    // Points with temporaries are in no vectors of points; those of windows may lie apart by a
    // window's length.
    bool isKept = work.hasParallel && work.hasTemporaries;
    bool alongPoints =
        !work.hasRanges && (neighboursAreNear(op) || (!isKept && runsAlongPoints(op)));
    bool isBusy =
        *work.points >= manyThreads || statement.kernel.newEmitter().columnsKeepMemoryBusy(op);
    int64_t shortest = work.hasRanges ? shortRange : shortNest;
    bool byThread = (*work.inside < shortest && !isKept) || (alongPoints && isBusy);
    (byThread ? canBeTeam : canBeThread) = false;
  }
  // Else the runtime chooses by the number of points.
  if (canBeThread && canBeTeam && !tgl::Invariance::of(op).isFree())
    canBeThread = false;
  PlanStep &step = statement.step;
  if (canBeThread)
    emit(statement, "_thread", DeviceShape(), step.byThread);
  if (canBeTeam) {
    statement.team = teamFor(work);
    emit(statement, "_block", statement.team, step.byTeam);
  }
  if (!statement.kernel.code.clusters.empty() && step.byTeam.cluster > 1) // as the program asks
    step.unit = PlanStep::Team;
}

namespace {
class GeneralLowering final : public StrategyLowering {
public:
  Coverage coverage(const StatementMatch &, const EmitterOptions &) const override {
    return Coverage::Whole;
  }
  void lower(StatementLowering &statement, const StatementMatch &) const override {
    lowerGenerally(statement);
  }
};
} // namespace

const StrategyLowering &tegula::generalLowering() {
  static const GeneralLowering instance;
  return instance;
}
