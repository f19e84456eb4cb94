//===- CheckWrap.cpp - Integers that may wrap -------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arithmetic on data wraps at its type; subscripts, bounds of ranges and comparisons compute in 64
// bits what they are made of. The prover knows integers without end, so that a condition is a fact
// for it, and a bound a formula, only where 64 bits are enough whatever the data: `isExact` alone
// says so (CheckExact.cpp).
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckWrap.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckDomain.h"
#include "frontend/check/CheckExpr.h"
#include "frontend/check/CheckIndex.h"
#include "symbolic/Guards.h"

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
  Wide corners[] = {multiply(a.lo, b.lo), multiply(a.lo, b.hi), multiply(a.hi, b.lo),
                    multiply(a.hi, b.hi)};
  return {*llvm::min_element(corners), *llvm::max_element(corners)};
}

static IntegerRange hull(const IntegerRange &a, const IntegerRange &b) {
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}

static Wide magnitude(const IntegerRange &a) {
  return std::max(a.hi < 0 ? -a.hi : a.hi, a.lo < 0 ? -a.lo : a.lo);
}

static IntegerRange quotient(const IntegerRange &a, const IntegerRange &b) {
  if (b.lo > 0)
    return {std::min(floorDivide(a.lo, b.lo), floorDivide(a.lo, b.hi)),
            std::max(floorDivide(a.hi, b.lo), floorDivide(a.hi, b.hi))};
  return {-magnitude(a), magnitude(a)};
}

//===----------------------------------------------------------------------===//
// Arithmetic that is computed in 64 bits
//===----------------------------------------------------------------------===//

/// The operands that 64 bits reach: none where the value is one of its own type, as a read, a
/// conversion, a name or a reduction is.
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

Interval tegula::intervalOf(CheckContext &ctx, const Expr *expr) {
  if (auto known = ctx.facts.exprIntervals.find(expr); known != ctx.facts.exprIntervals.end())
    return known->second;
  Interval all = integerRange(expr->type).value_or(Interval{-farAway, farAway});
  auto compute = [&]() -> Interval {
    if (!isInteger(expr->type))
      return all;
    auto operand = [&](unsigned k) { return intervalOf(ctx, expr->operands[k]); };
    if (isUnsigned(expr->type) && (expr->kind == Expr::Binary || expr->kind == Expr::Unary))
      return all;
    switch (expr->kind) {
    case Expr::Constant:
      if (expr->type == DType::U64)
        return {uint64_t(expr->intValue), uint64_t(expr->intValue)};
      return {expr->intValue, expr->intValue};
    case Expr::Index:
      return intervalOf(ctx, expr->index);
    case Expr::Read:
      return integerRange(expr->tensor->type).value_or(all);
    case Expr::Let:
      return mayWrap(ctx, expr->let->value) ? all : intervalOf(ctx, expr->let->value);
    case Expr::Convert:
      if (expr->isWeak && isInteger(expr->operands[0]->type) && !isUnsigned(expr->type))
        return operand(0);
      if (isInteger(expr->operands[0]->type) && !mayWrap(ctx, expr->operands[0]) &&
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
        return {x.lo <= 0 && x.hi >= 0 ? 0
                                       : std::min(x.lo < 0 ? -x.lo : x.lo, x.hi < 0 ? -x.hi : x.hi),
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
        return quotient(x, y);
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
  return ctx.facts.exprIntervals[expr] = interval;
}

Interval tegula::intervalOf(CheckContext &ctx, const IndexExpr &expr) {
  if (expr.isOverflow())
    return {-farAway, farAway};
  unsigned depth = 0;
  // A launch refuses dims beyond `maxBoundSize`, and sizes that leave 64 bits.
  auto ofSymbol = [&](llvm::StringRef name) -> Interval {
    if (auto known = ctx.facts.symbolIntervals.find(name); known != ctx.facts.symbolIntervals.end())
      return known->second;
    const SizeFacts &facts = ctx.prover->facts();
    Interval all{INT64_MIN, INT64_MAX}, interval{0, maxBoundSize};
    auto defined =
        llvm::find_if(facts.definitions, [&](const auto &one) { return one.first == name; });
    if (llvm::is_contained(facts.signedSymbols, name)) {
      interval = all;
    } else if (defined != facts.definitions.end()) {
      interval = intervalOf(ctx, defined->second);
      interval = {std::clamp(interval.lo, all.lo, all.hi), std::clamp(interval.hi, all.lo, all.hi)};
    }
    return ctx.facts.symbolIntervals[name] = interval;
  };
  auto ofVar = [&](unsigned position) -> Interval {
    const Var &var = ctx.program->vars[position];
    if (var.kind == Var::Data) {
      Interval value =
          mayWrap(ctx, var.data) ? *integerRange(var.data->type) : intervalOf(ctx, var.data);
      if (var.hasRange) { // between sizes
        value.lo = std::max(value.lo, intervalOf(ctx, var.lo).lo);
        value.hi = std::max(value.lo, std::min(value.hi, intervalOf(ctx, var.hi).hi - 1));
      }
      return value;
    }
    if (auto known = ctx.facts.varIntervals.find(position); known != ctx.facts.varIntervals.end())
      return known->second;
    ctx.facts.varIntervals[position] = {INT64_MIN, INT64_MAX}; // ranges may depend on each other
    Interval lo = intervalOf(ctx, var.lo), hi = intervalOf(ctx, var.hi);
    Interval range{std::max<Wide>(lo.lo, INT64_MIN), std::min<Wide>(hi.hi - 1, INT64_MAX)};
    return ctx.facts.varIntervals[position] =
               range.lo <= range.hi ? range : Interval{range.lo, range.lo};
  };
  auto visit = [&](auto &&visit, const IndexExpr &one) -> Interval {
    Interval result;
    if (++depth > 32)
      return {-farAway, farAway};
    auto operand = [&](const IndexExpr::Atom &atom, unsigned k) {
      return visit(visit, atom.operands[k]);
    };
    auto atom = [&](const IndexExpr::Atom &atom) -> Interval {
      switch (atom.kind) {
      case IndexExpr::AtomKind::Variable:
        return atom.var.isSymbol() ? ofSymbol(atom.var.name()) : ofVar(atom.var.position());
      case IndexExpr::AtomKind::FloorDiv:
        return quotient(operand(atom, 0), operand(atom, 1));
      case IndexExpr::AtomKind::Min:
      case IndexExpr::AtomKind::Max: {
        bool isMin = atom.kind == IndexExpr::AtomKind::Min;
        Interval extreme = operand(atom, 0);
        for (unsigned k = 1; k < atom.operands.size(); ++k) {
          Interval next = operand(atom, k);
          extreme = isMin ? Interval{std::min(extreme.lo, next.lo), std::min(extreme.hi, next.hi)}
                          : Interval{std::max(extreme.lo, next.lo), std::max(extreme.hi, next.hi)};
        }
        return extreme;
      }
      case IndexExpr::AtomKind::Select:
        return hull(operand(atom, 2), operand(atom, 3));
      case IndexExpr::AtomKind::Float:
        return {-(Wide(1) << 53), Wide(1) << 53};
      }
      return {INT64_MIN, INT64_MAX};
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

bool tegula::mayWrap(CheckContext &ctx, const Expr *expr) {
  if (!isInteger(expr->type))
    return false;
  if (auto known = ctx.facts.exprWraps.find(expr); known != ctx.facts.exprWraps.end())
    return known->second;
  llvm::ArrayRef<const Expr *> operands = widenedOperands(expr);
  bool wraps = llvm::any_of(operands, [&](const Expr *operand) { return mayWrap(ctx, operand); });
  if (!operands.empty() && expr->type != DType::I64)
    wraps |= !integerRange(expr->type)->contains(intervalOf(ctx, expr));
  return ctx.facts.exprWraps[expr] = wraps;
}

const Expr *tegula::in64Bits(CheckContext &ctx, const Expr *expr) {
  if (!mayWrap(ctx, expr))
    return expr;
  if (const Expr *known = ctx.facts.wideExprs.lookup(expr))
    return known;
  auto wide = [&](const Expr *operand) { return widen(ctx, in64Bits(ctx, operand), DType::I64); };
  if (expr->kind == Expr::Widen || expr->kind == Expr::Convert)
    return ctx.facts.wideExprs[expr] = wide(expr->operands[0]);
  Expr *copy = makeExpr(ctx, expr->kind, DType::I64, expr->span);
  *copy = *expr;
  copy->type = DType::I64;
  for (const Expr *&operand : copy->operands)
    if (isInteger(operand->type))
      operand = wide(operand);
  return ctx.facts.wideExprs[expr] = finishExpr(ctx, copy);
}

std::optional<Subscript> tegula::evalBound(CheckContext &ctx, const ast::Expr &e,
                                           const llvm::Twine &what, Code code) {
  Value value = eval(ctx, e);
  std::optional<Subscript> bound = toSubscript(ctx, value, e.span, what, code);
  if (!bound || !usesData(ctx, bound->index))
    return bound;
  // The length of a range is 64 bits too: nothing is as far away as 2^61.
  constexpr int64_t farthest = int64_t(1) << 61;
  if (Interval{-farthest, farthest}.contains(intervalOf(ctx, bound->index)))
    return bound;
  const Expr *number = widen(ctx, in64Bits(ctx, value.expr), DType::I64);
  number = binaryNode(ctx, Binary::Max, number, indexNode(ctx, IndexExpr(-farthest), e.span),
                      DType::I64, e.span);
  number = binaryNode(ctx, Binary::Min, number, indexNode(ctx, IndexExpr(farthest), e.span),
                      DType::I64, e.span);
  bound->index = IndexExpr::dim(dataVar(ctx, number)->id);
  return bound;
}
