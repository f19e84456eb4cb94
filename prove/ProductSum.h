//===- ProductSum.h - Sums of products of numbers -----------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What Algebra::mul and a sum of the products give, ten times as fast: matrix products and
// convolutions are most of what a network's point costs. Residues are reduced once for a sum.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PROVE_PRODUCTSUM_H
#define TEGULA_PROVE_PRODUCTSUM_H

#include "prove/Number.h"
#include <cstddef>
#include <optional>

namespace tegula::prove {

class ProductSum {
public:
  /// So many products take as long as another step of an evaluation.
  static constexpr uint64_t productsOfStep = 8;

  explicit ProductSum(Algebra &algebra) : algebra(algebra), chain(algebra.chain) {}

  /// Adds a[k*aStep] * b[k*bStep] for k below n.
  void add(const Number *a, ptrdiff_t aStep, const Number *b, ptrdiff_t bStep, size_t n);
  void add(const Number &a, const Number &b) {
    ++count;
    wait(a, b);
  }
  /// Counts products that are 0 since a factor is.
  void addZeros(size_t n) { count += n; }

  /// Nothing where a number was made of logarithms, where roots were multiplied, or where the sum
  /// is beyond long double: then operations one by one know what holds.
  std::optional<Number> total();

private:
  /// So many products, each below a quarter of its prime times 2^64, are added before they are
  /// reduced.
  static constexpr size_t block = 12;
  void wait(const Number &a, const Number &b) {
    left[pending] = &a;
    right[pending] = &b;
    if (++pending == block)
      addPending();
  }
  void addPending();
  /// The same without a branch for each product, and where a factor is infinite or nan.
  void addFinite();
  void addResidues();
  void addWeights(const Number &a, const Number &b);
  void addInfinite(const Number &a, const Number &b);

  Algebra &algebra;
  const Chains &chain;
  std::array<const Number *, block> left, right; // factors of products that wait
  size_t pending = 0;
  unsigned __int128 wide[Chains::places] = {}; // each below its prime times 2^64
  Real real = 0;
  double slack = 0, error = 0, coarse = 0, single = 0, magnitudes = 0;
  float numerator = 0, denominator = 0;
  Line under;
  size_t count = 0, terms = 0; // `terms`: that are not 0
  bool isProduct = true, isPlain = true;
  bool isNan = false, isUp = false, isDown = false; // of products that are not finite
};

} // namespace tegula::prove

#endif // TEGULA_PROVE_PRODUCTSUM_H
