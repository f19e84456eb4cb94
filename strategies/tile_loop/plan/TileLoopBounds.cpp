//===- TileLoopBounds.cpp - Tiles that a tile loop can skip ---------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An iteration is run on what is known of its values if a comparison of rows and columns holds
// nowhere in a tile, so that each `where` that asks for it takes its second side, and each
// reduction that it bounds has no points: they are constants, what the loop carried in, or unknown.
// If everything that it carries out is what it carried in, tiles with nothing but that side need
// not be run.
//
//===----------------------------------------------------------------------===//
#include "strategies/tile_loop/plan/TileLoopBounds.h"

#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace llvm;
using namespace tegula;
using mlir::BlockArgument;
using tgl::ReduceKind;
using tgl::ValueExpr;
namespace arith = mlir::arith;
namespace math = mlir::math;

namespace {
/// A constant, the same as a carried value, or neither.
struct Known {
  std::optional<double> constant;
  mlir::Value carried; // an argument of the loop, or a temporary before the iteration
  bool is(double number) const { return constant && *constant == number; }
};

class Iteration {
public:
  /// What does not hold: step * axis + rest >= 0.
  Iteration(tgl::TilesOp tiles, BlockArgument row, int64_t step, ValueExpr rest)
      : tiles(tiles), row(row), step(step), rest(rest) {}
  /// A condition that holds nowhere.
  Iteration(tgl::TilesOp tiles, mlir::Value condition) : tiles(tiles), condition(condition) {}

  /// Whether it gives back what it got.
  bool changesNothing() {
    for (BlockArgument argument : tiles.getIterArgs())
      known[argument] = {std::nullopt, argument};
    run(tiles.getBody().front());
    for (auto [argument, next] : zip_equal(tiles.getIterArgs(), tiles.getYield().getValues()))
      if (of(next).carried != argument)
        return false;
    for (auto &[tensor, value] : elements)
      if (!tiles->isProperAncestor(tensor.getDefiningOp()) && value.carried != tensor)
        return false;
    return writesOwnAlone;
  }

private:
  tgl::TilesOp tiles;
  mlir::Value condition;
  BlockArgument row;
  int64_t step = 0;
  ValueExpr rest;
  DenseMap<mlir::Value, Known> known;
  MapVector<mlir::Value, Known> elements; // of temporaries
  bool writesOwnAlone = true;
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  Known of(mlir::Value value) {
    if (auto found = known.find(value); found != known.end())
      return found->second;
    APFloat number(0.0);
    if (!matchPattern(value, mlir::m_ConstantFloat(&number)))
      return {};
    bool loses = false;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
    return {number.convertToDouble(), {}};
  }

  void run(mlir::Block &block) {
    for (mlir::Operation &op : block) {
      if (isa<tgl::YieldOp, tgl::TempOp>(op))
        continue;
      if (auto nest = dyn_cast<tgl::ParallelOp>(op)) {
        run(nest.getBody().front());
      } else if (auto write = dyn_cast<tgl::WriteOp>(op)) {
        bool isPrivate = write.getTensor().getDefiningOp<tgl::TempOp>() != nullptr;
        writesOwnAlone &= isPrivate;
        elements[write.getTensor()] = of(write.getValue());
      } else if (op.getNumResults() == 1) {
        known[op.getResult(0)] = evaluate(&op);
      }
    }
  }

  /// A maximum that begins with a number: its distance from itself is 0, and that of the lowest
  /// from it is the lowest. (Where it grows without bounds the powers that are taken then are no
  /// numbers, and stay so.)
  bool isAboveInfinity(mlir::Value carried) {
    for (auto [argument, init, next] :
         zip_equal(tiles.getIterArgs(), tiles.getInits(), tiles.getYield().getValues())) {
      std::optional<double> start = of(init).constant;
      auto largest = next.getDefiningOp<arith::MaximumFOp>();
      if (argument == carried)
        return start && std::isfinite(*start) && largest &&
               (largest.getLhs() == carried || largest.getRhs() == carried);
    }
    return false;
  }

  bool isFalse(arith::SelectOp select) {
    if (condition)
      return select.getCondition() == condition;
    auto nest = dyn_cast<tgl::AxesOp>(select->getParentOp());
    if (!nest || nest.getAxes().size() != 1)
      return false;
    BlockArgument axis = nest.getAxes()[0];
    auto mask = affineMask(select.getCondition(), axis, row);
    return mask && any_of(*mask, [&](const Comparison &comparison) {
             return comparison.expr == rest + ValueExpr(step) * ValueExpr(mlir::Value(axis));
           });
  }

  /// Its bounds are at least as tight as the comparison.
  bool isEmpty(tgl::ReduceOp reduce) {
    if (condition)
      return false;
    auto own = cast<tgl::AxesOp>(reduce.getOperation());
    tgl::AxisRange range = tgl::getAxisRange(own, 0);
    if (own.getAxes().size() != 1)
      return false;
    if (step < 0)
      return range.lo.uses(tiles.getTileLow()) &&
             ValueExpr::max(range.lo, mlir::Value(tiles.getTileLow())) == range.lo &&
             ValueExpr::min(range.hi, rest + 1) == range.hi;
    return ValueExpr::min(range.hi, mlir::Value(tiles.getTileHigh())) == range.hi &&
           ValueExpr::max(range.lo, ValueExpr(0) - rest) == range.lo;
  }

  Known evaluate(mlir::Operation *op) {
    if (auto select = dyn_cast<arith::SelectOp>(op); select && isFalse(select))
      return of(select.getFalseValue());
    if (auto read = dyn_cast<tgl::ReadOp>(op)) {
      if (!read.getTensor().getDefiningOp<tgl::TempOp>())
        return {};
      auto found = elements.find(read.getTensor());
      return found == elements.end() ? Known{std::nullopt, read.getTensor()} : found->second;
    }
    if (auto reduce = dyn_cast<tgl::ReduceOp>(op)) {
      if (isEmpty(reduce)) {
        bool isLargest = reduce.getKind() == ReduceKind::Max,
             isSmallest = reduce.getKind() == ReduceKind::Min;
        if (isLargest || isSmallest)
          return {isLargest ? -infinity : infinity, {}};
        return reduce.getKind() == ReduceKind::Sum ? Known{0.0, {}} : Known();
      }
      run(reduce.getBody().front());
      Known value = of(reduce.getReduced());
      bool isNeutral = (reduce.getKind() == ReduceKind::Max && value.is(-infinity)) ||
                       (reduce.getKind() == ReduceKind::Min && value.is(infinity)) ||
                       (reduce.getKind() == ReduceKind::Sum && value.is(0));
      return isNeutral ? value : Known();
    }
    if (auto convert = dyn_cast<tgl::ConvertOp>(op)) {
      Known value = of(convert.getValue());
      bool stays = isa<mlir::FloatType>(convert.getTarget()) && (value.is(0) || value.is(1));
      return stays ? value : Known();
    }
    if (op->getNumOperands() == 1 && isa<math::ExpOp, math::Exp2Op>(op)) {
      Known value = of(op->getOperand(0));
      return value.is(0) ? Known{1.0, {}} : value.is(-infinity) ? Known{0.0, {}} : Known();
    }
    if (op->getNumOperands() != 2)
      return {};
    Known lhs = of(op->getOperand(0)), rhs = of(op->getOperand(1));
    auto without = [&](double neutral) {
      return rhs.is(neutral) ? lhs : lhs.is(neutral) ? rhs : Known();
    };
    bool isMaximum = isa<arith::MaximumFOp>(op), isMinimum = isa<arith::MinimumFOp>(op);
    if ((isMaximum || isMinimum) && lhs.constant && rhs.constant && !std::isnan(*lhs.constant) &&
        !std::isnan(*rhs.constant))
      return {isMaximum ? std::max(*lhs.constant, *rhs.constant)
                        : std::min(*lhs.constant, *rhs.constant),
              {}};
    if (isMaximum)
      return without(-infinity);
    if (isMinimum)
      return without(infinity);
    if (isa<arith::AddFOp>(op))
      return without(0);
    if (isa<arith::MulFOp>(op))
      return lhs.is(0) || rhs.is(0) ? Known{0.0, {}} : without(1);
    if (isa<arith::SubFOp>(op)) {
      bool isNumber = rhs.carried && isAboveInfinity(rhs.carried);
      if (isNumber && lhs.carried == rhs.carried)
        return {0.0, {}};
      return lhs.is(-infinity) && isNumber ? lhs : rhs.is(0) ? lhs : Known();
    }
    return {};
  }
};
} // namespace

std::optional<SmallVector<Comparison>> tegula::affineMask(mlir::Value condition, BlockArgument axis,
                                                          BlockArgument row) {
  SmallVector<Comparison> comparisons;
  for (const Conjunct &conjunct : conjunctsOf(condition)) {
    if (!conjunct.comparison || conjunct.comparison->kind != Condition::NonNegative)
      return std::nullopt;
    const ValueExpr &expr = conjunct.comparison->expr;
    std::optional<int64_t> step = tgl::stepAlong(expr, axis);
    if (!tgl::stepAlong(expr, row) || !step || *step < -1 || *step > 1)
      return std::nullopt;
    comparisons.push_back(*conjunct.comparison);
  }
  return comparisons;
}

bool tegula::changesNothingWithout(const TileLoopPlan &plan, mlir::Value condition) {
  return Iteration(plan.tiles, condition).changesNothing();
}

SmallVector<TileLoopPlan::Bound> tegula::boundsOfTiles(const TileLoopPlan &plan) {
  SmallVector<TileLoopPlan::Bound> bounds;
  BlockArgument row =
      cast<tgl::AxesOp>(tgl::ParallelOp(plan.op).getOperation()).getAxes()[plan.row];
  tgl::TilesOp tiles = plan.tiles;
  tiles.walk([&](arith::SelectOp select) {
    auto nest = dyn_cast<tgl::ParallelOp>(select->getParentOp());
    if (!nest)
      return;
    BlockArgument axis = cast<tgl::AxesOp>(nest.getOperation()).getAxes()[0];
    std::optional<SmallVector<Comparison>> comparisons =
        affineMask(select.getCondition(), axis, row);
    if (!comparisons)
      return;
    for (const Comparison &comparison : *comparisons) {
      int64_t step = tgl::stepAlong(comparison.expr, axis).value_or(0);
      ValueExpr rest = comparison.expr - ValueExpr(step) * ValueExpr(mlir::Value(axis));
      if (step && Iteration(tiles, row, step, rest).changesNothing())
        bounds.push_back({comparison, axis});
    }
  });
  return bounds;
}
