//===- Polynomial.cpp - Polynomials over numbered variables ---------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "symbolic/Polynomial.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace tegula;

unsigned monomial::degreeIn(Monomial m, unsigned var) {
  unsigned count = 0;
  for (; m; m <<= 8)
    count += top(m) == var;
  return count;
}

std::optional<Monomial> monomial::multiply(Monomial a, Monomial b) {
  Monomial result = 0;
  unsigned shift = 56;
  for (unsigned place = 0; a || b; ++place) {
    if (place == 8)
      return std::nullopt;
    Monomial &from = top(a) >= top(b) ? a : b;
    result |= Monomial(top(from)) << shift;
    shift -= 8;
    from <<= 8;
  }
  return result;
}

std::optional<Monomial> monomial::divide(Monomial a, Monomial b) {
  Monomial result = 0;
  unsigned shift = 56;
  for (; a; a <<= 8) {
    if (top(a) == top(b)) {
      b <<= 8;
      continue;
    }
    result |= Monomial(top(a)) << shift;
    shift -= 8;
  }
  return b ? std::nullopt : std::optional(result);
}

static int64_t floorDivide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

Poly Poly::combine(const Poly &a, const Poly &b, int64_t sign) {
  Poly result;
  result.isBad = a.isBad || b.isBad;
  if (result.isBad)
    return result;
  const Term *p = a.terms.begin(), *q = b.terms.begin();
  while (p != a.terms.end() || q != b.terms.end()) {
    bool takeA = q == b.terms.end() || (p != a.terms.end() && p->first <= q->first);
    bool takeB = p == a.terms.end() || (q != b.terms.end() && q->first <= p->first);
    Monomial m = takeA ? p->first : q->first;
    int64_t coefficient = takeA ? (p++)->second : 0, other = takeB ? (q++)->second : 0;
    if (__builtin_mul_overflow(other, sign, &other) ||
        __builtin_add_overflow(coefficient, other, &coefficient) || isOutside(coefficient))
      return bad();
    if (coefficient)
      result.terms.push_back({m, coefficient});
  }
  return result;
}

Poly tegula::operator*(const Poly &a, const Poly &b) {
  if (a.isBad || b.isBad)
    return Poly::bad();
  Poly result;
  for (auto [m, c] : a.terms)
    for (auto [n, d] : b.terms) {
      std::optional<Monomial> product = monomial::multiply(m, n);
      int64_t coefficient;
      if (!product || __builtin_mul_overflow(c, d, &coefficient) || Poly::isOutside(coefficient))
        return Poly::bad();
      result.terms.push_back({*product, coefficient});
    }
  if (a.terms.size() < 2 && b.terms.size() < 2)
    return result;
  llvm::sort(result.terms);
  size_t kept = 0;
  for (size_t i = 0; i < result.terms.size();) {
    Poly::Term term = result.terms[i++];
    for (; i < result.terms.size() && result.terms[i].first == term.first; ++i)
      if (__builtin_add_overflow(term.second, result.terms[i].second, &term.second) ||
          Poly::isOutside(term.second))
        return Poly::bad();
    if (term.second)
      result.terms[kept++] = term;
  }
  result.terms.truncate(kept);
  return result;
}

std::optional<int64_t> Poly::asConstant() const {
  if (isBad || topVariable())
    return std::nullopt;
  return constantTerm();
}

unsigned Poly::degreeIn(unsigned var) const {
  unsigned degree = 0;
  for (auto [m, c] : terms)
    degree = std::max(degree, monomial::degreeIn(m, var));
  return degree;
}

bool Poly::uses(unsigned var) const {
  return llvm::any_of(terms, [&](const Term &term) { return monomial::degreeIn(term.first, var); });
}

llvm::SmallVector<Poly, 3> Poly::coefficients(unsigned var) const {
  llvm::SmallVector<Poly, 3> result(degreeIn(var) + 1);
  for (auto [m, c] : terms) {
    unsigned power = monomial::degreeIn(m, var);
    for (unsigned i = 0; i < power; ++i)
      m = *monomial::divide(m, monomial::variable(var));
    // Taking out one variable keeps the order among terms of one power.
    result[power].terms.push_back({m, c});
  }
  for (Poly &p : result) {
    llvm::sort(p.terms);
    p.isBad = isBad;
  }
  return result;
}

Poly Poly::substitute(unsigned var, const Poly &value) const {
  if (!uses(var))
    return *this;
  llvm::SmallVector<Poly, 3> parts = coefficients(var);
  Poly result = parts.back();
  for (size_t i = parts.size() - 1; i-- > 0;)
    result = result * value + parts[i];
  return result;
}

int64_t Poly::content() const {
  int64_t result = 0;
  for (auto [m, c] : terms)
    if (m)
      result = std::gcd(result, c);
  return result;
}

Poly Poly::dividedBy(int64_t divisor) const {
  Poly result = *this;
  for (Term &term : result.terms)
    term.second = floorDivide(term.second, divisor);
  llvm::erase_if(result.terms, [](const Term &term) { return term.second == 0; });
  return result;
}

std::pair<Poly, Poly> Poly::divide(const Poly &divisor) const {
  if (isBad || divisor.isBad || divisor.isZero())
    return {bad(), bad()};
  if (std::optional<int64_t> c = divisor.asConstant()) {
    Poly quotient;
    for (auto [m, k] : terms)
      if (int64_t q = floorDivide(k, *c))
        quotient.terms.push_back({m, q});
    return {quotient, *this - quotient * divisor};
  }
  Term lead = divisor.terms.back();
  Poly quotient, rest = *this;
  // Each step takes out a multiple of the leading monomial and adds only multiples of smaller
  // monomials times the same cofactor, so this ends; the cap guards against long chains.
  for (unsigned step = 0; step < 32; ++step) {
    bool found = false;
    for (auto [m, k] : llvm::reverse(rest.terms)) {
      std::optional<Monomial> cofactor = monomial::divide(m, lead.first);
      if (!cofactor || k % lead.second != 0)
        continue;
      Poly part(*cofactor, k / lead.second);
      quotient = quotient + part;
      rest = rest - part * divisor;
      found = true;
      break;
    }
    if (!found || rest.isBad || quotient.isBad)
      break;
  }
  return {quotient, rest};
}

std::optional<Poly> Poly::exactQuotient(const Poly &divisor) const {
  auto [quotient, rest] = divide(divisor);
  if (!rest.isZero() || quotient.isBad)
    return std::nullopt;
  return quotient;
}

uint64_t Poly::hash() const {
  uint64_t h = 0x9e3779b97f4a7c15ull;
  for (auto [m, c] : terms) {
    h = (h ^ m) * 0xff51afd7ed558ccdull;
    h ^= h >> 32;
    h = (h ^ uint64_t(c)) * 0xc4ceb9fe1a85ec53ull;
    h ^= h >> 29;
  }
  return h;
}
