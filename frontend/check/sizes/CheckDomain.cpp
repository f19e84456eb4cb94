//===- CheckDomain.cpp - Domains of expressions -----------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is known where an expression stands: the ranges of the indices that it uses, and the
// conditions on the way there.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckDomain.h"
#include "frontend/check/CheckExact.h"
#include "frontend/check/CheckIndex.h"

using namespace tegula;
using namespace tegula::checked;

bool tegula::usesData(CheckContext &ctx, const IndexExpr &expr) {
  std::set<unsigned> seen; // ranges may depend on each other
  auto visit = [&](auto &&visit, const IndexExpr &one) -> bool {
    for (const IndexVar &var : one.variables()) {
      if (var.isSymbol() || !seen.insert(var.position()).second)
        continue;
      const Var &bound = ctx.program->vars[var.position()];
      if (bound.kind == Var::Data || visit(visit, bound.lo) || visit(visit, bound.hi))
        return true;
    }
    return false;
  };
  return visit(visit, expr);
}

void tegula::collectConditions(CheckContext &ctx, const Expr *condition, bool isTrue,
                               llvm::SmallVectorImpl<Condition> &conditions, bool &complete) {
  // Operands may be shared, and every condition costs the prover time.
  constexpr size_t maxConditions = 64;
  if (conditions.size() >= maxConditions) {
    complete = false;
    return;
  }
  if (condition->kind == Expr::Unary && condition->unary == Unary::Not)
    return collectConditions(ctx, condition->operands[0], !isTrue, conditions, complete);
  if (condition->kind != Expr::Binary) {
    complete = false;
    return;
  }
  if (condition->binary == (isTrue ? Binary::And : Binary::Or)) {
    collectConditions(ctx, condition->operands[0], isTrue, conditions, complete);
    collectConditions(ctx, condition->operands[1], isTrue, conditions, complete);
    return;
  }
  const Expr *x = condition->operands[0], *y = condition->operands[1];
  // From 2^63 on a u64 is a negative subscript: comparisons of such numbers say nothing of
  // subscripts.
  if (condition->binary < Binary::LT || !isInteger(x->type) || x->type == DType::U64) {
    complete = false;
    return;
  }
  std::optional<IndexExpr> a = toIndex(ctx, x), b = toIndex(ctx, y);
  if (!a || !b || !isExact(ctx, *a) || !isExact(ctx, *b)) {
    complete = false;
    return;
  }
  if (usesData(ctx, *a) || usesData(ctx, *b))
    complete = false;
  Binary op = condition->binary;
  if (!isTrue) {
    static const std::pair<Binary, Binary> inverse[] = {
        {Binary::LT, Binary::GE}, {Binary::LE, Binary::GT}, {Binary::GT, Binary::LE},
        {Binary::GE, Binary::LT}, {Binary::EQ, Binary::NE}, {Binary::NE, Binary::EQ}};
    for (auto [from, to] : inverse)
      if (op == from) {
        op = to;
        break;
      }
  }
  Condition fact = op == Binary::LT   ? Condition::lessThan(*a, *b)
                   : op == Binary::LE ? Condition::lessEqual(*a, *b)
                   : op == Binary::GT ? Condition::lessThan(*b, *a)
                   : op == Binary::GE ? Condition::lessEqual(*b, *a)
                   : op == Binary::EQ ? Condition::equal(*a, *b)
                                      : Condition::nonZero(*a - *b);
  if (fact.lhs.isOverflow()) // `j > 9223372036854775807`
    complete = false;
  else
    conditions.push_back(std::move(fact));
}

Domain tegula::domainOf(CheckContext &ctx, llvm::ArrayRef<IndexExpr> exprs, bool withLoops,
                        bool withPath) {
  Domain domain;
  if (withPath) {
    bool complete = true;
    for (const PathCondition &at : ctx.path)
      collectConditions(ctx, at.condition, at.isTrue, domain.conditions, complete);
  }
  std::set<unsigned> used;
  auto visit = [&](auto &&visit, const IndexExpr &expr) -> void {
    for (const IndexVar &var : expr.variables()) {
      if (var.isSymbol() || !used.insert(var.position()).second)
        continue;
      const Var &bound = ctx.program->vars[var.position()];
      if (bound.hasRange) {
        visit(visit, bound.lo);
        visit(visit, bound.hi);
      }
    }
  };
  for (const IndexExpr &expr : exprs)
    visit(visit, expr);
  for (const Condition &condition : domain.conditions) {
    visit(visit, condition.lhs);
    visit(visit, condition.rhs);
  }
  if (withLoops)
    for (unsigned loop : ctx.loops)
      visit(visit, IndexExpr::dim(loop));
  for (unsigned id : used)
    if (ctx.program->vars[id].hasRange)
      domain.add(id, ctx.program->vars[id].lo, ctx.program->vars[id].hi);
  return domain;
}

bool tegula::pathIsComplete(CheckContext &ctx) {
  bool complete = true;
  llvm::SmallVector<Condition> conditions;
  for (const PathCondition &at : ctx.path)
    collectConditions(ctx, at.condition, at.isTrue, conditions, complete);
  return complete;
}
