//===- Polynomial.h - Polynomials over numbered variables ---------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The prover's working form of an IndexExpr: integer polynomials over variables 1..255, monomials
// of degree at most 8 packed into a word. What does not fit (degree, 64-bit coefficients) makes the
// polynomial bad, and nothing is proved of a bad one.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_SYMBOLIC_POLYNOMIAL_H
#define TEGULA_SYMBOLIC_POLYNOMIAL_H

#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <optional>
#include <utility>

namespace tegula {

/// Numbers of the factors, one a byte, descending from the most significant; 0 is the monomial 1.
using Monomial = uint64_t;

namespace monomial {
inline unsigned top(Monomial m) { return m >> 56; }
inline unsigned factor(Monomial m, unsigned place) { return (m >> (56 - 8 * place)) & 255; }
inline unsigned degree(Monomial m) {
  unsigned count = 0;
  for (; m; m <<= 8)
    ++count;
  return count;
}
unsigned degreeIn(Monomial m, unsigned var);
/// Nothing where the degree passes 8.
std::optional<Monomial> multiply(Monomial a, Monomial b);
/// Nothing where b does not divide a.
std::optional<Monomial> divide(Monomial a, Monomial b);
inline Monomial variable(unsigned var) { return Monomial(var) << 56; }
} // namespace monomial

class Poly {
public:
  using Term = std::pair<Monomial, int64_t>;

  /// Negatives and quotients of coefficients are coefficients, so the least number is none.
  static bool isOutside(int64_t coefficient) { return coefficient == INT64_MIN; }
  Poly(int64_t constant = 0) : isBad(isOutside(constant)) {
    if (constant)
      terms.push_back({0, constant});
  }
  static Poly variable(unsigned var) { return Poly(monomial::variable(var), 1); }
  static Poly bad() {
    Poly result;
    result.isBad = true;
    return result;
  }
  Poly(Monomial m, int64_t coefficient) : isBad(isOutside(coefficient)) {
    if (coefficient)
      terms.push_back({m, coefficient});
  }

  friend Poly operator+(const Poly &a, const Poly &b) { return combine(a, b, 1); }
  friend Poly operator-(const Poly &a, const Poly &b) { return combine(a, b, -1); }
  friend Poly operator*(const Poly &a, const Poly &b);
  Poly operator-() const { return combine(Poly(), *this, -1); }
  bool operator==(const Poly &other) const = default;

  bool badResult() const { return isBad; }
  bool isZero() const { return !isBad && terms.empty(); }
  std::optional<int64_t> asConstant() const;
  int64_t constantTerm() const {
    return terms.empty() || terms.front().first ? 0 : terms.front().second;
  }
  /// The variable of the highest number, 0 for a constant.
  unsigned topVariable() const { return terms.empty() ? 0 : monomial::top(terms.back().first); }
  unsigned degreeIn(unsigned var) const;
  bool uses(unsigned var) const;
  /// Coefficients of var^0, var^1, ...
  llvm::SmallVector<Poly, 3> coefficients(unsigned var) const;
  Poly substitute(unsigned var, const Poly &value) const;
  /// The greatest common divisor of the coefficients of non-constant terms; 0 for a constant.
  int64_t content() const;
  /// Every coefficient divided, the constant rounded down: for content().
  Poly dividedBy(int64_t divisor) const;
  /// `*this = quotient*divisor + remainder` by long division in the leading monomial of `divisor`;
  /// with a constant divisor c, coefficients of the remainder are in [0, c).
  std::pair<Poly, Poly> divide(const Poly &divisor) const;
  /// Nothing unless divisible.
  std::optional<Poly> exactQuotient(const Poly &divisor) const;
  uint64_t hash() const;

  /// Ascending monomials, no zero coefficients.
  llvm::SmallVector<Term, 5> terms;

private:
  static Poly combine(const Poly &a, const Poly &b, int64_t sign);
  bool isBad = false;
};

} // namespace tegula

#endif // TEGULA_SYMBOLIC_POLYNOMIAL_H
