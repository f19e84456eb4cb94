//===- CheckBits.cpp - Operators on bits, powers of integers ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `&`, `|`, `^`, `~`, `<<` and `>>` of integers [2.8]. Where one side is a number and the other an
// integer of sizes and indices they are quotients, remainders and products of it, which the prover
// knows; elsewhere they are values, of which some ranges are known.
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckBits.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckCondition.h"
#include "frontend/check/CheckExact.h"
#include "frontend/check/CheckIndex.h"
#include "frontend/check/CheckSizes.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace tegula;
using namespace tegula::checked;

using Numbers = std::optional<std::pair<int64_t, int64_t>>;

static Value shift(CheckContext &ctx, checked::Binary op, const Value &a, const Value &b,
                   Span span);
static std::optional<std::pair<int64_t, int64_t>> numbersOf(CheckContext &ctx, const Expr *expr);

/// A larger power of two is no divisor or factor of a subscript.
static constexpr int64_t maxCount = 62;

//===----------------------------------------------------------------------===//
// Integers of sizes and indices
//===----------------------------------------------------------------------===//

/// `index & mask`: one remainder for each run of ones in the mask. Nothing where there are many.
static std::optional<IndexExpr> maskedBy(const IndexExpr &index, int64_t mask) {
  if (mask < 0) {
    std::optional<IndexExpr> cleared = maskedBy(index, ~mask);
    return cleared ? std::optional(index - *cleared) : std::nullopt;
  }
  constexpr unsigned maxRuns = 4;
  IndexExpr sum(0);
  unsigned runs = 0;
  for (auto rest = static_cast<uint64_t>(mask); rest; ++runs) {
    int64_t low = llvm::countr_zero(rest), length = llvm::countr_one(rest >> low);
    if (length > maxCount || runs == maxRuns)
      return std::nullopt;
    IndexExpr digits = IndexExpr::floorDiv(index, IndexExpr(int64_t(1) << low));
    sum = sum +
          IndexExpr::mod(digits, IndexExpr(int64_t(1) << length)) * IndexExpr(int64_t(1) << low);
    rest &= ~(llvm::maskTrailingOnes<uint64_t>(length) << low);
  }
  return sum;
}

/// The operator on two integers of 64 bits.
static int64_t foldBits(Binary op, int64_t a, int64_t b) {
  bool isInside = b >= 0 && b < 64;
  switch (op) {
  case Binary::BitAnd:
    return a & b;
  case Binary::BitOr:
    return a | b;
  case Binary::BitXor:
    return a ^ b;
  case Binary::Shl:
    return isInside ? static_cast<int64_t>(static_cast<uint64_t>(a) << b) : 0;
  default:
    return isInside ? a >> b : a < 0 ? -1 : 0;
  }
}

/// The operator as sums, quotients and remainders, where one operand is a number.
static std::optional<IndexExpr> bitsOfIndex(Binary op, const IndexExpr &a, const IndexExpr &b) {
  std::optional<int64_t> left = a.asConstant(), right = b.asConstant();
  if (op == Binary::Shl || op == Binary::Shr) {
    if (!right || *right < 0 || *right > maxCount)
      return left && right ? std::optional(IndexExpr(foldBits(op, *left, *right))) : std::nullopt;
    IndexExpr power(int64_t(1) << *right);
    return op == Binary::Shl ? a * power : IndexExpr::floorDiv(a, power);
  }
  if (left && right)
    return IndexExpr(foldBits(op, *left, *right));
  if (!left && !right)
    return std::nullopt;
  const IndexExpr &value = left ? b : a, &mask = left ? a : b;
  std::optional<IndexExpr> common = maskedBy(value, left ? *left : *right);
  if (!common || op == Binary::BitAnd)
    return common;
  return value + mask - (op == Binary::BitOr ? IndexExpr(1) : IndexExpr(2)) * *common;
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

Value tegula::complement(CheckContext &ctx, const Value &a, Span span, Span opSpan) {
  if (a.isPoison())
    return {};
  if (a.expr->type == DType::Bool) {
    if (std::optional<bool> known = boolOf(a.expr))
      return strong(booleanNode(ctx, !*known, span));
    return strong(unaryNode(ctx, Unary::Not, a.expr, DType::Bool, span));
  }
  return bitwise(ctx, Binary::BitXor, a, indexValue(ctx, IndexExpr(-1), span), span, opSpan);
}

Value tegula::bitwise(CheckContext &ctx, Binary op, const Value &a, const Value &b, Span span,
                      Span opSpan) {
  if (a.isPoison() || b.isPoison())
    return {};
  std::string sign = ctx.text(opSpan).str();
  if (isFloat(a.expr->type) || isFloat(b.expr->type)) {
    const Value &culprit = isFloat(a.expr->type) ? a : b;
    Report record = ctx.report(Code::OperandType, span,
                               "'" + sign + "' works on the bits of integers, got " +
                                   toString(typeAlone(culprit)));
    if (!a.exact.empty() || !b.exact.empty())
      record.note("a quotient of integers that is an integer is written with '//'");
    else if (op == Binary::BitXor && sign == "^")
      record.note("a power is written '**'").fix("write '**'", {{opSpan, "**"}});
    else if (op == Binary::BitAnd || op == Binary::BitOr)
      record.note("comparisons bind weaker than '" + sign + "', as in Python: write (a > 0) " +
                  sign + " (b > 0)");
    return {};
  }
  if (op == Binary::Shl || op == Binary::Shr)
    return shift(ctx, op, a, b, span);
  if (a.expr->type == DType::Bool && b.expr->type == DType::Bool) {
    std::optional<bool> x = boolOf(a.expr), y = boolOf(b.expr);
    if (op == Binary::BitXor)
      return compare(ctx, Binary::NE, a, b, span);
    bool isAnd = op == Binary::BitAnd;
    if (x)
      return *x == isAnd ? b : a;
    if (y)
      return *y == isAnd ? a : b;
    return strong(
        binaryNode(ctx, isAnd ? Binary::And : Binary::Or, a.expr, b.expr, DType::Bool, span));
  }
  if (a.isIndex() && b.isIndex() && isFormula(ctx, a, b))
    if (std::optional<IndexExpr> index = bitsOfIndex(op, *a.index, *b.index))
      return indexValue(ctx, named(ctx, *index), span);
  auto [type, weak] = meet(ctx, a, b, span);
  return Value{
      binaryNode(ctx, op, coerce(ctx, a, type), coerce(ctx, b, type), type, span), weak, {}, {}};
}

/// A shift has the type that both operands meet in; where one is unsigned, the left one's.
static Value shift(CheckContext &ctx, Binary op, const Value &a, const Value &b, Span span) {
  if (a.isIndex() && b.isIndex() && isFormula(ctx, a, b))
    if (std::optional<IndexExpr> index = bitsOfIndex(op, *a.index, *b.index))
      return indexValue(ctx, named(ctx, *index), span);
  bool ownType = isUnsigned(a.expr->type) || (isUnsigned(b.expr->type) && !a.weak);
  auto [type, weak] = ownType ? std::pair(a.expr->type, false) : meet(ctx, a, b, span);
  if (type == DType::Bool)
    type = DType::I32;
  const Expr *count = b.weak ? coerce(ctx, b, type) : b.expr;
  if (count->type == DType::Bool)
    count = widen(ctx, count, DType::I32);
  Expr *expr = makeExpr(ctx, Expr::Binary, type, span);
  expr->binary = op;
  expr->operands = {coerce(ctx, a, type), count};
  if (Numbers known = numbersOf(ctx, count))
    if (known->first >= 0 && known->second < int64_t(bitWidth(type)))
      expr->exponentBits = 0;
  return Value{finishExpr(ctx, expr), weak, {}, {}};
}

Value tegula::power(CheckContext &ctx, const Value &a, const Value &b, Span span) {
  if (a.isPoison() || b.isPoison())
    return {};
  std::optional<int64_t> exponent;
  if (b.isIndex())
    exponent = b.index->asConstant();
  // Of an index a high power is a number that wraps: as a formula it would leave 64 bits within a
  // few points.
  constexpr int64_t highest = 3;
  if (a.isIndex() && exponent && *exponent >= 0 &&
      *exponent <= (a.index->isSize() ? 64 : highest)) {
    IndexExpr product(1);
    for (int64_t i = 0; i != *exponent; ++i)
      product = product * *a.index;
    if (!product.isOverflow() || a.index->isSize()) // else it is a number of i64, which wraps
      return indexValue(ctx, product, span);
  }
  auto [type, weak] = meet(ctx, a, b, span);
  if (type == DType::Bool)
    type = DType::I32;
  Numbers known = isFloat(type) ? Numbers() : numbersOf(ctx, b.expr);
  // A number as exponent that is negative makes a float, as in Python.
  if (exponent && *exponent < 0 && !isFloat(type)) {
    weak = a.weak && b.weak;
    type = weak ? DType::F64 : DType::F32;
  } else if (known && known->first < 0 && known->second <= 0) {
    ctx.report(Code::OperandType, span,
               "an integer to a power that is never positive: powers of integers are integers")
        .note("let the base be a float: 2.0 ** -i");
    return {};
  }
  // An exponent that is known is a constant, also where it was converted.
  bool isKnown = exponent && !isFloat(type);
  const Expr *x = coerce(ctx, a, type);
  const Expr *y = coerce(ctx, isKnown ? indexValue(ctx, IndexExpr(*exponent), span) : b, type);
  std::optional<double> p = constantOf(x), q = constantOf(y);
  if (p && q && isFloat(type) && weak)
    return Value{constantNode(ctx, std::pow(*p, *q), type, span), true, {}, {}};
  if (exponent == 2)
    return Value{binaryNode(ctx, Binary::Mul, x, x, type, span), weak, {}, {}};
  if (exponent == 1)
    return Value{x, weak, {}, {}};
  Expr *expr = makeExpr(ctx, Expr::Binary, type, span);
  expr->binary = Binary::Pow;
  expr->operands = {x, y};
  if (known && known->first >= 0)
    expr->exponentBits = llvm::Log2_64_Ceil(static_cast<uint64_t>(known->second) + 1);
  return Value{finishExpr(ctx, expr), weak, {}, {}};
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

/// The operation on the ends of two ranges, all in 64 bits; nothing where one leaves them.
template <typename Fn> static Numbers overEnds(Numbers a, Numbers b, Fn fn) {
  if (!a || !b)
    return std::nullopt;
  Numbers result;
  for (int64_t x : {a->first, a->second})
    for (int64_t y : {b->first, b->second}) {
      std::optional<int64_t> value = fn(x, y);
      if (!value)
        return std::nullopt;
      if (!result)
        result = {*value, *value};
      result = {std::min(result->first, *value), std::max(result->second, *value)};
    }
  return result;
}

static std::optional<int64_t> addEnds(int64_t x, int64_t y) {
  int64_t sum;
  return llvm::AddOverflow(x, y, sum) ? std::nullopt : std::optional(sum);
}
static std::optional<int64_t> multiplyEnds(int64_t x, int64_t y) {
  int64_t product;
  return llvm::MulOverflow(x, y, product) ? std::nullopt : std::optional(product);
}

static Numbers numbersOf(CheckContext &ctx, const IndexExpr &index, unsigned depth = 0) {
  constexpr unsigned deepest = 8;
  if (depth > deepest || index.isOverflow())
    return std::nullopt;
  auto atomRange = [&](const IndexExpr::Atom &atom) -> Numbers {
    switch (atom.kind) {
    case IndexExpr::AtomKind::Variable: {
      if (atom.var.isSymbol())
        return std::nullopt;
      const Var &var = ctx.program->vars[atom.var.position()];
      if (!var.hasRange)
        return std::nullopt;
      Numbers lo = numbersOf(ctx, var.lo, depth + 1), hi = numbersOf(ctx, var.hi, depth + 1);
      if (!lo || !hi || lo->first >= hi->second)
        return std::nullopt;
      return std::pair(lo->first, hi->second - 1);
    }
    case IndexExpr::AtomKind::FloorDiv: {
      std::optional<int64_t> divisor = atom.operands[1].asConstant();
      Numbers numerator = numbersOf(ctx, atom.operands[0], depth + 1);
      if (!divisor || *divisor <= 0 || !numerator)
        return std::nullopt;
      return std::pair(llvm::divideFloorSigned(numerator->first, *divisor),
                       llvm::divideFloorSigned(numerator->second, *divisor));
    }
    default:
      return std::nullopt;
    }
  };
  Numbers sum = std::pair<int64_t, int64_t>(0, 0);
  for (const IndexExpr::Term &term : index.terms()) {
    Numbers product = std::pair(term.coefficient, term.coefficient);
    for (const auto &[atom, power] : term.factors)
      for (unsigned i = 0; i != power; ++i)
        product = overEnds(product, atomRange(*atom), multiplyEnds);
    sum = overEnds(sum, product, addEnds);
  }
  return sum;
}

/// Bounds of an integer value that are numbers, where its form or its loops show them.
static Numbers numbersOf(CheckContext &ctx, const Expr *expr) {
  auto range = rangeOf(ctx, expr);
  if (!range)
    return std::nullopt;
  Numbers lo = numbersOf(ctx, range->first), hi = numbersOf(ctx, range->second);
  if (!lo || !hi || lo->first > hi->second)
    return std::nullopt;
  return std::pair(lo->first, hi->second);
}

/// The range of an operator on bits, or of a power, that is known as numbers.
Numbers tegula::bitsRange(CheckContext &ctx, const Expr *expr) {
  if (expr->binary != Binary::Pow && (expr->binary < Binary::BitAnd || expr->binary > Binary::Shr))
    return std::nullopt;
  if (isFloat(expr->type))
    return std::nullopt;
  Numbers a = numbersOf(ctx, expr->operands[0]), b = numbersOf(ctx, expr->operands[1]);
  int64_t lowest = minValue(expr->type), highest = maxValue(expr->type);
  // A result that wraps is anywhere.
  auto kept = [&](Numbers range) {
    return range && range->first >= lowest && range->second <= highest ? range : Numbers();
  };
  switch (expr->binary) {
  case Binary::BitAnd: {
    Numbers result;
    for (Numbers one : {a, b})
      if (one && one->first >= 0 && (!result || one->second < result->second))
        result = std::pair<int64_t, int64_t>(0, one->second);
    return result;
  }
  case Binary::BitOr:
  case Binary::BitXor: {
    if (!a || !b || a->first < 0 || b->first < 0)
      return std::nullopt;
    uint64_t either = static_cast<uint64_t>(a->second) | static_cast<uint64_t>(b->second);
    return std::pair<int64_t, int64_t>(
        0, static_cast<int64_t>(llvm::maskTrailingOnes<uint64_t>(llvm::bit_width(either))));
  }
  case Binary::Shl:
    if (!b || b->first < 0 || b->second > maxCount)
      return std::nullopt;
    return kept(
        overEnds(a, b, [](int64_t x, int64_t y) { return multiplyEnds(x, int64_t(1) << y); }));
  case Binary::Shr:
    if (!b || b->first < 0 || b->second >= int64_t(bitWidth(expr->type)))
      return std::nullopt;
    if (isUnsigned(expr->type)) {
      uint64_t most = llvm::maxUIntN(bitWidth(expr->type)) >> b->first;
      if (!a && b->first > 0)
        return std::pair<int64_t, int64_t>(0, static_cast<int64_t>(most));
    } else if (!a && b->first > 0) {
      a = std::pair(lowest, highest);
    }
    return overEnds(a, b, [](int64_t x, int64_t y) { return std::optional(x >> y); });
  default: { // Pow: of a base from 1 on it grows with both
    if (!a || !b || a->first < 1 || b->first < 0 || b->second > 63)
      return std::nullopt;
    auto raised = [](int64_t base, int64_t exponent) {
      std::optional<int64_t> result = 1;
      for (int64_t i = 0; i != exponent && result; ++i)
        result = multiplyEnds(*result, base);
      return result;
    };
    return kept(overEnds(a, b, raised));
  }
  }
}
