//===- CopyNest.cpp - Loops whose steps copy, wait and multiply ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/tile/CopyNest.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tegula;

std::optional<CopyNest> CopyNest::around(tile::ForOp inner) {
  CopyNest nest;
  if (!nest.matchStep(inner))
    return std::nullopt;
  nest.loops = {inner};
  if (!nest.canGoAhead())
    return std::nullopt;
  while (auto outer = dyn_cast<tile::ForOp>(nest.loops.front()->getParentOp())) {
    nest.loops.insert(nest.loops.begin(), outer);
    if (nest.isAlone() && nest.canGoAhead())
      continue;
    nest.loops.erase(nest.loops.begin());
    break;
  }
  nest.canGoAhead(); // what copies need in these loops
  return nest;
}

int64_t CopyNest::accumulators() const {
  int64_t elements = 0;
  for (tile::AwaitProductsOp wait : productWaits)
    elements += wait.getSums().getType().getShape()[0] * wait.getSums().getType().getShape()[1];
  return elements;
}

int64_t CopyNest::stageBytes() const {
  int64_t bytes = 0;
  for (tile::CopyOp copy : copies)
    bytes += allocOf(copy).getBytes();
  return bytes;
}

std::optional<int64_t> CopyNest::knownSteps() const {
  int64_t steps = 1;
  for (tile::ForOp loop : loops) {
    std::optional<int64_t> extent = (loop.getHighExpr() - loop.getLowExpr()).asConstant();
    if (!extent)
      return std::nullopt;
    steps *= std::max<int64_t>(0, llvm::divideCeil(*extent, int64_t(loop.getStep())));
  }
  return steps;
}

/// The ops of a step come in the order of their kinds.
bool CopyNest::matchStep(tile::ForOp inner) {
  for (Operation &op : inner.getBody().front().without_terminator()) {
    if (auto barrier = dyn_cast<tile::BarrierOp>(op))
      barriers.push_back(barrier);
    else if (auto copy = dyn_cast<tile::CopyOp>(op))
      copies.push_back(copy);
    else if (auto one = dyn_cast<tile::CommitOp>(op); one && !commit)
      commit = one;
    else if (auto one = dyn_cast<tile::AwaitOp>(op); one && !await)
      await = one;
    else if (auto wait = dyn_cast<tile::AwaitProductsOp>(op))
      productWaits.push_back(wait);
    else if (auto unpack = dyn_cast<tile::UnpackOp>(op))
      unpacks.push_back(unpack);
    else if (!isPure(&op) && !isa<tile::MmaOp, tile::MapOp, tile::OperandOp>(op))
      return false;
  }
  // A tile that is unpacked is there once: no product of the step before may still read it.
  bool areUnpacked = unpacks.empty() ? barriers.size() == 2
                                     : barriers.size() > 2 && productWaits.empty() &&
                                           barriers[1]->isBeforeInBlock(unpacks.front());
  if (!areUnpacked || copies.empty() || !commit || !await ||
      await.getToken() != commit.getResult() || !await->isBeforeInBlock(barriers[1]))
    return false;
  // A product goes on from that of the step before, which therefore has ended when it is waited
  // for.
  for (tile::AwaitProductsOp wait : productWaits) {
    auto product = wait.getSums().getDefiningOp<tile::MmaOp>();
    if (!product || product->getBlock() != wait->getBlock() ||
        !llvm::is_contained(inner.getIterArgs(), product.getC()))
      return false;
  }
  for (tile::CopyOp copy : copies) {
    tile::AllocOp alloc = allocOf(copy);
    if (!alloc || !isa<tile::SharedType>(alloc.getType()) || copy->isBeforeInBlock(barriers[0]) ||
        commit->isBeforeInBlock(copy))
      return false;
    for (Operation *user : alloc->getUsers()) {
      bool isUse = isa<tile::MmaOp, tile::UnpackOp>(user) && user->getBlock() == copy->getBlock() &&
                   barriers[1]->isBeforeInBlock(user);
      if (user != copy && !isUse)
        return false;
    }
  }
  return true;
}

/// Whether the outermost loop has, beside the one inside, only what computes values, and that one's
/// bounds are the same in each of its turns.
bool CopyNest::isAlone() const {
  tile::ForOp outer = loops[0], inside = loops[1];
  for (Operation &op : outer.getBody().front().without_terminator())
    if (&op != inside && !isPure(&op) && !isa<tile::MapOp, tile::ReadyOp>(op))
      return false;
  return llvm::none_of(inside.getIndices(), [&](Value index) {
    return outer.getBody().isAncestor(index.getParentRegion());
  });
}

/// Whether copies need nothing of the loops but their variables.
bool CopyNest::canGoAhead() {
  needed.clear();
  return llvm::all_of(copies, [&](tile::CopyOp copy) {
    bool isKnown = true;
    copy->walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (!copy->isAncestor(operand.getParentBlock()->getParentOp()))
          isKnown &= isNeeded(operand);
    });
    return isKnown;
  });
}

bool CopyNest::isNeeded(Value value) {
  if (!loops.front().getBody().isAncestor(value.getParentRegion()))
    return true;
  for (tile::ForOp loop : loops)
    if (value == loop.getLoopVar())
      return true;
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumRegions() || !isPure(op) ||
      !llvm::all_of(op->getOperands(), [&](Value operand) { return isNeeded(operand); }))
    return false;
  needed.insert(op);
  return true;
}

void CopyNest::takeStages(llvm::function_ref<Value(tile::CopyOp)> stageOf,
                          llvm::function_ref<void(OpBuilder &)> behindProducts) {
  for (tile::CopyOp copy : copies) {
    Value stage = stageOf(copy);
    copy.getTarget().replaceUsesWithIf(
        stage, [&](OpOperand &use) { return isa<tile::MmaOp, tile::UnpackOp>(use.getOwner()); });
  }
  if (isAsynchronous()) {
    OpBuilder builder(productWaits.back());
    builder.setInsertionPointAfter(productWaits.back());
    behindProducts(builder);
    for (tile::AwaitProductsOp wait : productWaits) {
      auto product = wait.getSums().getDefiningOp<tile::MmaOp>();
      tile::AwaitProductsOp::create(builder, wait.getLoc(), product.getC());
      wait->erase();
    }
  }
  await->erase();
  commit->erase();
  for (tile::BarrierOp barrier : ArrayRef(barriers).take_front(2))
    barrier->erase();
  for (tile::CopyOp copy : copies) {
    tile::AllocOp alloc = allocOf(copy);
    copy->erase();
    alloc->erase();
  }
  for (Operation *op : llvm::reverse(needed))
    if (isOpTriviallyDead(op))
      op->erase();
}
