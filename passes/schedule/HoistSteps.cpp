//===- HoistSteps.cpp - Launches of a loop that its steps do not need -----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/schedule/HoistSteps.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

/// Elements that a launch for all steps may keep.
static constexpr int64_t maxElements = int64_t(1) << 31;

static bool isTempOf(ForOp loop, Value tensor) {
  Operation *temp = tensor.getDefiningOp();
  return temp && temp->getBlock() == &loop.getBody().front();
}

/// Whether the temporary, with a dim for steps, is of a size that is known and not too large.
static bool fits(ForOp loop, Value tensor) {
  ValueExpr elements = loop.getHighExpr() - loop.getLowExpr();
  for (IndexExprAttr dim : cast<TglTensorType>(tensor.getType()).getDims())
    elements = elements * ValueExpr(dim.getExpr());
  std::optional<int64_t> known = elements.asConstant();
  return known && *known <= maxElements;
}

/// Whether the launch is plain statements, whose accesses to `tensors` are unconditional.
static bool isPlain(LaunchOp launch, const SetVector<Value> &tensors) {
  bool all = true;
  for (Operation &op : launch.getBody().front())
    all &= isa<ParallelOp>(op);
  launch.walk([&](Operation *op) {
    if (auto read = dyn_cast<ReadOp>(op))
      all &= !tensors.contains(read.getTensor()) || (!read.getFill() && !read.getChecked());
    else if (auto write = dyn_cast<WriteOp>(op))
      all &= !write.getCombine() && !write.getChecked();
    else
      all &= !isa<SortOp>(op);
  });
  return all;
}

SmallVector<LaunchOp> tegula::launchesWithoutState(ForOp loop) {
  SmallVector<LaunchOp> found;
  Block &body = loop.getBody().front();
  SetVector<Value> hoisted;
  for (bool changed = true; changed;) {
    changed = false;
    for (LaunchOp launch : body.getOps<LaunchOp>()) {
      if (llvm::is_contained(found, launch))
        continue;
      SetVector<Value> others; // what the rest of the loop writes
      for (Operation &op : body)
        if (&op != launch && !llvm::is_contained(found, dyn_cast<LaunchOp>(op)))
          others.insert_range(accessesOf(&op).writes);
      Accesses own = accessesOf(launch);
      bool isFree = !own.writes.empty() && llvm::none_of(own.reads, [&](Value tensor) {
        return others.contains(tensor);
      }) && llvm::all_of(own.writes, [&](Value tensor) {
        return isTempOf(loop, tensor) && !others.contains(tensor) && !hoisted.contains(tensor) &&
               fits(loop, tensor);
      });
      // Whatever reads what it writes reads it later in the same step.
      for (Value tensor : own.writes)
        for (Operation *user : tensor.getUsers()) {
          Operation *around = body.findAncestorOpInBlock(*user);
          isFree &= around && (around == launch || launch->isBeforeInBlock(around));
          if (auto read = dyn_cast<ReadOp>(user))
            isFree &= !read.getFill() && !read.getChecked() && read.getExactNumerators().empty();
        }
      if (!isFree || !isPlain(launch, own.writes))
        continue;
      hoisted.insert_range(own.writes);
      found.push_back(launch);
      changed = true;
    }
  }
  llvm::sort(found, [](LaunchOp a, LaunchOp b) { return a->isBeforeInBlock(b); });
  return found;
}

/// Accesses to the temporary go to the step of it that `step` is around them.
static void addStep(TempOp from, Value to, ForOp loop, Value step) {
  for (Operation *user : llvm::make_early_inc_range(from->getUsers())) {
    OpBuilder builder(user);
    SmallVector<ValueExpr> subscripts{ValueExpr(step) - loop.getLowExpr()};
    if (auto read = dyn_cast<ReadOp>(user)) {
      llvm::append_range(subscripts, read.getSubscriptExprs());
      Value same = ReadOp::create(builder, read.getLoc(), to, subscripts, Value(), read.getGuard());
      read.replaceAllUsesWith(same);
    } else {
      auto write = cast<WriteOp>(user);
      llvm::append_range(subscripts, write.getSubscriptExprs());
      WriteOp::create(builder, write.getLoc(), write.getValue(), to, subscripts, write.getGuard());
    }
    user->erase();
  }
  from->erase();
}

void tegula::hoistLaunches(ForOp loop, ArrayRef<LaunchOp> launches) {
  OpBuilder builder(loop);
  Value step = loop.getLoopVar();
  std::optional<ArrayAttr> names = loop.getNames();
  std::string name = names ? cast<StringAttr>((*names)[0]).str() : "step";
  SetVector<Value> temps;
  for (LaunchOp launch : launches)
    temps.insert_range(accessesOf(launch).writes);
  for (Value tensor : temps) {
    auto temp = cast<TempOp>(tensor.getDefiningOp());
    SmallVector<IndexExprAttr> dims{
        IndexExprAttr::get(builder.getContext(), (loop.getHighExpr() - loop.getLowExpr()).expr())};
    llvm::append_range(dims, temp.getType().getDims());
    auto type = TglTensorType::get(builder.getContext(), dims, temp.getType().getElementType());
    Value all = TempOp::create(builder, temp.getLoc(), type, temp.getName());
    addStep(temp, all, loop, step);
  }
  for (LaunchOp launch : launches) {
    // What stands between launches and needs the step comes along.
    launch.walk([&](Operation *op) {
      for (Value used : llvm::to_vector(op->getOperands()))
        if (Operation *def = used.getDefiningOp();
            def && def->getBlock() == &loop.getBody().front()) {
          OpBuilder at(op);
          op->replaceUsesOfWith(used, at.clone(*def)->getResult(0));
        }
    });
    launch->moveBefore(loop);
    for (ParallelOp statement : launch.getBody().front().getOps<ParallelOp>()) {
      auto axes = cast<AxesOp>(statement.getOperation());
      Value axis = insertAxis(axes, 0, {name, loop.getLowExpr(), loop.getHighExpr()});
      replaceIndex(cast<IndexedOp>(statement.getOperation()), step, ValueExpr(axis));
      step.replaceUsesWithIf(
          axis, [&](OpOperand &use) { return statement->isProperAncestor(use.getOwner()); });
    }
  }
}
