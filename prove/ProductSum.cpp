//===- ProductSum.cpp - Sums of products of numbers ----------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/ProductSum.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace tegula::prove;

static constexpr double realUnit = double(std::numeric_limits<Real>::epsilon());

/// The weight of the sum with one more product, as Algebra::mul and add have it.
void ProductSum::addWeights(const Number &a, const Number &b) {
  float above = a.numerator + b.numerator, below = a.denominator + b.denominator;
  uint64_t line = a.under && b.under ? chain[0].mul(a.under, b.under) : a.under | b.under;
  isProduct = !terms && a.isProduct && b.isProduct;
  if (line == under) {
    numerator = std::max(numerator, above);
    denominator = std::max(denominator, below);
    return;
  }
  numerator = std::max(numerator + below, above + denominator);
  denominator += below;
  under = line && under ? chain[0].mul(line, under) : line | under;
}

void ProductSum::add(const Number *a, ptrdiff_t aStep, const Number *b, ptrdiff_t bStep, size_t n) {
  constexpr unsigned levels = Chain::levels;
  uint64_t primes[levels];
  for (unsigned k = 0; k < levels; ++k)
    primes[k] = chain[k].prime();
  for (size_t k = 0; k < n; ++k, a += aStep, b += bStep) {
    if (a->kind != Number::Finite || b->kind != Number::Finite || a->hasExp || b->hasExp ||
        (a->isRoot && b->isRoot)) {
      isPlain = false;
      return;
    }
    for (unsigned level = 0; level < levels; ++level) {
      unsigned __int128 &sum = wide[level];
      sum += (unsigned __int128)a->residues[level] * b->residues[level];
      // Below 1.25 primes times 2^64, as a product is below a quarter of that.
      if (uint64_t(sum >> 64) >= primes[level])
        sum -= (unsigned __int128)primes[level] << 64;
    }
    Real product = a->real * b->real;
    real += product;
    auto x = double(std::fabs(a->real)), y = double(std::fabs(b->real)),
         magnitude = double(std::fabs(product));
    slack += x * b->slack + y * a->slack + a->slack * b->slack +
             2 * realUnit * (magnitude + double(std::fabs(real)));
    error += x * b->error + y * a->error + Algebra::unit * magnitude;
    if (a->coarse != 0 || b->coarse != 0)
      coarse += x * b->coarse + y * a->coarse;
    if (a->single != 0 || b->single != 0)
      single += x * b->single + y * a->single;
    magnitudes += magnitude;
    addWeights(*a, *b);
    ++terms;
  }
  count += n;
}

std::optional<Number> ProductSum::total() const {
  if (!isPlain || !std::isfinite(real))
    return std::nullopt;
  Number sum;
  for (unsigned level = 0; level < Chain::levels; ++level)
    sum.residues[level] = chain[level].reduced(wide[level]);
  sum.real = real;
  sum.slack = slack;
  // In another order each partial sum may be as large as the sum of magnitudes.
  sum.error = error + Algebra::unit * double(count) * magnitudes;
  sum.coarse = coarse;
  sum.single = single;
  sum.numerator = numerator;
  sum.denominator = denominator;
  sum.under = under;
  sum.isProduct = isProduct;
  return sum;
}
