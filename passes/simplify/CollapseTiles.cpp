//===- CollapseTiles.cpp - Tile loops that only accumulate ----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/Matchers.h"
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_COLLAPSETILESPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// The reduction whose result an op combines with a carried value in the reduction's own way.
static ReduceOp accumulated(Value next, Value carried) {
  Operation *op = next.getDefiningOp();
  if (!op || op->getNumOperands() != 2)
    return nullptr;
  Value other = op->getOperand(0) == carried   ? op->getOperand(1)
                : op->getOperand(1) == carried ? op->getOperand(0)
                                               : Value();
  auto reduce = other ? other.getDefiningOp<ReduceOp>() : ReduceOp();
  if (!reduce)
    return nullptr;
  bool combines = false;
  switch (reduce.getKind()) {
  case ReduceKind::Sum:
  case ReduceKind::Count:
    combines = isa<arith::AddFOp, arith::AddIOp>(op);
    break;
  case ReduceKind::Prod:
    combines = isa<arith::MulFOp, arith::MulIOp>(op);
    break;
  case ReduceKind::Max:
    combines = isa<arith::MaximumFOp, arith::MaxSIOp>(op);
    break;
  case ReduceKind::Min:
    combines = isa<arith::MinimumFOp, arith::MinSIOp>(op);
    break;
  case ReduceKind::Any:
    combines = isa<arith::OrIOp>(op);
    break;
  case ReduceKind::All:
    combines = isa<arith::AndIOp>(op);
    break;
  default:
    break;
  }
  return combines && next.getType() == reduce.getType() ? reduce : ReduceOp();
}

/// Whether the reduction runs over the tile along one axis and nothing else in it knows about
/// tiles.
static bool coversTile(ReduceOp reduce, TilesOp tiles) {
  bool found = false;
  for (Value axis : reduce.getAxes()) {
    bool low = lowOf(axis).asValue() == tiles.getTileLow(),
         high = highOf(axis).asValue() == tiles.getTileHigh();
    if (low != high || (low && found))
      return false;
    found |= low;
  }
  return found;
}

namespace {
struct CollapseTilesPass : Counted<tegula::impl::CollapseTilesPassBase<CollapseTilesPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    SmallVector<TilesOp> loops;
    getOperation().walk([&](TilesOp tiles) { loops.push_back(tiles); });
    for (TilesOp tiles : loops)
      if (collapse(tiles))
        count("loops collapsed");
    eraseUnusedOps(getOperation().getBody().front()); // sums with a zero that are not needed now
  }

  static bool collapse(TilesOp tiles) {
    SmallVector<ReduceOp> reductions;
    for (auto [carried, next] :
         llvm::zip_equal(tiles.getIterArgs(), tiles.getYield().getValues())) {
      ReduceOp reduce = accumulated(next, carried);
      if (!reduce || reduce->getBlock() != &tiles.getBody().front() || !carried.hasOneUse() ||
          !reduce->hasOneUse() || !coversTile(reduce, tiles))
        return false;
      reductions.push_back(reduce);
    }
    // Every use of the tile's bounds is a bound of these reductions: as operands of theirs alone.
    for (Value bound : {Value(tiles.getTileLow()), Value(tiles.getTileHigh())})
      for (Operation *user : bound.getUsers())
        if (!llvm::is_contained(reductions, user))
          return false;
    if (reductions.empty() ||
        tiles.walk([](WriteOp) { return WalkResult::interrupt(); }).wasInterrupted())
      return false;

    OpBuilder builder(tiles);
    for (Operation &op : llvm::make_early_inc_range(tiles.getBody().front().without_terminator()))
      op.moveBefore(tiles);
    for (auto [result, carried, next, reduce] : llvm::zip_equal(
             tiles.getResults(), tiles.getIterArgs(), tiles.getYield().getValues(), reductions)) {
      auto axes = cast<AxesOp>(reduce.getOperation());
      for (unsigned number = 0; number < reduce.getAxes().size(); ++number) {
        AxisRange range = getAxisRange(axes, number);
        if (range.lo.asValue() == tiles.getTileLow())
          setAxisRange(axes, number, tiles.getLowExpr(), tiles.getHighExpr());
      }
      // What was combined with the carried value is combined with its first one, if that says
      // anything.
      Value init = tiles.getInits()[carried.getArgNumber() - 2];
      carried.replaceAllUsesWith(init);
      bool isZero = matchPattern(init, m_AnyZeroFloat()) || matchPattern(init, m_Zero());
      result.replaceAllUsesWith(reduce.getKind() == ReduceKind::Sum && isZero ? reduce.getResult()
                                                                              : next);
    }
    tiles.erase();
    return true;
  }
};
} // namespace
