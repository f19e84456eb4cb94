//===- PrefixLoop.cpp - Loops that carry a total -----------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/PrefixLoop.h"
#include "ir/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseSet.h"

using namespace llvm;
using namespace tegula;

std::optional<PrefixLoop> tegula::matchPrefixLoop(tgl::ForOp loop) {
  if (loop.getIterArgs().size() != 1)
    return std::nullopt;
  mlir::Value carried = loop.getIterArgs()[0];
  PrefixLoop prefix{loop};
  prefix.combine = loop.getYield().getValues()[0].getDefiningOp();
  if (!prefix.combine || prefix.combine->getParentOp() != loop ||
      !isa<mlir::arith::AddFOp, mlir::arith::AddIOp, mlir::arith::MulFOp, mlir::arith::MulIOp,
           mlir::arith::MaximumFOp, mlir::arith::MinimumFOp, mlir::arith::MaxSIOp, mlir::arith::MinSIOp>(
          prefix.combine))
    return std::nullopt;
  bool first = prefix.combine->getOperand(0) == carried;
  if (!first && prefix.combine->getOperand(1) != carried)
    return std::nullopt;
  prefix.added = prefix.combine->getOperand(first ? 1 : 0);
  tgl::Accesses accesses = tgl::accessesOf(loop);
  for (mlir::Value tensor : accesses.writes)
    if (accesses.reads.contains(tensor))
      return std::nullopt;
  DenseSet<mlir::Value> late{carried};
  for (mlir::Operation &op : loop.getBody().front()) {
    if (isa<tgl::YieldOp>(op))
      continue;
    if (op.getNumRegions() || isa<tgl::TempOp>(op))
      return std::nullopt;
    bool isLate = isa<tgl::WriteOp>(op) ||
                  any_of(op.getOperands(), [&](mlir::Value value) { return late.contains(value); });
    if (isLate)
      late.insert_range(op.getResults());
    (isLate ? prefix.after : prefix.before).push_back(&op);
  }
  if (late.contains(prefix.added))
    return std::nullopt;
  return prefix;
}

