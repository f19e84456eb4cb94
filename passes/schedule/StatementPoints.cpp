//===- StatementPoints.cpp - Statements inside of one over common axes ----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/schedule/StatementPoints.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

SmallVector<ParallelOp> tegula::statementsOf(ArrayRef<Operation *> ops) {
  SmallVector<ParallelOp> found;
  for (Operation *op : ops)
    op->walk<WalkOrder::PreOrder>([&](ParallelOp statement) {
      found.push_back(statement);
      return WalkResult::skip();
    });
  return found;
}

/// Replaces launches, and statements without axes, by what is in them.
static void flatten(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto loop = dyn_cast<ForOp>(op))
      flatten(loop.getBody().front());
    auto statement = dyn_cast<ParallelOp>(op);
    if (!isa<LaunchOp>(op) && !(statement && statement.getAxes().empty()))
      continue;
    Block &inside = op.getRegion(0).front();
    if (isa<LaunchOp>(op))
      flatten(inside);
    block.getOperations().splice(op.getIterator(), inside.getOperations());
    op.erase();
  }
}

ParallelOp tegula::putIntoPoints(ArrayRef<Operation *> ops, ArrayRef<IndependentAxis> axes) {
  SmallVector<ParallelOp> statements = statementsOf(ops);
  for (Operation *op : ops)
    op->walk([&](TempOp temp) {
      if (!isPrivate(temp))
        temp->moveBefore(ops.front());
    });
  Location loc = ops.front()->getLoc();
  OpBuilder builder(ops.back());
  builder.setInsertionPointAfter(ops.back());
  SmallVector<Value> outer;
  for (const IndependentAxis &axis : axes)
    outer.push_back(statements.front().getAxes()[axis.lookup(statements.front())]);
  IRMapping none;
  ParallelOp around = outer.empty() ? ParallelOp::create(builder, loc, {AxisSpec{"all", 0, 1}})
                                    : copyAxes(builder, loc, outer, none);
  Block &body = around.getBody().front();
  for (Operation *op : ops)
    op->moveBefore(&body, body.end());
  for (ParallelOp statement : statements) {
    SmallVector<unsigned> dropped;
    for (auto [number, axis] : llvm::enumerate(axes)) {
      unsigned own = axis.lookup(statement);
      builder.setInsertionPoint(statement);
      replaceAllUsesWithExpr(builder, statement.getAxes()[own],
                             ValueExpr(Value(around.getAxes()[number])));
      dropped.push_back(own);
    }
    llvm::sort(dropped, std::greater<unsigned>());
    for (unsigned own : dropped)
      eraseAxis(cast<AxesOp>(statement.getOperation()), own);
    eraseUnusedOps(statement.getBody().front());
  }
  flatten(body);
  return around;
}
