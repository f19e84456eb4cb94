//===- SplitResidues.cpp - Polyphase decomposition of transposed convolutions (CPU) ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/analysis/Nest.h"
#include <numeric>

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_SPLITRESIDUESPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// By how much the expression grows with the value where that is the same everywhere.
static std::optional<int64_t> weightOf(Value value, const ValueExpr &expr) {
  return (expr.substitute(value, ValueExpr(value) + 1) - expr).asConstant();
}

static int64_t floorMod(int64_t value, int64_t modulus) {
  return (value % modulus + modulus) % modulus;
}

/// The number whose product with `value` leaves 1 modulo `modulus`, if there is one.
static std::optional<int64_t> inverse(int64_t value, int64_t modulus) {
  for (int64_t candidate = 1; candidate < modulus; ++candidate)
    if (floorMod(value * candidate, modulus) == 1)
      return candidate;
  return std::nullopt;
}

namespace {
/// `numerator` is divided exactly by `divisor` in a read of a sum, and `axis` of that sum chooses
/// which of its points are whole.
struct Residue {
  ReadOp read;
  unsigned division; // which of the read's
  unsigned axis;
  int64_t divisor, inverse; // of the axis's weight
  ValueExpr numerator;
};

struct SplitResiduesPass : Counted<tegula::impl::SplitResiduesPassBase<SplitResiduesPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    SmallVector<ReduceOp> reductions;
    getOperation().walk([&](ReduceOp reduce) {
      if (reduce.getKind() == ReduceKind::Sum && !reduce.getFiltered())
        reductions.push_back(reduce);
    });
    for (ReduceOp reduce : reductions)
      while (std::optional<Residue> residue = findResidue(reduce)) {
        for (BlockArgument axis : axesToSplit(reduce, *residue))
          splitParallel(axis, residue->divisor);
        residue = findResidue(reduce); // in terms of the new axes
        splitSum(reduce, *residue);
        count("sums thinned out");
      }
  }

  static std::optional<Residue> findResidue(ReduceOp reduce) {
    for (ReadOp read : reduce.getBody().front().getOps<ReadOp>()) {
      if (!read.getFill() || !isZero(read.getFill()) ||
          !vanishesWith(reduce.getYield().getValues()[0], read))
        continue;
      for (auto [division, exact] : llvm::enumerate(read.getExactExprs())) {
        auto &[numerator, denominator] = exact;
        std::optional<int64_t> divisor = denominator.asConstant();
        if (!divisor || *divisor < 2 || *divisor > 64)
          continue;
        for (auto [number, axis] : llvm::enumerate(reduce.getAxes())) {
          std::optional<int64_t> weight = weightOf(axis, numerator);
          if (!weight ||
              getAxisRange(cast<AxesOp>(reduce.getOperation()), number).lo.asConstant() != 0)
            continue;
          std::optional<int64_t> inverted = inverse(floorMod(*weight, *divisor), *divisor);
          Residue residue{read,     unsigned(division),   unsigned(number),
                          *divisor, inverted.value_or(0), numerator};
          if (inverted && canSplit(reduce, residue))
            return residue;
        }
      }
    }
    return std::nullopt;
  }

  /// Whether an axis is the rest of a division by `divisor` already.
  static bool isRest(BlockArgument axis, int64_t divisor) {
    std::optional<AxisRange> range = getRange(axis);
    std::optional<int64_t> high = range->hi.asConstant();
    return range->lo.asConstant() == 0 && high && *high <= divisor;
  }

  /// All else in the numerator is known before the sum, and its axes can be split.
  static bool canSplit(ReduceOp reduce, const Residue &residue) {
    for (Value operand : residue.numerator.operands()) {
      if (operand == reduce.getAxes()[residue.axis])
        continue;
      if (reduce->isAncestor(operand.getParentBlock()->getParentOp()))
        return false;
      auto axis = dyn_cast<BlockArgument>(operand);
      if (!axis || !isa<ParallelOp>(axis.getOwner()->getParentOp()))
        continue; // the same for all points of a statement
      std::optional<int64_t> weight = weightOf(axis, residue.numerator);
      if (!weight || (*weight % residue.divisor && getRange(axis)->lo.asConstant() != 0))
        return false;
    }
    return true;
  }

  /// Axes of statements around that decide which points of the sum are whole.
  static SmallVector<BlockArgument> axesToSplit(ReduceOp reduce, const Residue &residue) {
    SmallVector<BlockArgument> axes;
    for (Value operand : residue.numerator.operands()) {
      auto axis = dyn_cast<BlockArgument>(operand);
      if (axis && isa<ParallelOp>(axis.getOwner()->getParentOp()) &&
          *weightOf(axis, residue.numerator) % residue.divisor && !isRest(axis, residue.divisor))
        axes.push_back(axis);
    }
    return axes;
  }

  /// A value of the op's region that says `value < high`, nothing where that always holds for
  /// `value = divisor * quotient + rest`.
  static Value emitBelow(Block &block, Location loc, const ValueExpr &value, const ValueExpr &high,
                         int64_t divisor) {
    if (std::optional<int64_t> constant = high.asConstant(); constant && *constant % divisor == 0)
      return Value();
    OpBuilder builder = OpBuilder::atBlockBegin(&block);
    Value left = materialize(builder, loc, value), right = materialize(builder, loc, high);
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, left, right);
  }

  /// Reads and writes that use `axis` happen only where the condition holds as well.
  static void guardUsers(Operation *op, Value axis, Value condition) {
    if (!condition)
      return;
    auto guard = [&](MutableOperandRange operand, Operation *access) {
      OpBuilder builder(access);
      Value all = condition;
      if (!operand.empty())
        all = arith::AndIOp::create(builder, access->getLoc(), operand[0].get(), condition);
      operand.assign(all);
    };
    op->walk([&](Operation *access) {
      if (!llvm::is_contained(access->getOperands(), axis))
        return;
      if (auto read = dyn_cast<ReadOp>(access))
        guard(read.getGuardMutable(), read);
      else if (auto write = dyn_cast<WriteOp>(access))
        guard(write.getGuardMutable(), write);
    });
  }

  /// axis = divisor * quotient + rest, each an axis of its own.
  void splitParallel(BlockArgument axis, int64_t divisor) {
    auto op = cast<AxesOp>(axis.getOwner()->getParentOp());
    unsigned number = axis.getArgNumber();
    std::string name = getAxisName(op, number).str();
    ValueExpr high = getAxisRange(op, number).hi;
    BlockArgument rest = insertAxis(op, number, {name + "_rest", ValueExpr(0), ValueExpr(divisor)});
    BlockArgument quotient = insertAxis(
        op, number + 1, {name, ValueExpr(0), ValueExpr::floorDiv(high + (divisor - 1), divisor)});
    Value old = op.getAxes()[number + 2];
    ValueExpr value = ValueExpr(divisor) * ValueExpr(quotient) + ValueExpr(rest);
    guardUsers(op, old, emitBelow(*op.getAxesBlock(), op->getLoc(), value, high, divisor));
    replaceAxis(op, number + 2, value);
    count("axes split");
  }

  /// The axis of the sum takes only the values at which the division is exact.
  static void splitSum(ReduceOp reduce, Residue residue) {
    auto op = cast<AxesOp>(reduce.getOperation());
    int64_t divisor = residue.divisor;
    Value old = op.getAxes()[residue.axis];
    // weight * axis + others = 0 modulo the divisor.
    ValueExpr others = residue.numerator.substitute(old, ValueExpr(0));
    for (Value operand : SmallVector<Value>(others.operands()))
      if (std::optional<int64_t> weight = weightOf(operand, others);
          weight && *weight % divisor == 0)
        others = others.substitute(operand, ValueExpr(0));
    ValueExpr rest = ValueExpr::mod(others * ValueExpr(divisor - residue.inverse), divisor);
    ValueExpr high = getAxisRange(op, residue.axis).hi;
    std::string name = getAxisName(op, residue.axis).str();
    BlockArgument quotient = insertAxis(
        op, residue.axis, {name, ValueExpr(0), ValueExpr::floorDiv(high + (divisor - 1), divisor)});
    old = op.getAxes()[residue.axis + 1];
    ValueExpr value = ValueExpr(divisor) * ValueExpr(quotient) + rest;
    guardUsers(op, old, emitBelow(*op.getAxesBlock(), op->getLoc(), value, high, divisor));
    dropDivision(residue.read, residue.division);
    replaceAxis(op, residue.axis + 1, value);
  }

  static void replaceAxis(AxesOp op, unsigned number, const ValueExpr &value) {
    OpBuilder builder(op->getContext());
    replaceAllUsesWithExpr(builder, op.getAxes()[number], value);
    eraseAxis(op, number);
  }

  static void dropDivision(ReadOp read, unsigned division) {
    SmallVector<Attribute> numerators(read.getExactNumerators().getValue());
    SmallVector<Attribute> denominators(read.getExactDenominators().getValue());
    numerators.erase(numerators.begin() + division);
    denominators.erase(denominators.begin() + division);
    Builder builder(read.getContext());
    read.setExactNumeratorsAttr(builder.getArrayAttr(numerators));
    read.setExactDenominatorsAttr(builder.getArrayAttr(denominators));
    foldIndices(cast<IndexedOp>(read.getOperation()));
  }
};
} // namespace
