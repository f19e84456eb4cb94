//===- Bounds.h - Between which reals values lie ------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `minimum(maximum(x, 0)*2, 5)` is below 6 whatever x is. A condition that bounds decide has one
// way alone, so that no point that takes the other one is missing. They hold for all data but nan,
// which agrees with nothing.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PROVE_BOUNDS_H
#define TEGULA_PROVE_BOUNDS_H

#include "ir/tgl/Tgl.h"
#include <limits>

namespace tegula::prove {

struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  static Bounds of(double value) { return {value, value}; }
  static Bounds notNegative() { return {0, std::numeric_limits<double>::infinity()}; }
  bool isKnown() const;
  /// Whether one of the two is never less than the other one.
  static bool areOrdered(const Bounds &a, const Bounds &b) {
    return a.low >= b.high || b.low >= a.high;
  }
};

Bounds hull(const Bounds &a, const Bounds &b);
Bounds largerOf(const Bounds &a, const Bounds &b);
Bounds smallerOf(const Bounds &a, const Bounds &b);
Bounds negated(const Bounds &a);
Bounds sum(const Bounds &a, const Bounds &b);
Bounds product(const Bounds &a, const Bounds &b);
Bounds quotient(const Bounds &a, const Bounds &b);
/// By a function of one number, by the name that it has in a trace and, less its dialect, in the
/// IR.
Bounds ofFunction(llvm::StringRef name, const Bounds &a);

/// What is known of a value of the IR from the operations that make it.
Bounds boundsOf(mlir::Value value, unsigned depth = 0);

} // namespace tegula::prove

#endif // TEGULA_PROVE_BOUNDS_H
