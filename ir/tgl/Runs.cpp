//===- Runs.cpp - Neighbours for which a value is the same -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/tgl/Runs.h"
#include "ir/tgl/TglUtils.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

/// Whether the expression is the same for `run` neighbours of the variable, from a multiple on.
static bool isSameInRuns(const IndexExpr &expr, const IndexVar &var, int64_t run) {
  auto isQuotientSame = [&](const IndexExpr &numerator, const IndexExpr &denominator) {
    std::optional<int64_t> divisor = denominator.asConstant();
    if (!divisor || *divisor <= 0)
      return false;
    // (c*x + r) floordiv d, where c*run divides d and r: x = run*q + p with p < run.
    std::optional<int64_t> step;
    for (const IndexExpr::Term &term : numerator.terms()) {
      bool isVariable = term.factors.size() == 1 && term.factors[0].second == 1 &&
                        term.factors[0].first->kind == IndexExpr::AtomKind::Variable &&
                        term.factors[0].first->var == var;
      if (isVariable)
        step = term.coefficient;
    }
    int64_t multiple = 0;
    if (!step || *step <= 0 || llvm::MulOverflow(*step, run, multiple) || *divisor % multiple != 0)
      return false;
    IndexExpr rest = numerator - IndexExpr::variable(var) * IndexExpr(*step);
    return !rest.isOverflow() && !rest.uses(var) &&
           llvm::all_of(rest.terms(), [&](const IndexExpr::Term &term) {
             return term.coefficient % multiple == 0;
           });
  };
  if (!expr.uses(var))
    return true;
  return llvm::all_of(expr.terms(), [&](const IndexExpr::Term &term) {
    return llvm::all_of(term.factors, [&](const auto &factor) {
      const IndexExpr::Atom &atom = *factor.first;
      if (atom.kind == IndexExpr::AtomKind::Variable)
        return !(atom.var == var);
      if (atom.kind == IndexExpr::AtomKind::FloorDiv &&
          isQuotientSame(atom.operands[0], atom.operands[1]))
        return true;
      return llvm::all_of(
          atom.operands, [&](const IndexExpr &operand) { return isSameInRuns(operand, var, run); });
    });
  });
}

int64_t tgl::runAlong(const ValueExpr &expr, Value axis, int64_t most) {
  const auto *found = llvm::find(expr.operands(), axis);
  if (found == expr.operands().end())
    return most;
  IndexVar var = IndexVar::dim(found - expr.operands().begin());
  int64_t run = most;
  while (run > 1 && !isSameInRuns(expr.expr(), var, run))
    run /= 2;
  return run;
}

int64_t Runs::of(Value value) {
  if (value == axis)
    return 1;
  if (auto found = given.find(value); found != given.end())
    return found->second;
  Operation *op = value.getDefiningOp();
  return op && op->getBlock() == axis.getOwner() ? of(op) : longest;
}

int64_t Runs::of(Operation *op) {
  if (auto found = known.find(op); found != known.end())
    return found->second;
  int64_t run = op->getNumRegions() ? 1 : longest;
  llvm::SmallVector<ValueExpr> exprs;
  if (auto read = dyn_cast<ReadOp>(op)) {
    llvm::append_range(exprs, read.getSubscriptExprs());
    for (const auto &[numerator, denominator] : read.getExactExprs())
      exprs.append({numerator, denominator});
  } else if (auto index = dyn_cast<IndexOp>(op)) {
    exprs.push_back(index.getValueExpr());
  }
  for (const ValueExpr &expr : exprs)
    run = std::min(run, runAlong(expr, axis, longest));
  bool isDirect = !exprs.empty(); // the axis is in expressions alone
  for (Value operand : op->getOperands())
    if (operand != axis || !isDirect)
      run = std::min(run, of(operand));
  return known[op] = run;
}
