//===- WholeCopies.cpp - Statements that copy a tensor --------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/WholeCopies.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

bool tegula::writesWhole(WriteOp write) {
  if (write.getGuard() || write.getCombine() || write.getChecked())
    return false;
  SetVector<Value> axes; // of all statements around
  Operation *around = write->getParentOp();
  for (; auto statement = dyn_cast<ParallelOp>(around); around = around->getParentOp())
    axes.insert_range(statement.getAxes());
  if (!isa<LaunchOp, ForOp, KernelOp>(around) || around->getParentOfType<ParallelOp>())
    return false;
  for (auto [subscript, dim] :
       llvm::zip_equal(write.getSubscriptExprs(), write.getTensorType().getDims())) {
    if (subscript.asConstant() == 0 && dim.getExpr().asConstant() == 1)
      continue;
    Value axis = subscript.asValue();
    // An axis that stands twice is one of a diagonal.
    if (!axis || !axes.remove(axis) || lowOf(axis).asConstant() != 0 ||
        !(highOf(axis) == ValueExpr(dim.getExpr())))
      return false;
  }
  return axes.empty();
}

std::optional<WholeCopy> tegula::matchWholeCopy(WriteOp write) {
  auto read = write.getValue().getDefiningOp<ReadOp>();
  if (!read || read->getBlock() != write->getBlock() || read.getGuard() || read.getFill() ||
      read.getChecked() || !read.getExactNumerators().empty() ||
      read.getTensor() == write.getTensor() || read.getTensorType() != write.getTensorType() ||
      read.getSubscriptExprs() != write.getSubscriptExprs() || !writesWhole(write))
    return std::nullopt;
  return WholeCopy{write, read};
}

void tegula::eraseWrite(WriteOp write) {
  auto launch = write->getParentOfType<LaunchOp>();
  write->erase();
  eraseUnusedOps(launch.getBody().front());
  if (launch.getBody().front().empty())
    launch->erase();
}

/// The ops behind `first` in its block that use one of the tensors, in order.
static SmallVector<Operation *> usersBehind(Operation *first, ArrayRef<Value> tensors) {
  SetVector<Operation *> found;
  for (Value tensor : tensors)
    for (Operation *user : tensor.getUsers())
      if (Operation *op = first->getBlock()->findAncestorOpInBlock(*user);
          op && first->isBeforeInBlock(op))
        found.insert(op);
  SmallVector<Operation *> ordered = found.takeVector();
  llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ordered;
}

/// Whether the launch has the kernel's block around it, and the copy alone uses `changed` in it.
static bool standsAlone(LaunchOp launch, const WholeCopy &copy, Value changed) {
  return isa<KernelOp>(launch->getParentOp()) &&
         llvm::all_of(changed.getUsers(), [&](Operation *user) {
           return user == copy.write || user == copy.read || !launch->isAncestor(user);
         });
}

/// Whether the op is a launch that gives every element of the tensor a new value.
static bool overwrites(Operation *op, Value tensor) {
  return isa<LaunchOp>(op) && llvm::any_of(tensor.getUsers(), [&](Operation *user) {
           auto write = dyn_cast<WriteOp>(user);
           return write && op->isAncestor(write) && writesWhole(write);
         });
}

bool tegula::forwardCopy(WholeCopy copy) {
  auto launch = copy.write->getParentOfType<LaunchOp>();
  Value to = copy.to(), from = copy.from();
  if (!to.getDefiningOp<TempOp>() || !standsAlone(launch, copy, to) ||
      accessesOf(launch).writes.contains(from))
    return false;
  SmallVector<ReadOp> readers;
  bool isChanged = false; // `from` is, by then
  for (Operation *op : usersBehind(launch, {to, from})) {
    Accesses accesses = accessesOf(op);
    bool isWritten = accesses.writes.contains(to);
    isChanged |= accesses.writes.contains(from);
    if (accesses.reads.contains(to)) {
      if (isChanged || isWritten)
        return false;
      op->walk([&](ReadOp read) {
        if (read.getTensor() == to)
          readers.push_back(read);
      });
    }
    if (isWritten) {
      if (!overwrites(op, to))
        return false;
      break;
    }
  }
  for (ReadOp read : readers)
    read.getTensorMutable().assign(from);
  eraseWrite(copy.write);
  return true;
}

bool tegula::storeInPlace(WholeCopy copy) {
  auto launch = copy.write->getParentOfType<LaunchOp>();
  Value to = copy.to(), from = copy.from();
  auto result = dyn_cast<BlockArgument>(to);
  auto kernel = result ? dyn_cast<KernelOp>(result.getOwner()->getParentOp()) : nullptr;
  auto temp = from.getDefiningOp<TempOp>();
  if (!kernel || kernel.getArgRole(result.getArgNumber()) != "out" || !to.hasOneUse() || !temp ||
      temp->getParentOp() != kernel || launch->getParentOp() != kernel ||
      accessesOf(launch).writes.contains(from))
    return false;
  for (Operation *op : usersBehind(launch, {from}))
    if (accessesOf(op).writes.contains(from))
      return false;
  eraseWrite(copy.write);
  from.replaceAllUsesWith(to);
  temp->erase();
  return true;
}
