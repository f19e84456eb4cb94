//===- WalkReuse.cpp - What threads have before they read it ---------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows that a team has read before stay with it, and steps of a loop that wait for each other have
// been loaded ahead (codegen/llvm/PrefetchSteps.cpp).
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/PrefixLoop.h"
#include "strategies/expected/Instructions.h"
#include "strategies/expected/StatementWalk.h"
#include <cmath>

using namespace llvm;
using namespace tegula;
using namespace tegula::tgl;

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// A name that reads of all of a row at the statement's point share, in groups or at once.
size_t StatementWalk::nameOfRow(ReadOp read) const {
  ValueExpr offset = elementOffset(read.getTensorType(), read.getSubscriptExprs());
  double points = 1;
  for (const Level &level : levels)
    points *= offset.uses(level.axis) ? level.extent : 1;
  size_t name = hash_combine(read.getTensor().getAsOpaquePointer(), int64_t(points));
  for (mlir::Value axis : cast<AxesOp>(ParallelOp(statement).getOperation()).getAxes())
    name = hash_combine(name, stepAlong(offset, axis).value_or(0));
  return name;
}

/// Blocks that hold a row of so many elements, of all tensors that several nests read: as few of a
/// cluster as do (codegen/simt/RowCache.h); 0 where none do.
double StatementWalk::blocksThatHold(double elements) const {
  constexpr double most = 8;
  DenseMap<mlir::Value, DenseSet<mlir::Operation *>> nests;
  bool hasOthers = false;
  for (mlir::Operation &nest : ParallelOp(statement).getBody().front())
    nest.walk([&](mlir::Operation *op) {
      hasOthers |= isa<TempOp>(op);
      if (auto read = dyn_cast<ReadOp>(op))
        nests[read.getTensor()].insert(&nest);
    });
  double bytes = 0;
  for (auto &[tensor, own] : nests)
    if (own.size() > 1)
      bytes += cast<TglTensorType>(tensor.getType()).getElementType().getIntOrFloatBitWidth() / 8.0;
  for (double blocks = 1; blocks <= (hasOthers ? 1 : most); blocks *= 2)
    if (elements * bytes <= blocks * CacheSize::first)
      return blocks;
  return 0;
}

/// A read of a row that the team has read before, and has in registers or shared memory, of one
/// block or of a cluster, where it fits there; else it comes again, from memory where the rows of
/// all multiprocessors do not fit into the second-level cache. Returns its latency.
double StatementWalk::visitHeldRow(ReadOp read, Levels own, double bytes) {
  double lanes = lanesOf(own), turns = turnsOf(own) * threadsInAll(), row = rowBytes(own, bytes);
  work.instructions +=
      (1 + conversionInstructions(read.getTensorType().getElementType(), false) * lanes) * turns;
  work.sectors += 4 * turns / threadsOfWarp;
  if (double blocks = blocksThatHold(row / bytes)) {
    hold(read, row / blocks);
    return Latency::near;
  }
  double atOnce = row * std::min(multiprocessors, work.points);
  work.cacheBytes += row * work.points;
  drawnAgain[read.getTensor()] += row * work.points * std::max(0.0, 1 - CacheSize::second / atOnce);
  return atOnce <= CacheSize::second ? Latency::cache : Latency::memory;
}

/// Bytes of what an access that varies so takes for a point.
double StatementWalk::rowBytes(Levels own, double bytes) const {
  for (const Level &level : ArrayRef(levels).drop_front(ParallelOp(statement).getAxes().size()))
    bytes *= own & varies.lookup(level.axis) ? level.extent : 1;
  return bytes;
}

/// Counts the registers of a row that a team reads again.
void StatementWalk::hold(ReadOp read, double row) {
  constexpr double registerBytes = 4;
  if (heldRows.insert(nameOfRow(read)).second)
    work.heldRegisters += row / registerBytes / threads.team;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Whether steps of the loop wait for each other and threads exchange something in them.
bool StatementWalk::loadsStepsAhead(ForOp loop) const {
  if (!isGeneral || threads.team == 1 || isShared || matchPrefixLoop(loop))
    return false;
  bool isInnermost = true, exchanges = false;
  loop.getBody().walk([&](mlir::Operation *op) {
    isInnermost &= !isa<ForOp, TilesOp>(op);
    auto reduce = dyn_cast<ReduceOp>(op);
    exchanges |= reduce && reduce->getParentOp() == loop.getOperation();
  });
  return isInnermost && exchanges && threads.team <= threadsOfWarp;
}

/// Whether the loop around has loaded it in a step before.
bool StatementWalk::isAhead(ReadOp read) const {
  if (!loadsAhead || written.contains(read.getTensor()) || read.getChecked())
    return false;
  ValueExpr offset = elementOffset(read.getTensorType(), read.getSubscriptExprs());
  // Where a step's points are others than those of the step before, loads have conditions.
  Levels ofStep = varies.lookup(loadsAhead->step);
  bool isSteady = none_of(offset.operands(), [&](mlir::Value operand) {
    return operand != loadsAhead->step && (varies.lookup(operand) & ofStep) == ofStep;
  });
  return isSteady && stepAlong(offset, loadsAhead->step).value_or(0) != 0;
}

/// Counts a load of the loop that comes steps ahead.
void StatementWalk::loadAhead(Levels own, double bytes, double latency) {
  // Each has a pointer that moves with the steps, and a step that is the last (SASS for sm_90a).
  constexpr double pointer = 3, registerBytes = 4;
  work.instructions += pointer * turnsOf(own) * threadsInAll();
  double elements = 1; // of a thread in a step
  for (size_t number = loadsAhead->level + 1; number < levels.size(); ++number)
    elements *= own >> number & 1 ? levels[number].turns : 1;
  loadsAhead->registers += elements * std::ceil(lanesOf(own) * bytes / registerBytes);
  loadsAhead->latency = std::max(loadsAhead->latency, latency);
}

/// Cycles that a step takes at least, for what was loaded so many steps before it.
double StatementWalk::waitForLoads() const {
  constexpr double registersAhead = 48, mostAhead = 2; // as PrefetchSteps.cpp has them
  if (!loadsAhead)
    return 0;
  double ahead = std::floor(registersAhead / std::max(loadsAhead->registers, 1.0));
  return loadsAhead->latency / std::clamp(ahead, 1.0, mostAhead);
}
