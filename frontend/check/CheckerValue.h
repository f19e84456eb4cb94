//===- CheckerValue.h - What the checker knows of a value -------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to the checker: the values of expressions, subscripts and conditions, and the order of
// their types.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKERVALUE_H
#define TEGULA_FRONTEND_CHECK_CHECKERVALUE_H

#include "frontend/check/Checked.h"
#include "symbolic/IndexExpr.h"
#include <cmath>

namespace tegula {
/// Names of the checker alone: other parts of the compiler have scopes and pieces too.
inline namespace checker {

using ExactDivision = std::pair<IndexExpr, IndexExpr>; // numerator, denominator

/// What checking an expression gives.
struct Value {
  const checked::Expr *expr = nullptr; // null: an error was reported
  /// Takes the type of what it meets: literals and scalars of sizes [2.5].
  bool weak = false;
  /// Set where the value is an integer expression of sizes and vars.
  std::optional<IndexExpr> index;
  /// Divisions in `index` that must come out even. Where there are any, `expr` is the real
  /// quotient, and `index` what subscripts and sizes mean by `/`.
  std::vector<ExactDivision> exact;
  /// The element type that the value was read in or converted to; none of arithmetic's [2.1].
  std::optional<checked::DType> storage = std::nullopt;

  bool isPoison() const { return !expr; }
  bool isIndex() const { return index && exact.empty(); }
};

/// A subscript, evaluated.
struct Subscript {
  IndexExpr index;
  std::vector<ExactDivision> exact;
  Span span;
  /// Where the subscript is one index without arithmetic.
  const checked::Var *bare = nullptr;
  /// Where it is a group: its first member.
  std::optional<IndexExpr> leading = std::nullopt;
};

/// A condition on the way to where an expression stands.
struct PathCondition {
  const checked::Expr *condition = nullptr;
  bool isTrue = true;
};

/// An integer of 64 bits.
inline bool isWhole(double value) {
  constexpr double limit = 9223372036854775808.0;
  return value >= -limit && value < limit && value == std::trunc(value);
}

/// The place of a compute type in the order of widening.
inline unsigned width(checked::DType type) {
  switch (type) {
  case checked::DType::Bool:
    return 0;
  case checked::DType::I32:
    return 1;
  case checked::DType::U32:
    return 2;
  case checked::DType::I64:
    return 3;
  case checked::DType::U64:
    return 4;
  case checked::DType::F32:
    return 5;
  default:
    return 6;
  }
}

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKERVALUE_H
