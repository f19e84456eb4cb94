//===- CheckIndex.cpp - Integers for subscripts and sizes -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values as integers of sizes and indices, for subscripts, sizes and bounds. What is read from data
// becomes a Data var, the same one for the same value within a statement, with the range that its
// form shows.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckIndex.h"
#include "frontend/check/CheckBits.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckDomain.h"
#include "frontend/check/CheckExact.h"
#include "frontend/check/CheckExpr.h"
#include "frontend/check/CheckFloatSizes.h"
#include "frontend/check/CheckGuard.h"
#include "frontend/check/CheckObligation.h"
#include "frontend/check/CheckSizes.h"
#include "frontend/check/CheckWrap.h"

using namespace tegula;
using namespace tegula::checked;

static std::optional<IndexExpr> computeIndex(CheckContext &ctx, const Expr *expr);
static std::optional<std::pair<IndexExpr, IndexExpr>> computeRange(CheckContext &ctx,
                                                                   const Expr *expr);

std::optional<IndexExpr> tegula::evalSize(CheckContext &ctx, const ast::Expr &e,
                                          const llvm::Twine &what) {
  Value value = eval(ctx, e);
  if (value.isPoison())
    return std::nullopt;
  if (!value.index)
    value.index = sizeOf(ctx, value, /*truncates=*/false);
  if (!value.index || usesData(ctx, *value.index)) {
    Report record = ctx.report(Code::NotASize, e.span,
                               what + " must be an integer known before the launch, got " +
                                   (value.expr->axes.empty() && value.weak
                                        ? "a number that is no integer"
                                        : "a value of type " + toString(typeAlone(value)).str()));
    if (isFloat(value.expr->type))
      record.note("sizes divide with '//' (rounding down) or '/' (exactly); int(v) truncates, "
                  "ceil(v) and round(v) round");
    return std::nullopt;
  }
  if (!value.index->isSize()) {
    ctx.report(Code::NotASize, e.span,
               what + " must be an integer known before the launch, and " +
                   show(ctx, *value.index) + " is an index");
    return std::nullopt;
  }
  requireExact(ctx, value.exact, e.span);
  return *value.index;
}

std::optional<Subscript> tegula::evalIndex(CheckContext &ctx, const ast::Expr &e,
                                           const llvm::Twine &what, Code code) {
  return toSubscript(ctx, eval(ctx, e), e.span, what, code);
}

std::optional<Subscript> tegula::toSubscript(CheckContext &ctx, const Value &value, Span span,
                                             const llvm::Twine &what, Code code) {
  if (value.isPoison())
    return std::nullopt;
  Subscript result;
  result.span = span;
  if (value.index) {
    result.index = *value.index;
    result.exact = value.exact;
    if (std::optional<IndexVar> var = result.index.asVariable(); var && !var->isSymbol()) {
      const Var &bound = ctx.program->vars[var->position()];
      if (bound.kind != Var::Data)
        result.bare = &bound;
    }
    return result;
  }
  if (isInteger(value.expr->type)) {
    if (std::optional<IndexExpr> index = toIndex(ctx, value.expr)) {
      result.index = *index;
      return result;
    }
    ctx.report(Code::SizeOverflow, span,
               "this integer leaves the range of 64 bits, or its formula is too long");
    return std::nullopt;
  }
  Report record =
      ctx.report(code, span, what + " expects an integer, got " + toString(typeAlone(value)));
  if (isFloat(value.expr->type)) {
    record.note("i32(v) truncates; '//' rounds a quotient of integers down");
    if (ctx.expansions.empty() && value.expr->kind != Expr::Constant)
      record.fix("convert it", {{span, "i32(" + ctx.text(span).str() + ")"}});
  }
  return std::nullopt;
}

std::optional<IndexExpr> tegula::toIndex(CheckContext &ctx, const Expr *expr) {
  expr = in64Bits(ctx, expr);
  // Operands may be shared: each is looked at once.
  auto [known, isNew] = ctx.facts.exprIndices.try_emplace(expr);
  if (isNew) {
    std::optional<IndexExpr> index = computeIndex(ctx, expr);
    ctx.facts.exprIndices[expr] = index;
    return index;
  }
  return known->second;
}

static std::optional<IndexExpr> computeIndex(CheckContext &ctx, const Expr *expr) {
  auto checkedIndex = [](IndexExpr index) -> std::optional<IndexExpr> {
    if (index.isOverflow())
      return std::nullopt;
    return index;
  };
  switch (expr->kind) {
  case Expr::Index:
    return expr->index;
  case Expr::Constant:
    if (expr->type == DType::U64 && expr->intValue < 0)
      break;
    return IndexExpr(expr->intValue);
  case Expr::Widen:
    if (isInteger(expr->operands[0]->type))
      return toIndex(ctx, expr->operands[0]);
    break;
  case Expr::Convert:
    // A conversion that changes no value; any other is a number of its own.
    if (isInteger(expr->operands[0]->type) && isInteger(expr->type))
      if (integerRange(expr->target)->contains(intervalOf(ctx, expr->operands[0])))
        return toIndex(ctx, expr->operands[0]);
    break;
  case Expr::Unary:
    if (expr->unary == Unary::Neg && !isUnsigned(expr->type))
      if (std::optional<IndexExpr> operand = toIndex(ctx, expr->operands[0]))
        return checkedIndex(-*operand);
    break;
  case Expr::Binary: {
    if (expr->binary != Binary::Add && expr->binary != Binary::Sub && expr->binary != Binary::Mul)
      break;
    if (isUnsigned(expr->type)) // wraps where signed numbers go on
      break;
    std::optional<IndexExpr> a = toIndex(ctx, expr->operands[0]),
                             b = toIndex(ctx, expr->operands[1]);
    if (!a || !b)
      return std::nullopt;
    return checkedIndex(expr->binary == Binary::Add   ? *a + *b
                        : expr->binary == Binary::Sub ? *a - *b
                                                      : *a * *b);
  }
  default:
    break;
  }
  return IndexExpr::dim(dataVar(ctx, expr)->id);
}

const checked::Var *tegula::dataVar(CheckContext &ctx, const Expr *expr) {
  unsigned key = keyOf(ctx, expr);
  if (const Var *known = ctx.facts.dataVars.lookup(key)) {
    if (known->hasRange) // perhaps from a first pass, which adds no guards
      isExact(ctx, known->lo), isExact(ctx, known->hi);
    return known;
  }
  auto range = rangeOf(ctx, expr);
  Var &made = ctx.program->vars.emplace_back();
  made.kind = Var::Data;
  made.id = ctx.program->vars.size() - 1;
  made.name = ctx.text(expr->span).take_front(40).str();
  made.data = expr;
  made.span = expr->span;
  made.hasRange = range.has_value();
  if (range) {
    made.lo = range->first;
    made.hi = range->second + 1;
  }
  return ctx.facts.dataVars[key] = &made;
}

/// Inclusive bounds of values of a type that has no negative ones.
static std::optional<std::pair<IndexExpr, IndexExpr>> rangeOfType(CheckContext &ctx,
                                                                  const Expr *expr) {
  Interval interval = mayWrap(ctx, expr) ? *integerRange(expr->type) : intervalOf(ctx, expr);
  if (interval.lo < 0 || interval.hi >= INT64_MAX)
    return std::nullopt;
  return std::pair(IndexExpr(int64_t(interval.lo)), IndexExpr(int64_t(interval.hi)));
}

/// Inclusive bounds of positions in a range.
static std::optional<std::pair<IndexExpr, IndexExpr>> rangeOfPositions(const Var &var) {
  if (var.kind != Var::Axis || !var.lo.isSize() || !var.hi.isSize())
    return std::nullopt;
  return std::pair(var.lo, var.hi - 1);
}

/// Whether a conversion, or what is converted implicitly, has the value that it had: for sizes a
/// launch checks that.
static bool keepsValue(CheckContext &ctx, const Expr *expr) {
  if (expr->kind != Expr::Convert)
    return !mayWrap(ctx, expr);
  const Expr *operand = expr->operands[0];
  if (!isInteger(operand->type) || !isInteger(expr->type) || mayWrap(ctx, operand))
    return false;
  Interval target = *integerRange(expr->target);
  if (target.contains(intervalOf(ctx, operand)))
    return true;
  if (operand->kind != Expr::Index || !operand->index.isSize() || target.hi > INT64_MAX ||
      !ctx.prover->proves(Condition::nonNegative(operand->index)))
    return false;
  if (!ctx.isSilent())
    addGuard(ctx, Guard::InBounds, operand->index, IndexExpr(int64_t(target.hi)) + 1,
             show(ctx, operand->index) + " is no " + toString(expr->target).str(), expr->span);
  return true;
}

/// Inclusive bounds of an integer value, where its form shows them.
std::optional<std::pair<IndexExpr, IndexExpr>> tegula::rangeOf(CheckContext &ctx,
                                                               const Expr *expr) {
  auto [known, isNew] = ctx.facts.exprRanges.try_emplace(expr);
  if (isNew) {
    std::optional<std::pair<IndexExpr, IndexExpr>> range = computeRange(ctx, expr);
    if (!range && expr->type == DType::U32)
      range = std::pair(IndexExpr(0), IndexExpr(UINT32_MAX));
    if (range && (range->first.isOverflow() || (range->second + 1).isOverflow()))
      range.reset();
    ctx.facts.exprRanges[expr] = range;
    return range;
  }
  return known->second;
}

static std::optional<std::pair<IndexExpr, IndexExpr>> computeRange(CheckContext &ctx,
                                                                   const Expr *expr) {
  switch (expr->kind) {
  case Expr::Constant:
    if (expr->type == DType::U64 && expr->intValue < 0)
      return std::nullopt;
    return std::pair(IndexExpr(expr->intValue), IndexExpr(expr->intValue));
  case Expr::Index:
    if (!isExact(ctx, expr->index))
      return std::nullopt;
    return std::pair(expr->index, expr->index);
  case Expr::Widen:
    if (isInteger(expr->operands[0]->type))
      return rangeOf(ctx, expr->operands[0]);
    return rangeOfType(ctx, expr);
  case Expr::Convert:
    if (isInteger(expr->operands[0]->type) && keepsValue(ctx, expr))
      return rangeOf(ctx, expr->operands[0]);
    return rangeOfType(ctx, expr);
  case Expr::Quantize:
  case Expr::Read:
    return rangeOfType(ctx, expr);
  case Expr::Binary: {
    const Expr *x = expr->operands[0], *y = expr->operands[1];
    if (expr->binary == Binary::Mod) {
      // 0 <= x % n < n where n > 0; for data, n = 0 gives 0.
      if (y->kind == Expr::Constant && y->intValue > 0)
        return std::pair(IndexExpr(0), IndexExpr(y->intValue - 1));
      if (std::optional<IndexExpr> n = toIndex(ctx, y); n && n->isSize() && keepsValue(ctx, y))
        if (ctx.prover->proves(Condition::nonNegative(*n)))
          return std::pair(IndexExpr(0), IndexExpr::max(*n - 1, 0));
      return std::nullopt;
    }
    if (auto bits = bitsRange(ctx, expr))
      return std::pair(IndexExpr(bits->first), IndexExpr(bits->second));
    if (expr->binary == Binary::BitAnd) {
      // What is not negative bounds the common bits.
      for (const Expr *one : {x, y})
        if (auto range = rangeOf(ctx, one);
            range && ctx.prover->proves(Condition::nonNegative(range->first)))
          return std::pair(IndexExpr(0), range->second);
      return std::nullopt;
    }
    if (expr->binary != Binary::Max && expr->binary != Binary::Min)
      return std::nullopt;
    auto a = rangeOf(ctx, x), b = rangeOf(ctx, y);
    if (expr->binary == Binary::Max) {
      // A lower bound of either side is one; an upper bound needs both.
      if (a && b)
        return std::pair(IndexExpr::max(a->first, b->first), IndexExpr::max(a->second, b->second));
      return std::nullopt;
    }
    if (a && b)
      return std::pair(IndexExpr::min(a->first, b->first), IndexExpr::min(a->second, b->second));
    // minimum(maximum(v, lo), hi): bounded below by minimum(lo, hi).
    const Expr *inner = b ? x : y;
    auto hi = b ? b : a;
    while (inner->kind == Expr::Widen && isInteger(inner->operands[0]->type))
      inner = inner->operands[0];
    if (hi && inner->kind == Expr::Binary && inner->binary == Binary::Max) {
      auto p = rangeOf(ctx, inner->operands[0]), q = rangeOf(ctx, inner->operands[1]);
      auto lo = p ? p : q;
      if (lo)
        return std::pair(IndexExpr::min(lo->first, hi->first), hi->second);
    }
    return std::nullopt;
  }
  case Expr::Where: {
    auto a = rangeOf(ctx, expr->operands[1]), b = rangeOf(ctx, expr->operands[2]);
    if (a && b)
      return std::pair(IndexExpr::min(a->first, b->first), IndexExpr::max(a->second, b->second));
    return std::nullopt;
  }
  case Expr::Reduce:
    // Where nothing is compared there is no winner: -1.
    if ((expr->reduction == Reduction::ArgMax || expr->reduction == Reduction::ArgMin) &&
        !expr->filter &&
        ctx.prover->proves(Condition::lessThan(expr->vars[0]->lo, expr->vars[0]->hi)))
      return rangeOfPositions(*expr->vars[0]);
    return std::nullopt;
  case Expr::Scan:
    if (expr->scan == checked::Scan::ArgSort || expr->scan == checked::Scan::TopKIndex)
      return rangeOfPositions(*expr->vars[0]);
    return std::nullopt;
  case Expr::Let:
    return rangeOf(ctx, expr->let->value);
  default:
    return std::nullopt;
  }
}

void tegula::forgetValues(CheckContext &ctx) {
  ctx.facts.dataVars.clear();
  ctx.facts.keyNumbers.clear();
  ctx.facts.exprKeys.clear();
  ctx.facts.exprIndices.clear();
  ctx.facts.exprRanges.clear();
}

/// A number that is the same for values that are the same (within one statement).
unsigned tegula::keyOf(CheckContext &ctx, const Expr *expr) {
  if (auto known = ctx.facts.exprKeys.find(expr); known != ctx.facts.exprKeys.end())
    return known->second;
  std::string key;
  llvm::raw_string_ostream os(key);
  switch (expr->kind) {
  case Expr::Constant:
    os << "c" << unsigned(expr->type) << ":" << expr->intValue << ":" << expr->floatValue;
    break;
  case Expr::Index:
    os << "i(" << expr->index << ")";
    break;
  case Expr::Read:
    if (expr->guard || expr->fill || !expr->exact.empty())
      os << "p" << static_cast<const void *>(expr);
    else {
      os << "r" << static_cast<const void *>(expr->tensor) << "[";
      for (const IndexExpr &subscript : expr->subscripts)
        os << subscript << ",";
      os << "]";
    }
    break;
  case Expr::Let:
    os << "l" << static_cast<const void *>(expr->let);
    break;
  case Expr::Widen:
  case Expr::Binary:
  case Expr::Unary:
  case Expr::Where:
    os << "o" << unsigned(expr->kind) << "." << unsigned(expr->type) << "."
       << (expr->kind == Expr::Unary ? unsigned(expr->unary) : unsigned(expr->binary)) << "(";
    for (const Expr *operand : expr->operands)
      os << keyOf(ctx, operand) << ",";
    os << ")";
    break;
  default:
    os << "p" << static_cast<const void *>(expr);
    break;
  }
  unsigned number =
      ctx.facts.keyNumbers.try_emplace(key, ctx.facts.keyNumbers.size()).first->second;
  return ctx.facts.exprKeys[expr] = number;
}
