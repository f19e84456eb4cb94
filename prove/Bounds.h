//===- Bounds.h - Between which reals values lie ------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `minimum(maximum(x, 0)*2, 5)` is below 6 whatever x is. A condition that bounds decide has one
// way alone, so that no point that takes the other one is missing. They hold for all finite data;
// nan agrees with nothing. What a condition asks may follow from one value alone in more than one
// way, as in `x*sigmoid(x) > -1`: then it is asked for each of many pieces of that value's range.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PROVE_BOUNDS_H
#define TEGULA_PROVE_BOUNDS_H

#include "ir/tgl/Tgl.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <cmath>
#include <limits>
#include <optional>

namespace tegula::prove {

struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  /// Whether it is a real wherever data are: no infinity, however large.
  bool isFinite = false;
  /// Whether it is above 0, as an exponential is, which bounds alone do not say.
  bool isPositive = false;

  static Bounds of(double value) { return {value, value, std::isfinite(value), value > 0}; }
  static Bounds notNegative() { return {0, std::numeric_limits<double>::infinity()}; }
  bool isKnown() const;
};

Bounds hull(const Bounds &a, const Bounds &b);
Bounds largerOf(const Bounds &a, const Bounds &b);
Bounds smallerOf(const Bounds &a, const Bounds &b);
Bounds negated(const Bounds &a);
Bounds sum(const Bounds &a, const Bounds &b);
Bounds product(const Bounds &a, const Bounds &b);
Bounds quotient(const Bounds &a, const Bounds &b);
Bounds ofFunction(llvm::StringRef name, const Bounds &a);
/// Of sums of any number of such values.
Bounds ofSums(const Bounds &a);

/// How two values stand: -1, 0 or 1 where all of one are less than, the same as or greater than all
/// of the other; nothing where that differs.
std::optional<int> orderOf(const Bounds &a, const Bounds &b);
/// What `lt`, `le`, `gt`, `ge`, `eq` and `ne` say of two values.
std::optional<bool> compared(llvm::StringRef predicate, const Bounds &a, const Bounds &b);
/// 1 where the larger (smaller) of two is the second, 0 where it is the first, maybe both.
std::optional<int> extremeOf(const Bounds &a, const Bounds &b, bool isMax);
/// 1 where a value is not positive, 0 where it is not negative.
std::optional<int> signOf(const Bounds &a);

/// Whether `outcomeOn` is one and the same for all pieces of a range.
bool isOneOnPieces(const Bounds &range,
                   llvm::function_ref<std::optional<int>(const Bounds &piece)> outcomeOn);

/// Whether a condition has one way alone: a comparison of numbers, a minimum or maximum, what a
/// select or a sign asks for, and what is made of conditions by `and`, `or` and `xor`.
bool isDecided(mlir::Operation *op);

} // namespace tegula::prove

#endif // TEGULA_PROVE_BOUNDS_H
