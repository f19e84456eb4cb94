//===- StatementMatches.cpp - The matches of scheduled statements ---------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/StatementMatches.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

Matched<const StatementMatch *> StatementMatches::of(ParallelOp op) {
  const Strategy *strategy = strategyOf(op);
  if (!strategy)
    return nullptr;
  std::lock_guard lock(mutex);
  std::unique_ptr<StatementMatch> &kept = matches[op];
  // An erased statement's place in memory may have become another's.
  if (!kept || &kept->strategy != strategy ||
      kept->attribute() != op->getAttr(strategy->attributeName())) {
    Strategy::Match again = strategy->restore(op);
    if (!again)
      return again.mismatch();
    kept = std::move(*again);
    ++restored;
  }
  return kept.get();
}

void StatementMatches::keep(std::unique_ptr<StatementMatch> match) {
  std::lock_guard lock(mutex);
  matches[ParallelOp(match->op)] = std::move(match);
}
