//===- MergeLoops.cpp - Fuses pointwise consumers into sequential loops ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/fuse/MergeLoops.h"
#include "passes/analysis/PrefixLoop.h"
#include "passes/fuse/Access.h"
#include "passes/fuse/InlineProducers.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

/// More work than this is better left to a loop that runs in vectors.
static constexpr unsigned maxOps = 12;

/// The value of `loop` that a read of the statement at `axis` gives, where it reads what the
/// iteration before has written and yielded: the one that the loop carries. Null: it reads
/// something else.
static Value valueBefore(ForOp loop, ReadOp read, Value axis) {
  if (!read.getGuard() || read.getFill() || read.getChecked() || !read.getExactExprs().empty())
    return Value(); // at the first point there is none before
  ValueExpr before = ValueExpr(axis) + ValueExpr(int64_t(loop.getReverse() ? 1 : -1));
  WriteOp only;
  for (Operation *user : read.getTensor().getUsers())
    if (auto write = dyn_cast<WriteOp>(user)) {
      if (only)
        return Value();
      only = write;
    }
  if (!only || only->getParentOp() != loop || only.getCombine() || only.getGuard() ||
      only.getChecked() || read.getTensorType().getElementType() != only.getValue().getType() ||
      read.getType() != only.getValue().getType())
    return Value();
  bool same = llvm::all_of_zip(only.getSubscriptExprs(), read.getSubscriptExprs(),
                               [&](const ValueExpr &left, const ValueExpr &right) {
                                 return left.substitute(loop.getLoopVar(), before) == right;
                               });
  bool moves = llvm::any_of(only.getSubscriptExprs(),
                            [&](const ValueExpr &expr) { return expr.uses(loop.getLoopVar()); });
  if (!same || !moves)
    return Value();
  for (auto [yielded, carried] : llvm::zip_equal(loop.getYield().getValues(), loop.getIterArgs()))
    if (yielded == only.getValue())
      return carried;
  return Value();
}

/// Whether all that reads the tensor in the statement reads what the loop carries.
static bool readsCarried(ForOp loop, ParallelOp statement, Value tensor) {
  Value axis = statement.getAxes()[0];
  bool all = tensor.getDefiningOp<TempOp>() != nullptr;
  statement.walk([&](Operation *op) {
    if (auto read = dyn_cast<ReadOp>(op); read && read.getTensor() == tensor)
      all &= valueBefore(loop, read, axis) != nullptr;
    else if (auto write = dyn_cast<WriteOp>(op))
      all &= write.getTensor() != tensor;
  });
  return all;
}

/// Whether, where both touch an element and one writes it, loop and statement are at the same
/// point, or the statement one behind, where it reads what the loop carries.
static bool dependPointwise(ForOp loop, ParallelOp statement) {
  Value loopVar = loop.getLoopVar(), axis = statement.getAxes()[0];
  for (const Access &a : accessesIn(loop))
    for (const Access &b : accessesIn(statement)) {
      if (a.tensor != b.tensor || (!a.writes && !b.writes) ||
          readsCarried(loop, statement, a.tensor))
        continue;
      bool same = llvm::any_of(llvm::zip_equal(a.subscripts, b.subscripts), [&](auto dim) {
        auto &[left, right] = dim;
        return left && right && left->uses(loopVar) && right->uses(axis) &&
               left->substitute(loopVar, ValueExpr(axis)) == *right;
      });
      if (!same)
        return false;
    }
  return true;
}

static bool isCheap(ParallelOp statement) {
  unsigned count = 0;
  bool plain = true;
  statement.walk([&](Operation *op) {
    ++count;
    plain &= op == statement.getOperation() ||
             (!op->getNumRegions() && !isa_and_nonnull<math::MathDialect>(op->getDialect()));
  });
  return plain && count <= maxOps;
}

static bool canMove(ForOp loop, ParallelOp statement) {
  if (statement.getAxes().size() != 1 || !isCheap(statement))
    return false;
  Value axis = statement.getAxes()[0];
  if (!(lowOf(axis) == loop.getLowExpr()) || !(highOf(axis) == loop.getHighExpr()) ||
      !conflict(loop, statement) || !dependPointwise(loop, statement))
    return false;
  for (Value used : valuesUsedBy(statement))
    if (Operation *def = used.getDefiningOp();
        def && def->getBlock() == loop->getBlock() && !def->isBeforeInBlock(loop))
      return false;
  for (Operation *op = loop->getNextNode(); op != statement.getOperation(); op = op->getNextNode())
    if (conflict(op, statement))
      return false;
  return true;
}

/// Reads of what the same iteration has written before become the value; so do those of a temporary
/// that nothing else reads, which then goes.
static void forwardInLoop(ForOp loop) {
  Block &body = loop.getBody().front();
  for (WriteOp write : SmallVector<WriteOp>(body.getOps<WriteOp>())) {
    auto temp = write.getTensor().getDefiningOp<TempOp>();
    if (!temp || write.getCombine() || write.getGuard() || write.getChecked() ||
        loop->isAncestor(temp))
      continue;
    SmallVector<ReadOp> reads;
    bool only = llvm::all_of(temp->getUsers(), [&](Operation *user) {
      auto read = dyn_cast<ReadOp>(user);
      if (!read)
        return user == write.getOperation();
      reads.push_back(read);
      return read->getBlock() == &body && write->isBeforeInBlock(read) && !read.getGuard() &&
             llvm::equal(read.getSubscriptExprs(), write.getSubscriptExprs());
    });
    bool moves = llvm::any_of(write.getSubscriptExprs(),
                              [&](const ValueExpr &expr) { return expr.uses(loop.getLoopVar()); });
    if (!only || !moves)
      continue;
    OpBuilder builder(write);
    Value value =
        roundToStorage(builder, write.getLoc(), write.getValue(), temp.getType().getElementType());
    for (ReadOp read : reads) {
      read.replaceAllUsesWith(value);
      read.erase();
    }
    write.erase();
    temp.erase();
  }
}

/// Points of a `parallel` replace elements of their own: so do the steps of the loop that takes
/// them in, also where data choose the places and nothing else shows it.
static void markApart(ParallelOp statement) {
  for (WriteOp write : statement.getBody().front().getOps<WriteOp>()) {
    bool isChosen =
        llvm::any_of(write.getIndices(), [](Value index) { return index.getDefiningOp(); });
    if (isChosen && !write.getCombine())
      write->setAttr(apartAttribute, UnitAttr::get(write.getContext()));
  }
}

unsigned tegula::mergeIntoLoops(Block &block) {
  unsigned merged = 0;
  for (ForOp loop : llvm::make_early_inc_range(block.getOps<ForOp>())) {
    unsigned before = merged;
    for (Operation *op = loop->getNextNode(); op;) {
      auto statement = dyn_cast<ParallelOp>(op);
      op = op->getNextNode();
      if (!statement || !canMove(loop, statement))
        continue;
      Block &body = loop.getBody().front(), &from = statement.getBody().front();
      for (ReadOp read : SmallVector<ReadOp>(from.getOps<ReadOp>()))
        if (Value carried = valueBefore(loop, read, statement.getAxes()[0])) {
          OpBuilder builder(read);
          Value none = arith::ConstantOp::create(builder, read.getLoc(),
                                                 builder.getZeroAttr(read.getType()));
          read.replaceAllUsesWith(
              arith::SelectOp::create(builder, read.getLoc(), read.getGuard(), carried, none)
                  .getResult());
          read.erase();
        }
      markApart(statement);
      statement.getAxes()[0].replaceAllUsesWith(loop.getLoopVar());
      body.getOperations().splice(body.getTerminator()->getIterator(), from.getOperations());
      statement.erase();
      ++merged;
    }
    if (merged > before)
      forwardInLoop(loop);
  }
  return merged;
}
