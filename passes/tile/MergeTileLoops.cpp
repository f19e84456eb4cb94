//===- MergeTileLoops.cpp - One loop of loops with equal products -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/tile/TilePasses.h"

using namespace mlir;
using namespace tegula;

namespace tegula {
#define GEN_PASS_DEF_MERGETILELOOPSPASS
#include "passes/tile/TilePasses.h.inc"
} // namespace tegula

namespace {
/// What a loop's body has that another one's has as well.
class EqualOps {
public:
  EqualOps(tile::ForOp first, tile::ForOp second) {
    equal.map(second.getLoopVar(), first.getLoopVar());
    for (Operation &op : second.getBody().front().without_terminator())
      for (Operation &other : first.getBody().front().without_terminator())
        if (isEqual(&other, &op)) {
          for (auto [its, others] : llvm::zip_equal(op.getResults(), other.getResults()))
            equal.map(its, others);
          ops.insert(&op);
          break;
        }
  }

  bool contains(Operation *op) const { return ops.contains(op); }
  bool hasProduct() const {
    return llvm::any_of(ops, [](Operation *op) {
      return op->walk([](tile::DotOp) { return WalkResult::interrupt(); }).wasInterrupted();
    });
  }
  /// From values of the second loop to those of the first.
  IRMapping equal;

private:
  llvm::SmallPtrSet<Operation *, 16> ops;

  /// Regions read what no op of the kernel writes before its end, so that equal ones give the same.
  bool isEqual(Operation *first, Operation *second) {
    IRMapping inside;
    auto isSame = [&](Value one, Value other) {
      return success(one == other || equal.lookupOrNull(other) == one ||
                     inside.lookupOrNull(other) == one);
    };
    auto mark = [&](Value one, Value other) { inside.map(other, one); };
    return first->getName() == second->getName() && !isa<tile::StoreOp, tile::ReduceOp>(first) &&
           OperationEquivalence::isEquivalentTo(first, second, isSame, mark,
                                                OperationEquivalence::IgnoreLocations);
  }
};
} // namespace

/// Brings what the loop needs of the ops since `first` before that one; whether nothing of it is
/// made there from that one's results.
static bool hoistNeeds(tile::ForOp second, tile::ForOp first) {
  llvm::SetVector<Value> needed(second->operand_begin(), second->operand_end());
  getUsedValuesDefinedAbove(second.getBody(), needed);
  llvm::SetVector<Operation *> between;
  for (Value value : needed)
    if (Operation *op = value.getDefiningOp();
        op && op->getBlock() == first->getBlock() && first->isBeforeInBlock(op))
      between.insert(op);
  auto isFree = [&](Operation *op) {
    return isPure(op) && !op->getNumRegions() &&
           llvm::all_of(op->getOperands(), [&](Value operand) {
             Operation *its = operand.getDefiningOp();
             return !its || its->getBlock() != first->getBlock() || its->isBeforeInBlock(first);
           });
  };
  if (!llvm::all_of(between, isFree))
    return false;
  for (Operation *op : between)
    op->moveBefore(first);
  return true;
}

/// One loop in place of the first, which carries what both carry.
static tile::ForOp merge(tile::ForOp first, tile::ForOp second, const EqualOps &equal) {
  OpBuilder builder(first);
  SmallVector<Value> inits(first.getInits());
  llvm::append_range(inits, second.getInits());
  auto both = tile::ForOp::create(builder, first.getLoc(), first.getLowExpr(), first.getHighExpr(),
                                  first.getStep(), inits);
  SmallVector<Value> yielded(first.getYield().getValues());
  for (Value value : second.getYield().getValues())
    yielded.push_back(equal.equal.lookupOrDefault(value));
  first.getYield()->erase();
  second.getYield()->erase();
  Block &body = both.getBody().front();
  size_t own = first.getInits().size();
  for (tile::ForOp loop : {first, second}) {
    bool isFirst = loop == first;
    loop.getLoopVar().replaceAllUsesWith(both.getLoopVar());
    ValueRange carried =
        isFirst ? both.getIterArgs().take_front(own) : both.getIterArgs().drop_front(own);
    for (auto [from, to] : llvm::zip_equal(loop.getIterArgs(), carried))
      from.replaceAllUsesWith(to);
    for (Operation &op : llvm::make_early_inc_range(loop.getBody().front())) {
      op.moveBefore(&body, body.end());
      if (!isFirst && equal.contains(&op)) {
        for (Value result : op.getResults())
          result.replaceAllUsesWith(equal.equal.lookup(result));
        op.erase();
      }
    }
    loop.replaceAllUsesWith(isFirst ? both.getResults().take_front(own)
                                    : both.getResults().drop_front(own));
  }
  builder.setInsertionPointToEnd(&body);
  tile::YieldOp::create(builder, first.getLoc(), yielded);
  first.erase();
  second.erase();
  return both;
}

/// The first of the loops behind it in the block that can be one with it; null: none.
static tile::ForOp mergeable(tile::ForOp first) {
  for (Operation *op = first->getNextNode(); op; op = op->getNextNode()) {
    auto second = dyn_cast<tile::ForOp>(op);
    if (second && second.getLowExpr() == first.getLowExpr() &&
        second.getHighExpr() == first.getHighExpr() && second.getStep() == first.getStep() &&
        EqualOps(first, second).hasProduct() && hoistNeeds(second, first))
      return second;
  }
  return {};
}

namespace {
struct MergeTileLoopsPass : Counted<tegula::impl::MergeTileLoopsPassBase<MergeTileLoopsPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    SmallVector<tile::KernelOp> kernels;
    getOperation().walk([&](tile::KernelOp kernel) { kernels.push_back(kernel); });
    for (tile::KernelOp kernel : kernels) {
      SmallVector<tile::ForOp> loops(kernel.getBody().getOps<tile::ForOp>());
      llvm::SmallPtrSet<Operation *, 4> gone;
      for (tile::ForOp loop : loops) {
        if (gone.contains(loop))
          continue;
        while (tile::ForOp second = mergeable(loop)) {
          gone.insert(second);
          loop = merge(loop, second, EqualOps(loop, second));
          count("loops merged");
        }
      }
    }
  }
};
} // namespace
