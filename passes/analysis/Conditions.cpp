//===- Conditions.cpp - Booleans that compare integer expressions --------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/Conditions.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

Comparison Comparison::negated() const {
  switch (kind) {
  case Condition::NonNegative: // not e >= 0: -e - 1 >= 0
    return {Condition::NonNegative, ValueExpr(-1) - expr};
  case Condition::Zero:
    return {Condition::NonZero, expr};
  default:
    return {Condition::Zero, expr};
  }
}

static std::optional<Comparison> comparisonOf(Value condition) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return std::nullopt;
  std::optional<ValueExpr> lhs = integerExprOf(compare.getLhs()),
                           rhs = integerExprOf(compare.getRhs());
  if (!lhs || !rhs || (*lhs - *rhs - 1).expr().isOverflow() ||
      (*rhs - *lhs - 1).expr().isOverflow())
    return std::nullopt;
  switch (compare.getPredicate()) {
  case arith::CmpIPredicate::slt:
    return Comparison{Condition::NonNegative, *rhs - *lhs - 1};
  case arith::CmpIPredicate::sle:
    return Comparison{Condition::NonNegative, *rhs - *lhs};
  case arith::CmpIPredicate::sgt:
    return Comparison{Condition::NonNegative, *lhs - *rhs - 1};
  case arith::CmpIPredicate::sge:
    return Comparison{Condition::NonNegative, *lhs - *rhs};
  case arith::CmpIPredicate::eq:
    return Comparison{Condition::Zero, *lhs - *rhs};
  case arith::CmpIPredicate::ne:
    return Comparison{Condition::NonZero, *lhs - *rhs};
  default:
    return std::nullopt;
  }
}

static void collect(Value condition, SmallVectorImpl<Conjunct> &list) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
    collect(both.getLhs(), list);
    collect(both.getRhs(), list);
    return;
  }
  // `a != false` and `not a` of a comparison.
  if (auto flip = condition.getDefiningOp<arith::XOrIOp>();
      flip && matchPattern(flip.getRhs(), m_One())) {
    std::optional<Comparison> inner = comparisonOf(flip.getLhs());
    list.push_back({condition, inner ? std::optional(inner->negated()) : std::nullopt});
    return;
  }
  list.push_back({condition, comparisonOf(condition)});
}

SmallVector<Conjunct> tegula::conjunctsOf(Value condition) {
  SmallVector<Conjunct> list;
  collect(condition, list);
  return list;
}
