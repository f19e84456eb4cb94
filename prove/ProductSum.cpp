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
  Line line = algebra.timesLine(a.under, b.under);
  if (line == under) {
    numerator = std::max(numerator, above);
    denominator = std::max(denominator, below);
    return;
  }
  numerator = std::max(numerator + below, above + denominator);
  denominator += below;
  under = algebra.timesLine(line, under);
}

void ProductSum::addResidues() {
  for (unsigned place = 0; place < Chains::places; ++place) {
    unsigned __int128 sum = wide[place];
    for (size_t k = 0; k < pending; ++k)
      sum += (unsigned __int128)left[k]->residues[place] * right[k]->residues[place];
    // Below 4 primes times 2^64: one, and a quarter for each product of a block.
    for (uint64_t multiple : {2 * chain[place].prime(), chain[place].prime()})
      if (uint64_t(sum >> 64) >= multiple)
        sum -= (unsigned __int128)multiple << 64;
    wide[place] = sum;
  }
}

void ProductSum::addFinite() {
  addResidues();
  // Sums stay in registers: a store for each product would make the next one wait.
  Real sum = real;
  auto partial = double(real);
  double slacks = 0, errors = 0, sizes = 0, rough = 0;
  float above = 0, below = 0;
  unsigned hasLine = under.isThere();
  for (size_t k = 0; k < pending; ++k) {
    const Number &a = *left[k], &b = *right[k];
    sum += a.real * b.real;
    auto x = double(a.real), y = double(b.real), product = x * y;
    x = std::fabs(x), y = std::fabs(y);
    partial += product;
    sizes += std::fabs(product);
    slacks += x * b.slack + y * a.slack + a.slack * b.slack + 2 * realUnit * std::fabs(partial);
    errors += x * b.error + y * a.error;
    rough += a.coarse + b.coarse + a.single + b.single;
    hasLine |= unsigned(a.under.isThere()) | unsigned(b.under.isThere());
    above = std::max(above, a.numerator + b.numerator);
    below = std::max(below, a.denominator + b.denominator);
  }
  real = sum;
  slack += slacks + 2 * realUnit * sizes;
  error += errors + Algebra::unit * sizes;
  magnitudes += sizes;
  isProduct = !terms && pending == 1 && left[0]->isProduct && right[0]->isProduct;
  if (!hasLine) {
    numerator = std::max(numerator, above);
    denominator = std::max(denominator, below);
  }
  for (size_t k = 0; k < pending; ++k) {
    const Number &a = *left[k], &b = *right[k];
    if (hasLine)
      addWeights(a, b);
    if (rough == 0)
      continue;
    auto x = double(std::fabs(a.real)), y = double(std::fabs(b.real));
    coarse += x * b.coarse + y * a.coarse;
    single += x * b.single + y * a.single;
  }
  terms += pending;
}

void ProductSum::addInfinite(const Number &a, const Number &b) {
  Number product = algebra.mul(a, b);
  isNan |= product.kind == Number::NotANumber;
  if (product.kind == Number::Infinite)
    (product.real > 0 ? isUp : isDown) = true;
}

void ProductSum::addPending() {
  unsigned isOdd = 0, isInfinite = 0;
  for (size_t k = 0; k < pending; ++k) {
    const Number &a = *left[k], &b = *right[k];
    isInfinite |= unsigned(a.kind) | unsigned(b.kind);
    isOdd |= unsigned(a.hasExp) | unsigned(b.hasExp) | (unsigned(a.isRoot) & unsigned(b.isRoot));
  }
  isPlain &= !isOdd;
  for (size_t k = 0; k < pending && isInfinite && isPlain; ++k)
    addInfinite(*left[k], *right[k]);
  if (!isInfinite && isPlain)
    addFinite();
  pending = 0;
}

void ProductSum::add(const Number *a, ptrdiff_t aStep, const Number *b, ptrdiff_t bStep, size_t n) {
  count += n;
  for (size_t k = 0; k < n; ++k, a += aStep, b += bStep)
    wait(*a, *b);
}

std::optional<Number> ProductSum::total() {
  addPending();
  if (!isPlain || !std::isfinite(real))
    return std::nullopt;
  if (isNan || (isUp && isDown))
    return algebra.nan();
  if (isUp || isDown)
    return algebra.infinity(isDown);
  Number sum;
  for (unsigned place = 0; place < Chains::places; ++place)
    sum.residues[place] = chain[place].reduced(wide[place]);
  sum.real = real;
  sum.slack = slack;
  // In another order each partial sum may be as large as the sum of magnitudes.
  double lost = double(count) * Algebra::lostBelow(magnitudes);
  sum.error = error + Algebra::unit * double(count) * magnitudes + lost;
  sum.coarse = coarse + lost;
  sum.single = single;
  sum.numerator = numerator;
  sum.denominator = denominator;
  sum.under = under;
  sum.isProduct = isProduct;
  return sum;
}
