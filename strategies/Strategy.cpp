//===- Strategy.cpp - The interface of strategies -------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/Strategy.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

bool StatementStrategy::applies(LaunchOp launch, const ScheduleRequest &request) const {
  if (!request.target.isGpu())
    return false;
  SmallVector<Mismatch> mismatches;
  for (ParallelOp op : launch.getBody().getOps<ParallelOp>()) {
    Matched<Attribute> matched = match(op, request);
    if (matched)
      return true;
    mismatches.push_back(matched.mismatch());
    if (!mismatches.back().where)
      mismatches.back().where = op;
  }
  for (const Mismatch &mismatch : mismatches)
    remarkMismatch(launch, strategy, mismatch);
  return false;
}

void StatementStrategy::schedule(LaunchOp launch, const ScheduleRequest &request,
                                 ScheduleCounts &counts) const {
  generalStrategy().schedule(launch, request, counts);
  unsigned &count = counterIn(counts);
  for (ParallelOp op : launch.getBody().getOps<ParallelOp>())
    if (Matched<Attribute> matched = matchOrdered(op, request, count)) {
      op->setAttr(attribute, *matched);
      ++count;
    }
}

static ArrayRef<const StatementStrategy *> statementStrategies() {
  static const StatementStrategy *const list[] = {&recurrenceStrategy(), &tileLoopStrategy(),
                                                  &contractionStrategy(),
                                                  &productReductionStrategy()};
  return list;
}

const StatementStrategy *tegula::strategyOf(ParallelOp op) {
  const auto *found = llvm::find_if(
      statementStrategies(), [&](const StatementStrategy *one) { return one->computes(op); });
  return found == statementStrategies().end() ? nullptr : *found;
}

ArrayRef<const Strategy *> tegula::strategies() {
  static const SmallVector<const Strategy *> list = [] {
    SmallVector<const Strategy *> all(statementStrategies());
    all.push_back(&generalStrategy());
    return all;
  }();
  return list;
}
