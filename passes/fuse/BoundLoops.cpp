//===- BoundLoops.cpp - Filters that become bounds ------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "mlir/IR/Matchers.h"
#include "passes/Passes.h"
#include "passes/analysis/Conditions.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

namespace tegula {
#define GEN_PASS_DEF_BOUNDLOOPSPASS
#include "passes/Passes.h.inc"
} // namespace tegula

/// Whether adding `value` to the reduction changes nothing.
static bool isNeutral(ReduceKind kind, Value value) {
  auto isFloat = [&](auto test) {
    APFloat constant(0.0);
    return matchPattern(value, m_ConstantFloat(&constant)) && test(constant);
  };
  switch (kind) {
  case ReduceKind::Sum:
    return matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero());
  case ReduceKind::Prod:
    return matchPattern(value, m_OneFloat()) || matchPattern(value, m_One());
  case ReduceKind::Max:
  case ReduceKind::LogSumExp:
    return isFloat([](const APFloat &x) { return x.isInfinity() && x.isNegative(); });
  case ReduceKind::Min:
    return isFloat([](const APFloat &x) { return x.isInfinity() && !x.isNegative(); });
  case ReduceKind::Any:
  case ReduceKind::Count:
    return matchPattern(value, m_Zero());
  case ReduceKind::All:
    return matchPattern(value, m_One());
  default:
    return false;
  }
}

/// The condition that a reduction's points must meet to count: its filter, or that of a `select`
/// whose other side is neutral. `use` is what to replace where the condition has become true.
static Value conditionOf(ReduceOp reduce, OpOperand *&use) {
  YieldOp yield = reduce.getYield();
  if (reduce.getFiltered()) {
    use = &yield->getOpOperand(1);
    return yield.getValues()[1];
  }
  auto select = yield.getValues()[0].getDefiningOp<arith::SelectOp>();
  if (!select || !reduce->isAncestor(select) ||
      !isNeutral(reduce.getKind(), select.getFalseValue()))
    return Value();
  use = &select.getConditionMutable();
  return select.getCondition();
}

namespace {
struct BoundLoopsPass : Counted<tegula::impl::BoundLoopsPassBase<BoundLoopsPass>> {
  using Counted::Counted;

  void runOnOperation() override {
    SmallVector<ReduceOp> reductions;
    getOperation().walk([&](ReduceOp reduce) { reductions.push_back(reduce); });
    for (ReduceOp reduce : reductions)
      boundReduction(reduce);
    eraseUnusedOps(getOperation().getBody().front());
  }

  void boundReduction(ReduceOp reduce) {
    OpOperand *use = nullptr;
    Value condition = conditionOf(reduce, use);
    if (!condition)
      return;
    SmallVector<Value> kept; // the parts that stay conditions
    bool changed = false;
    for (const Conjunct &conjunct : conjunctsOf(condition)) {
      if (conjunct.comparison && boundBy(reduce, *conjunct.comparison)) {
        changed = true;
        count("bounds tightened");
      } else {
        kept.push_back(conjunct.value);
      }
    }
    if (!changed)
      return;
    OpBuilder builder(use->getOwner());
    Value rest;
    for (Value part : kept)
      rest = rest ? arith::AndIOp::create(builder, reduce.getLoc(), rest, part).getResult() : part;
    if (!rest)
      rest = arith::ConstantIntOp::create(builder, reduce.getLoc(), 1, 1);
    use->set(rest);
    if (auto select = dyn_cast<arith::SelectOp>(use->getOwner()); select && kept.empty()) {
      select.replaceAllUsesWith(select.getTrueValue());
    } else if (kept.empty() && reduce.getFiltered()) {
      reduce.getYield()->eraseOperand(1);
      reduce.setFiltered(false);
    }
  }

  /// Makes `comparison` a bound of one of the reduction's axes: the last one that it uses, so that
  /// the bound uses axes before it.
  bool boundBy(ReduceOp reduce, const Comparison &comparison) {
    Value axis;
    for (Value candidate : reduce.getAxes())
      if (comparison.expr.uses(candidate))
        axis = candidate;
    if (!axis || comparison.kind == Condition::NonZero)
      return false;
    ValueExpr weight = comparison.expr.substitute(axis, ValueExpr(axis) + 1) - comparison.expr;
    std::optional<int64_t> sign = weight.asConstant();
    if (!sign || (*sign != 1 && *sign != -1) || (comparison.expr + 1).expr().isOverflow())
      return false;
    ValueExpr rest = comparison.expr - ValueExpr(*sign) * ValueExpr(axis);
    for (Value operand : rest.operands())
      if (operand == axis || !isBefore(operand, axis, reduce))
        return false;
    unsigned number = cast<BlockArgument>(axis).getArgNumber();
    auto op = cast<AxesOp>(reduce.getOperation());
    AxisRange range = getAxisRange(op, number);
    // sign*axis + rest >= 0: axis >= -rest, or axis <= rest. `== 0` is both.
    ValueExpr value = *sign == 1 ? ValueExpr(0) - rest : rest;
    if (*sign == 1 || comparison.kind == Condition::Zero)
      range.lo = ValueExpr::max(range.lo, value);
    if (*sign == -1 || comparison.kind == Condition::Zero)
      range.hi = ValueExpr::min(range.hi, value + 1);
    setAxisRange(op, number, range.lo, range.hi);
    return true;
  }

  /// Whether a bound of `axis` may use a value: from outside the reduction, or an axis before it.
  static bool isBefore(Value value, Value axis, ReduceOp reduce) {
    if (axesOpOf(value) == reduce.getOperation())
      return cast<BlockArgument>(value).getArgNumber() < cast<BlockArgument>(axis).getArgNumber();
    return !reduce->isAncestor(value.getParentBlock()->getParentOp());
  }
};
} // namespace
