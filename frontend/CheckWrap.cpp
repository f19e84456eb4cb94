//===- CheckWrap.cpp - Integers that may wrap -------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arithmetic on data wraps at its type; subscripts, bounds of ranges and comparisons compute in 64 bits
// what they are made of. The prover knows integers without end, so that a condition is a fact for it, and a
// bound a formula, only where 64 bits are enough whatever the data: `isExact` alone says so.
//
//===----------------------------------------------------------------------===//

#include "frontend/Checker.h"

using namespace tegula;
using namespace tegula::checked;

using Wide = __int128;

/// Beyond any sum or product that is looked at.
static constexpr Wide farAway = Wide(1) << 100;

static Wide limit(Wide value) { return std::clamp(value, -farAway, farAway); }

static Wide multiply(Wide a, Wide b) {
  Wide product;
  if (__builtin_mul_overflow(a, b, &product))
    return (a < 0) == (b < 0) ? farAway : -farAway;
  return limit(product);
}

static Wide floorDivide(Wide a, Wide b) {
  Wide quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

static IntegerRange sum(const IntegerRange &a, const IntegerRange &b) {
  return {limit(a.lo + b.lo), limit(a.hi + b.hi)};
}

static IntegerRange negative(const IntegerRange &a) { return {-a.hi, -a.lo}; }

static IntegerRange product(const IntegerRange &a, const IntegerRange &b) {
  Wide corners[] = {multiply(a.lo, b.lo), multiply(a.lo, b.hi), multiply(a.hi, b.lo), multiply(a.hi, b.hi)};
  return {*llvm::min_element(corners), *llvm::max_element(corners)};
}

static IntegerRange hull(const IntegerRange &a, const IntegerRange &b) {
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}

static Wide magnitude(const IntegerRange &a) { return std::max(a.hi < 0 ? -a.hi : a.hi, a.lo < 0 ? -a.lo : a.lo); }

//===----------------------------------------------------------------------===//
// Arithmetic that is computed in 64 bits
//===----------------------------------------------------------------------===//

/// The operands that 64 bits reach: none where the value is one of its own type, as a read, a conversion, a
/// name or a reduction is.
static llvm::ArrayRef<const Expr *> widenedOperands(const Expr *expr) {
  llvm::ArrayRef<const Expr *> operands = expr->operands;
  if (isUnsigned(expr->type))
    return {}; // a number modulo 2^32 or 2^64, wherever it stands
  switch (expr->kind) {
  case Expr::Widen:
    return isInteger(operands[0]->type) ? operands : llvm::ArrayRef<const Expr *>();
  case Expr::Convert:
    return expr->isWeak && isInteger(operands[0]->type) ? operands : llvm::ArrayRef<const Expr *>();
  case Expr::Unary:
    return expr->unary == Unary::Neg || expr->unary == Unary::Abs || expr->unary == Unary::Sign
               ? operands
               : llvm::ArrayRef<const Expr *>();
  case Expr::Where:
    return operands.drop_front();
  case Expr::Binary:
    switch (expr->binary) {
    case Binary::Add:
    case Binary::Sub:
    case Binary::Mul:
    case Binary::FloorDiv:
    case Binary::Mod:
    case Binary::Pow:
    case Binary::Max:
    case Binary::Min:
      return operands;
    default:
      return {};
    }
  default:
    return {};
  }
}

Checker::Interval Checker::intervalOf(const Expr *expr) {
  if (auto known = exprIntervals.find(expr); known != exprIntervals.end())
    return known->second;
  Interval all = integerRange(expr->type).value_or(Interval{-farAway, farAway});
  auto compute = [&]() -> Interval {
    if (!isInteger(expr->type))
      return all;
    auto operand = [&](unsigned k) { return intervalOf(expr->operands[k]); };
    if (isUnsigned(expr->type) && (expr->kind == Expr::Binary || expr->kind == Expr::Unary))
      return all;
    switch (expr->kind) {
    case Expr::Constant:
      if (expr->type == DType::U64)
        return {uint64_t(expr->intValue), uint64_t(expr->intValue)};
      return {expr->intValue, expr->intValue};
    case Expr::Index:
      return intervalOf(expr->index);
    case Expr::Read:
      return integerRange(expr->tensor->type).value_or(all);
    case Expr::Let:
      return mayWrap(expr->let->value) ? all : intervalOf(expr->let->value);
    case Expr::Convert:
      if (expr->isWeak && isInteger(expr->operands[0]->type) && !isUnsigned(expr->type))
        return operand(0);
      if (isInteger(expr->operands[0]->type) && !mayWrap(expr->operands[0]) &&
          integerRange(expr->target)->contains(operand(0)))
        return operand(0);
      return integerRange(expr->target).value_or(all);
    case Expr::Quantize:
      return integerRange(expr->target).value_or(all);
    case Expr::Widen:
      return integerRange(expr->operands[0]->type) ? operand(0) : all;
    case Expr::Where:
      return hull(operand(1), operand(2));
    case Expr::Unary: {
      Interval x = operand(0);
      switch (expr->unary) {
      case Unary::Neg:
        return negative(x);
      case Unary::Abs:
        return {x.lo <= 0 && x.hi >= 0 ? 0 : std::min(x.lo < 0 ? -x.lo : x.lo, x.hi < 0 ? -x.hi : x.hi),
                magnitude(x)};
      case Unary::Sign:
        return {x.lo < 0 ? -1 : x.lo > 0, x.hi > 0 ? 1 : -(x.hi < 0)};
      default:
        return all;
      }
    }
    case Expr::Binary: {
      Interval x = operand(0), y = operand(1);
      switch (expr->binary) {
      case Binary::Add:
        return sum(x, y);
      case Binary::Sub:
        return sum(x, negative(y));
      case Binary::Mul:
        return product(x, y);
      case Binary::FloorDiv:
        if (y.lo > 0)
          return {std::min(floorDivide(x.lo, y.lo), floorDivide(x.lo, y.hi)),
                  std::max(floorDivide(x.hi, y.lo), floorDivide(x.hi, y.hi))};
        return {-magnitude(x), magnitude(x)};
      case Binary::Mod: // 0 where the divisor is; else of its sign
        return {y.lo < 0 ? y.lo + 1 : 0, y.hi > 0 ? y.hi - 1 : 0};
      case Binary::Max:
        return {std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
      case Binary::Min:
        return {std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
      case Binary::Pow:
        return {-farAway, farAway};
      default:
        return all;
      }
    }
    default:
      return all;
    }
  };
  Interval interval = compute();
  // What has 64 bits already wraps there.
  if (expr->type == DType::I64 && !all.contains(interval))
    interval = all;
  return exprIntervals[expr] = interval;
}

Checker::Interval Checker::intervalOf(const IndexExpr &expr) {
  constexpr Interval all{INT64_MIN, INT64_MAX};
  if (expr.isOverflow())
    return {-farAway, farAway};
  unsigned depth = 0;
  auto visit = [&](auto &&visit, const IndexExpr &one) -> Interval {
    Interval result;
    if (++depth > 32)
      return {-farAway, farAway};
    auto atom = [&](const IndexExpr::Atom &atom) -> Interval {
      if (atom.kind != IndexExpr::AtomKind::Variable)
        return all;
      if (atom.var.isSymbol())
        return {llvm::is_contained(prover->facts().signedSymbols, atom.var.name()) ||
                        llvm::any_of(prover->facts().definitions,
                                     [&](const auto &one) { return one.first == atom.var.name(); })
                    ? INT64_MIN
                    : 0,
                INT64_MAX};
      const Var &var = program->vars[atom.var.position()];
      if (var.kind == Var::Data) {
        Interval value = intervalOf(var.data);
        return mayWrap(var.data) ? *integerRange(var.data->type) : value;
      }
      Interval lo = visit(visit, var.lo), hi = visit(visit, var.hi);
      Interval range{std::max<Wide>(lo.lo, INT64_MIN), std::min<Wide>(hi.hi - 1, INT64_MAX)};
      return range.lo <= range.hi ? range : Interval{range.lo, range.lo};
    };
    for (const IndexExpr::Term &term : one.terms()) {
      Interval value{term.coefficient, term.coefficient};
      for (const auto &[factor, power] : term.factors)
        for (unsigned i = 0; i != power; ++i)
          value = product(value, atom(*factor));
      result = sum(result, value);
    }
    --depth;
    return result;
  };
  return visit(visit, expr);
}

bool Checker::mayWrap(const Expr *expr) {
  if (!isInteger(expr->type))
    return false;
  if (auto known = exprWraps.find(expr); known != exprWraps.end())
    return known->second;
  llvm::ArrayRef<const Expr *> operands = widenedOperands(expr);
  bool wraps = llvm::any_of(operands, [&](const Expr *operand) { return mayWrap(operand); });
  if (!operands.empty() && expr->type != DType::I64)
    wraps |= !integerRange(expr->type)->contains(intervalOf(expr));
  return exprWraps[expr] = wraps;
}

const Expr *Checker::in64Bits(const Expr *expr) {
  if (!mayWrap(expr))
    return expr;
  if (const Expr *known = wideExprs.lookup(expr))
    return known;
  auto wide = [&](const Expr *operand) { return widen(in64Bits(operand), DType::I64); };
  if (expr->kind == Expr::Widen || expr->kind == Expr::Convert)
    return wideExprs[expr] = wide(expr->operands[0]);
  Expr *copy = make(expr->kind, DType::I64, expr->span);
  *copy = *expr;
  copy->type = DType::I64;
  for (const Expr *&operand : copy->operands)
    if (isInteger(operand->type))
      operand = wide(operand);
  return wideExprs[expr] = finish(copy);
}

//===----------------------------------------------------------------------===//
// Formulas that the prover may use
//===----------------------------------------------------------------------===//

/// What the absolute value does not exceed, in sizes; nothing where data could be any number.
std::optional<IndexExpr> Checker::magnitudeOf(const IndexExpr &expr) {
  auto constant = [](const Interval &interval, Wide largest) -> std::optional<IndexExpr> {
    if (magnitude(interval) > largest)
      return std::nullopt;
    return IndexExpr(int64_t(magnitude(interval)));
  };
  unsigned depth = 0;
  auto visit = [&](auto &&visit, const IndexExpr &one) -> std::optional<IndexExpr> {
    if (++depth > 32 || one.isOverflow())
      return std::nullopt;
    auto sumOf = [&](llvm::ArrayRef<IndexExpr> parts) -> std::optional<IndexExpr> {
      IndexExpr total;
      for (const IndexExpr &part : parts) {
        std::optional<IndexExpr> size = visit(visit, part);
        if (!size)
          return std::nullopt;
        total = total + *size;
      }
      return total;
    };
    auto atom = [&](const IndexExpr::Atom &atom) -> std::optional<IndexExpr> {
      if (atom.kind != IndexExpr::AtomKind::Variable)
        return sumOf(atom.operands); // quotients too are no larger than what is divided
      IndexExpr variable = IndexExpr::variable(atom.var);
      Interval interval = intervalOf(variable);
      if (std::optional<IndexExpr> small = constant(interval, Wide(1) << 32))
        return small;
      if (atom.var.isSymbol())
        return interval.lo < 0 ? IndexExpr::max(variable, -variable) : variable;
      const Var &var = program->vars[atom.var.position()];
      if (var.hasRange)
        if (std::optional<IndexExpr> size = sumOf({var.lo, var.hi}))
          return size;
      return constant(interval, INT64_MAX);
    };
    IndexExpr total;
    for (const IndexExpr::Term &term : one.terms()) {
      if (term.coefficient == INT64_MIN)
        return std::nullopt;
      IndexExpr value(std::abs(term.coefficient));
      for (const auto &[factor, power] : term.factors) {
        std::optional<IndexExpr> size = atom(*factor);
        if (!size)
          return std::nullopt;
        for (unsigned i = 0; i != power; ++i)
          value = value * *size;
      }
      total = total + value;
    }
    --depth;
    return total;
  };
  std::optional<IndexExpr> result = visit(visit, expr);
  if (result && result->isOverflow())
    return std::nullopt;
  return result;
}

bool Checker::isExact(const IndexExpr &expr) {
  if (expr.isOverflow())
    return false;
  if (Interval{INT64_MIN, INT64_MAX}.contains(intervalOf(expr)))
    return true;
  // A formula of sizes and indices alone, with small coefficients, needs memory that no machine has to wrap.
  constexpr int64_t small = 1 << 16;
  if (!usesData(expr) && llvm::all_of(expr.terms(), [&](const IndexExpr::Term &term) {
        return term.coefficient >= -small && term.coefficient <= small;
      }))
    return true;
  std::optional<IndexExpr> magnitude = magnitudeOf(expr);
  if (!magnitude || !magnitude->isSize())
    return false;
  if (std::optional<int64_t> known = magnitude->asConstant())
    return *known != INT64_MAX;
  if (!isSilent())
    addGuard(Guard::InBounds, named(*magnitude), IndexExpr(INT64_MAX),
             show(expr) + " may leave the range of 64 bits", currentStmt ? currentStmt->span : Span());
  return true;
}

std::optional<Subscript> Checker::evalBound(const ast::Expr &e, const llvm::Twine &what, Code code) {
  Value value = eval(e);
  std::optional<Subscript> bound = toSubscript(value, e.span, what, code);
  if (!bound || !usesData(bound->index))
    return bound;
  if (std::optional<IndexVar> var = bound->index.asVariable();
      var && !var->isSymbol() && program->vars[var->position()].hasRange)
    return bound; // between sizes
  // The length of a range is 64 bits too: nothing is as far away as 2^61.
  constexpr int64_t farthest = int64_t(1) << 61;
  if (Interval{-farthest, farthest}.contains(intervalOf(bound->index)))
    return bound;
  const Expr *number = widen(in64Bits(value.expr), DType::I64);
  number = binaryNode(Binary::Max, number, indexNode(IndexExpr(-farthest), e.span), DType::I64, e.span);
  number = binaryNode(Binary::Min, number, indexNode(IndexExpr(farthest), e.span), DType::I64, e.span);
  bound->index = IndexExpr::dim(dataVar(number)->id);
  return bound;
}
