//===- CheckExact.cpp - Formulas within 64 bits -----------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The prover, and the passes that drop what it proves, know integers without end; code computes in
// 64 bits. A formula is exact where both give the same number. For data that decides whether a
// condition is a fact. Formulas of sizes and indices are exact or the program is refused: where
// sizes of `maxBoundSize` could make them leave 64 bits, a launch checks what their absolute value
// does not exceed, once, before anything runs.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckExact.h"
#include "frontend/check/CheckDomain.h"
#include "frontend/check/CheckGuard.h"
#include "frontend/check/CheckSizes.h"
#include "frontend/check/CheckWrap.h"
#include "symbolic/Guards.h"
#include <array>
#include <numeric>

using namespace tegula;
using namespace tegula::checked;

using Wide = __int128;

static std::optional<IndexExpr> magnitudeOf(CheckContext &ctx, const IndexExpr &expr,
                                            unsigned depth = 0);

/// Parts of parts of a formula, and ranges that depend on each other, are followed so far.
static constexpr unsigned maxDepth = 32;

static Wide magnitude(const IntegerRange &a) {
  return std::max(a.hi < 0 ? -a.hi : a.hi, a.lo < 0 ? -a.lo : a.lo);
}

static bool fits(const IntegerRange &a) { return IntegerRange{INT64_MIN, INT64_MAX}.contains(a); }

/// A sum, as a product of which `unsigned` copies are factors.
static IndexExpr powerOf(const IndexExpr &base, unsigned power) {
  IndexExpr result(1);
  for (unsigned i = 0; i != power; ++i)
    result = result * base;
  return result;
}

static std::optional<IndexExpr> magnitudeOf(CheckContext &ctx, const IndexVar &var,
                                            unsigned depth) {
  IndexExpr variable = IndexExpr::variable(var);
  Interval interval = intervalOf(ctx, variable);
  if (magnitude(interval) <= Wide(1) << 32)
    return IndexExpr(int64_t(magnitude(interval)));
  if (var.isSymbol())
    return interval.lo < 0 ? IndexExpr::max(variable, -variable) : variable;
  const Var &bound = ctx.program->vars[var.position()];
  if (bound.hasRange) {
    std::optional<IndexExpr> lo = magnitudeOf(ctx, bound.lo, depth + 1),
                             hi = magnitudeOf(ctx, bound.hi, depth + 1);
    if (lo && hi)
      return *lo + *hi;
  }
  if (magnitude(interval) > INT64_MAX)
    return std::nullopt;
  return IndexExpr(int64_t(magnitude(interval)));
}

/// A product. With a quotient its divisor cancels what it shares with the other factors: `D*(i //
/// D)`, which is what `i % D` is made of, is no larger than i, and D.
static std::optional<IndexExpr> magnitudeOf(CheckContext &ctx, const IndexExpr::Term &term,
                                            unsigned depth) {
  if (term.coefficient == INT64_MIN)
    return std::nullopt;
  int64_t coefficient = std::abs(term.coefficient);
  auto factors = term.factors;
  const IndexExpr::Atom *quotient = nullptr;
  IndexExpr shared(1); // what was cancelled
  for (auto &[atom, power] : factors)
    if (!quotient && atom->kind == IndexExpr::AtomKind::FloorDiv && power == 1 &&
        atom->operands[1].terms().size() == 1) {
      quotient = atom.get();
      power = 0;
    }
  if (quotient) {
    const IndexExpr::Term &divisor = quotient->operands[1].terms()[0];
    if (divisor.coefficient != INT64_MIN) {
      int64_t most = std::abs(divisor.coefficient);
      int64_t common = std::gcd(coefficient, most);
      shared = shared * IndexExpr(common);
      coefficient = (coefficient - 1) / most + 1;
    }
    for (auto &[atom, power] : factors)
      for (const auto &[other, times] : divisor.factors)
        if (IndexExpr::variable(atom->var) == IndexExpr::variable(other->var) &&
            atom->kind == IndexExpr::AtomKind::Variable &&
            other->kind == IndexExpr::AtomKind::Variable) {
          unsigned cancelled = std::min(power, times);
          power -= cancelled;
          std::optional<IndexExpr> size = magnitudeOf(ctx, atom->var, depth + 1);
          if (!size)
            return std::nullopt;
          shared = shared * powerOf(*size, cancelled);
        }
  }
  IndexExpr value(coefficient);
  if (quotient) {
    std::optional<IndexExpr> numerator = magnitudeOf(ctx, quotient->operands[0], depth + 1);
    if (!numerator)
      return std::nullopt;
    bool isNegative = intervalOf(ctx, quotient->operands[0]).lo < 0 ||
                      intervalOf(ctx, quotient->operands[1]).lo < 0;
    value = value * (isNegative ? *numerator + shared
                                : *numerator); // a quotient below 0 is rounded away from it
  }
  for (const auto &[atom, power] : factors) {
    if (!power)
      continue;
    std::optional<IndexExpr> size;
    if (atom->kind == IndexExpr::AtomKind::Variable) {
      size = magnitudeOf(ctx, atom->var, depth + 1);
    } else {
      size = IndexExpr(1); // of a quotient that is rounded away from 0
      for (const IndexExpr &operand : atom->operands) {
        std::optional<IndexExpr> part = magnitudeOf(ctx, operand, depth + 1);
        if (!part)
          return std::nullopt;
        size = *size + *part;
      }
    }
    if (!size)
      return std::nullopt;
    value = value * powerOf(*size, power);
  }
  return value;
}

/// What the absolute value does not exceed, in sizes; nothing where data could be any number.
static std::optional<IndexExpr> magnitudeOf(CheckContext &ctx, const IndexExpr &expr,
                                            unsigned depth) {
  if (depth > maxDepth || expr.isOverflow())
    return std::nullopt;
  IndexExpr total;
  for (const IndexExpr::Term &term : expr.terms()) {
    std::optional<IndexExpr> size = magnitudeOf(ctx, term, depth);
    if (!size)
      return std::nullopt;
    total = total + *size;
  }
  if (total.isOverflow())
    return std::nullopt;
  return total;
}

/// Whether no term of `a` is larger than that of `b`.
static bool isWithin(const IndexExpr &a, const IndexExpr &b) {
  IndexExpr difference = b - a;
  return !difference.isOverflow() &&
         llvm::all_of(difference.terms(),
                      [](const IndexExpr::Term &term) { return term.coefficient >= 0; });
}

bool tegula::isExact(CheckContext &ctx, const IndexExpr &expr) {
  if (expr.isOverflow())
    return false;
  if (fits(intervalOf(ctx, expr)))
    return true;
  std::optional<IndexExpr> magnitude = magnitudeOf(ctx, expr);
  if (!magnitude || !magnitude->isSize())
    return false;
  if (fits(intervalOf(ctx, *magnitude)))
    return true;
  if (magnitude->asConstant())
    return false;
  IndexExpr size = named(ctx, *magnitude);
  if (ctx.isSilent() || llvm::any_of(ctx.facts.boundedMagnitudes,
                                     [&](const IndexExpr &one) { return isWithin(size, one); }))
    return true;
  ctx.facts.boundedMagnitudes.push_back(size);
  addGuard(ctx, Guard::InBounds, size, IndexExpr(INT64_MAX),
           show(ctx, expr) + " may leave the range of 64 bits",
           ctx.currentStmt ? ctx.currentStmt->span : Span());
  return true;
}

bool tegula::isFormula(CheckContext &ctx, const Value &a, const Value &b) {
  return llvm::all_of(std::array{&a, &b}, [&](const Value *one) {
    return !one->index || !usesData(ctx, *one->index) || isExact(ctx, *one->index);
  });
}

bool tegula::requireIn64Bits(CheckContext &ctx, const IndexExpr &expr, Span span) {
  if (ctx.isSilent() || expr.asVariable() || expr.asConstant() || usesData(ctx, expr))
    return true;
  if (!isExact(ctx, expr)) {
    Report record = ctx.report(
        Code::SizeOverflow, span,
        expr.isOverflow() ? "this integer leaves the range of 64 bits, or its formula is too long"
                          : show(ctx, expr) + " leaves the range of 64 bits");
    record.note("subscripts, bounds of ranges and comparisons are computed in 64 bits");
    return false;
  }
  for (const IndexExpr::Term &term : expr.terms())
    for (const auto &[atom, power] : term.factors)
      if (atom->kind != IndexExpr::AtomKind::Float)
        for (const IndexExpr &operand : atom->operands)
          if (!requireIn64Bits(ctx, operand, span))
            return false;
  return true;
}
