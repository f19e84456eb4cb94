//===- IndexExpr.cpp - Canonical arithmetic of integer expressions ---------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An expression is a sorted list of distinct monomials with nonzero coefficients. Every operation
// goes through `IndexExprBuilder::normalise`, so structural equality is equality of polynomials.
// Evaluation and substitution are in IndexExprEval.cpp, printing and parsing in IndexExprText.cpp.
//
//===----------------------------------------------------------------------===//
#include "symbolic/IndexExprBuilder.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <numeric>

using namespace tegula;
using llvm::SmallVector;

/// Products of sums beyond this are nobody's subscript; see isOverflow.
static constexpr size_t maxTerms = 4096;
/// Operands are shared, text and everything that walks an expression are not: nested conditionals
/// double with each level.
static constexpr size_t maxLength = 20000;
/// No number but 0, 1 and -1 has a larger power in 64 bits.
static constexpr unsigned maxPower = 63;

bool IndexVar::operator<(const IndexVar &other) const {
  if (isSymbol() != other.isSymbol())
    return !isSymbol();
  return isSymbol() ? symbolName < other.symbolName : dimPosition < other.dimPosition;
}

//===----------------------------------------------------------------------===//
// Order and normal form
//===----------------------------------------------------------------------===//

template <typename T> static int compareValues(const T &lhs, const T &rhs) {
  return lhs < rhs ? -1 : rhs < lhs ? 1 : 0;
}

int IndexExprBuilder::compare(const Atom &lhs, const Atom &rhs) {
  if (&lhs == &rhs)
    return 0;
  if (lhs.kind != rhs.kind)
    return compareValues(lhs.kind, rhs.kind);
  if (lhs.kind == IndexExpr::AtomKind::Variable)
    return compareValues(lhs.var, rhs.var);
  if (lhs.cmp != rhs.cmp)
    return compareValues(lhs.cmp, rhs.cmp);
  if (lhs.operands.size() != rhs.operands.size())
    return compareValues(lhs.operands.size(), rhs.operands.size());
  for (auto [a, b] : llvm::zip_equal(lhs.operands, rhs.operands))
    if (int order = compare(a, b))
      return order;
  return 0;
}

/// Lexicographic by factors; higher powers and longer products first, the constant last.
int IndexExprBuilder::compareMonomials(const Term &lhs, const Term &rhs) {
  for (auto [a, b] : llvm::zip(lhs.factors, rhs.factors)) {
    if (int order = compare(*a.first, *b.first))
      return order;
    if (a.second != b.second)
      return compareValues(b.second, a.second);
  }
  return compareValues(rhs.factors.size(), lhs.factors.size());
}

int IndexExprBuilder::compare(const IndexExpr &lhs, const IndexExpr &rhs) {
  const IndexExpr::Storage *a = storage(lhs), *b = storage(rhs);
  if (a == b)
    return 0;
  if (a->overflow != b->overflow)
    return compareValues(a->overflow, b->overflow);
  if (a->terms.size() != b->terms.size())
    return compareValues(a->terms.size(), b->terms.size());
  for (auto [x, y] : llvm::zip_equal(a->terms, b->terms)) {
    if (int order = compareMonomials(x, y))
      return order;
    if (x.coefficient != y.coefficient)
      return compareValues(x.coefficient, y.coefficient);
  }
  return 0;
}

static size_t hashAtom(const IndexExpr::Atom &atom) {
  llvm::hash_code code = llvm::hash_combine(atom.kind, atom.cmp, atom.var.position(),
                                            llvm::hash_value(atom.var.name()));
  for (const IndexExpr &operand : atom.operands)
    code = llvm::hash_combine(code, operand);
  return code;
}

IndexExpr IndexExprBuilder::overflow() {
  static const auto shared = [] {
    auto result = std::make_shared<IndexExpr::Storage>();
    result->overflow = true;
    result->hash = 0x9e3779b9;
    return result;
  }();
  return IndexExpr(shared);
}

IndexExpr IndexExprBuilder::normalise(Terms terms) {
  if (terms.size() > maxTerms)
    return overflow();
  llvm::sort(terms, [](const Term &a, const Term &b) { return compareMonomials(a, b) < 0; });
  auto result = std::make_shared<IndexExpr::Storage>();
  for (Term &term : terms) {
    if (!result->terms.empty() && compareMonomials(result->terms.back(), term) == 0) {
      int64_t &coefficient = result->terms.back().coefficient;
      if (llvm::AddOverflow(coefficient, term.coefficient, coefficient))
        return overflow();
      continue;
    }
    if (!result->terms.empty() && result->terms.back().coefficient == 0)
      result->terms.pop_back();
    result->terms.push_back(std::move(term));
  }
  if (!result->terms.empty() && result->terms.back().coefficient == 0)
    result->terms.pop_back();
  // The symmetric range: every coefficient has a negative, and prints as an integer.
  for (const Term &term : result->terms)
    if (term.coefficient == INT64_MIN)
      return overflow();
  llvm::hash_code code(0);
  for (const Term &term : result->terms) {
    code = llvm::hash_combine(code, term.coefficient);
    for (const auto &[atom, power] : term.factors)
      code = llvm::hash_combine(code, power, atom->hash);
  }
  result->hash = code;
  for (const Term &term : result->terms) {
    ++result->length;
    for (const auto &[atom, power] : term.factors) {
      ++result->length;
      for (const IndexExpr &operand : atom->operands)
        result->length += storage(operand)->length;
    }
  }
  if (result->length > maxLength)
    return overflow();
  return IndexExpr(std::shared_ptr<const IndexExpr::Storage>(std::move(result)));
}

IndexExpr IndexExprBuilder::atom(Atom atom) {
  for (const IndexExpr &operand : atom.operands)
    if (operand.isOverflow())
      return overflow();
  atom.hash = hashAtom(atom);
  return power(std::make_shared<const Atom>(std::move(atom)), 1);
}

IndexExpr IndexExprBuilder::power(const AtomPtr &base, unsigned exponent) {
  Term term;
  term.coefficient = 1;
  term.factors.push_back({base, exponent});
  Terms terms;
  terms.push_back(std::move(term));
  return normalise(std::move(terms));
}

/// The product of two terms; nothing when the coefficient or a power overflows.
std::optional<IndexExpr::Term> IndexExprBuilder::multiply(const Term &lhs, const Term &rhs) {
  Term result;
  if (llvm::MulOverflow(lhs.coefficient, rhs.coefficient, result.coefficient))
    return std::nullopt;
  const auto *a = lhs.factors.begin(), *b = rhs.factors.begin();
  while (a != lhs.factors.end() || b != rhs.factors.end()) {
    int order = a == lhs.factors.end()   ? 1
                : b == rhs.factors.end() ? -1
                                         : compare(*a->first, *b->first);
    if (order < 0) {
      result.factors.push_back(*a++);
    } else if (order > 0) {
      result.factors.push_back(*b++);
    } else {
      unsigned power = a->second + b->second;
      if (power > maxPower)
        return std::nullopt;
      result.factors.push_back({a->first, power});
      ++a, ++b;
    }
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Polynomials
//===----------------------------------------------------------------------===//

IndexExpr::IndexExpr(int64_t constant) {
  if (constant == INT64_MIN) {
    *this = IndexExprBuilder::overflow();
    return;
  }
  if (constant == 0) {
    static const auto shared = std::make_shared<Storage>();
    storage = shared;
    return;
  }
  auto result = std::make_shared<Storage>();
  result->terms.push_back({constant, {}});
  result->hash = llvm::hash_combine(llvm::hash_code(0), constant);
  storage = std::move(result);
}

IndexExpr IndexExpr::variable(const IndexVar &var) {
  // The operands of small expressions are made over and over.
  constexpr unsigned numShared = 8;
  if (!var.isSymbol() && var.position() < numShared) {
    static const auto shared = [] {
      llvm::SmallVector<IndexExpr, numShared> dims;
      for (unsigned position = 0; position < numShared; ++position) {
        Atom atom;
        atom.kind = AtomKind::Variable;
        atom.var = IndexVar::dim(position);
        dims.push_back(IndexExprBuilder::atom(std::move(atom)));
      }
      return dims;
    }();
    return shared[var.position()];
  }
  Atom atom;
  atom.kind = AtomKind::Variable;
  atom.var = var;
  return IndexExprBuilder::atom(std::move(atom));
}

bool IndexExpr::isOverflow() const { return storage->overflow; }
llvm::ArrayRef<IndexExpr::Term> IndexExpr::terms() const { return storage->terms; }

bool IndexExpr::operator==(const IndexExpr &other) const {
  return storage->hash == other.storage->hash && IndexExprBuilder::compare(*this, other) == 0;
}
bool IndexExpr::operator<(const IndexExpr &other) const {
  return IndexExprBuilder::compare(*this, other) < 0;
}

namespace tegula {
llvm::hash_code hash_value(const IndexExpr &expr) {
  return llvm::hash_code(IndexExprBuilder::storage(expr)->hash);
}

IndexExpr operator+(const IndexExpr &lhs, const IndexExpr &rhs) {
  if (lhs.isOverflow() || rhs.isOverflow())
    return IndexExprBuilder::overflow();
  IndexExprBuilder::Terms terms(lhs.terms());
  llvm::append_range(terms, rhs.terms());
  return IndexExprBuilder::normalise(std::move(terms));
}

IndexExpr operator*(const IndexExpr &lhs, const IndexExpr &rhs) {
  if (lhs.isOverflow() || rhs.isOverflow() || lhs.terms().size() * rhs.terms().size() > maxTerms)
    return IndexExprBuilder::overflow();
  IndexExprBuilder::Terms terms;
  for (const IndexExpr::Term &a : lhs.terms()) {
    for (const IndexExpr::Term &b : rhs.terms()) {
      auto product = IndexExprBuilder::multiply(a, b);
      if (!product)
        return IndexExprBuilder::overflow();
      terms.push_back(std::move(*product));
    }
  }
  return IndexExprBuilder::normalise(std::move(terms));
}

IndexExpr operator-(const IndexExpr &lhs, const IndexExpr &rhs) { return lhs + -rhs; }
} // namespace tegula

IndexExpr IndexExpr::operator-() const { return *this * IndexExpr(-1); }

std::optional<int64_t> IndexExpr::asConstant() const {
  if (isOverflow() || terms().size() > 1)
    return std::nullopt;
  if (terms().empty())
    return 0;
  if (!terms()[0].factors.empty())
    return std::nullopt;
  return terms()[0].coefficient;
}

std::optional<IndexVar> IndexExpr::asVariable() const {
  if (terms().size() != 1 || terms()[0].coefficient != 1 || terms()[0].factors.size() != 1)
    return std::nullopt;
  const auto &[atom, power] = terms()[0].factors[0];
  if (power != 1 || atom->kind != AtomKind::Variable)
    return std::nullopt;
  return atom->var;
}

//===----------------------------------------------------------------------===//
// Division, extrema, conditionals
//===----------------------------------------------------------------------===//

static int64_t floorDivide(int64_t numerator, int64_t denominator) {
  int64_t quotient = numerator / denominator;
  return quotient -
         ((numerator % denominator != 0 && (numerator < 0) != (denominator < 0)) ? 1 : 0);
}

/// gcd of all coefficients except the constant's; 0 without such.
static uint64_t gcdOfVariableTerms(const IndexExpr &expr) {
  uint64_t result = 0;
  for (const IndexExpr::Term &term : expr.terms())
    if (!term.factors.empty())
      result = std::gcd(result, term.coefficient < 0 ? 0 - uint64_t(term.coefficient)
                                                     : uint64_t(term.coefficient));
  return result;
}

static int64_t constantTerm(const IndexExpr &expr) {
  return !expr.terms().empty() && expr.terms().back().factors.empty()
             ? expr.terms().back().coefficient
             : 0;
}

IndexExpr IndexExpr::floorDiv(const IndexExpr &lhs, const IndexExpr &rhs) {
  if (lhs.isOverflow() || rhs.isOverflow())
    return IndexExprBuilder::overflow();
  IndexExpr numerator = lhs, denominator = rhs, whole = 0;
  if (std::optional<int64_t> constant = rhs.asConstant(); constant && *constant != 0) {
    int64_t divisor = *constant;
    if (divisor < 0) {
      divisor = -divisor;
      numerator = -numerator;
    }
    // Multiples of the divisor leave the quotient; what stays is smaller than it.
    IndexExprBuilder::Terms quotients, rests;
    for (const Term &term : numerator.terms()) {
      int64_t quotient = term.factors.empty() ? floorDivide(term.coefficient, divisor)
                                              : term.coefficient / divisor;
      int64_t rest = term.coefficient - quotient * divisor;
      if (quotient)
        quotients.push_back({quotient, term.factors});
      if (rest)
        rests.push_back({rest, term.factors});
    }
    whole = IndexExprBuilder::normalise(std::move(quotients));
    numerator = IndexExprBuilder::normalise(std::move(rests));
    uint64_t gcd = std::gcd(gcdOfVariableTerms(numerator), uint64_t(divisor));
    if (gcdOfVariableTerms(numerator) == 0)
      return whole; // only a constant in [0, divisor) is left
    if (gcd > 1) {
      IndexExprBuilder::Terms reduced;
      for (const Term &term : numerator.terms())
        reduced.push_back({term.factors.empty() ? floorDivide(term.coefficient, int64_t(gcd))
                                                : term.coefficient / int64_t(gcd),
                           term.factors});
      divisor /= int64_t(gcd);
      return whole + floorDiv(IndexExprBuilder::normalise(std::move(reduced)), IndexExpr(divisor));
    }
    // (x // a + k) // b  =  (x + k*a) // (a*b)
    if (llvm::ArrayRef<Term> terms = numerator.terms();
        terms.size() <= 2 && terms[0].coefficient == 1 && terms[0].factors.size() == 1 &&
        terms[0].factors[0].second == 1 && terms[0].factors[0].first->kind == AtomKind::FloorDiv &&
        (terms.size() == 1 || terms[1].factors.empty())) {
      const Atom &inner = *terms[0].factors[0].first;
      std::optional<int64_t> innerDivisor = inner.operands[1].asConstant();
      int64_t product;
      if (innerDivisor && *innerDivisor > 0 &&
          !llvm::MulOverflow(*innerDivisor, divisor, product)) {
        IndexExpr shifted =
            inner.operands[0] + IndexExpr(constantTerm(numerator)) * inner.operands[1];
        if (!shifted.isOverflow())
          return whole + floorDiv(shifted, IndexExpr(product));
      }
    }
    denominator = IndexExpr(divisor);
  }
  Atom atom;
  atom.kind = AtomKind::FloorDiv;
  atom.operands = {numerator, denominator};
  return whole + IndexExprBuilder::atom(std::move(atom));
}

IndexExpr IndexExpr::mod(const IndexExpr &lhs, const IndexExpr &rhs) {
  return lhs - rhs * floorDiv(lhs, rhs);
}

IndexExpr IndexExprBuilder::extremum(IndexExpr::AtomKind kind, const IndexExpr &lhs,
                                     const IndexExpr &rhs) {
  if (lhs.isOverflow() || rhs.isOverflow())
    return overflow();
  SmallVector<IndexExpr, 2> operands;
  auto collect = [&](const IndexExpr &expr) {
    if (expr.terms().size() == 1 && expr.terms()[0].coefficient == 1 &&
        expr.terms()[0].factors.size() == 1 && expr.terms()[0].factors[0].second == 1 &&
        expr.terms()[0].factors[0].first->kind == kind)
      llvm::append_range(operands, expr.terms()[0].factors[0].first->operands);
    else
      operands.push_back(expr);
  };
  collect(lhs);
  collect(rhs);
  // Of two operands at a constant distance one is never needed.
  for (size_t i = 0; i < operands.size(); ++i) {
    for (size_t j = i + 1; j < operands.size();) {
      std::optional<int64_t> distance = (operands[j] - operands[i]).asConstant();
      if (!distance) {
        ++j;
        continue;
      }
      if (kind == IndexExpr::AtomKind::Min ? *distance < 0 : *distance > 0)
        operands[i] = operands[j];
      operands.erase(operands.begin() + j);
    }
  }
  if (operands.size() == 1)
    return operands[0];
  llvm::sort(operands);
  Atom result;
  result.kind = kind;
  result.operands = std::move(operands);
  return atom(std::move(result));
}

IndexExpr IndexExpr::min(const IndexExpr &lhs, const IndexExpr &rhs) {
  return IndexExprBuilder::extremum(AtomKind::Min, lhs, rhs);
}
IndexExpr IndexExpr::max(const IndexExpr &lhs, const IndexExpr &rhs) {
  return IndexExprBuilder::extremum(AtomKind::Max, lhs, rhs);
}

IndexExpr IndexExpr::select(Cmp cmp, const IndexExpr &lhs, const IndexExpr &rhs,
                            const IndexExpr &yes, const IndexExpr &no) {
  if (cmp == Cmp::NE)
    return select(Cmp::EQ, lhs, rhs, no, yes);
  if (cmp == Cmp::LT)
    return select(Cmp::LE, lhs + 1, rhs, yes, no);
  // From here on: rhs - lhs >= 0, or == 0.
  IndexExpr difference = rhs - lhs;
  if (difference.isOverflow() || yes.isOverflow() || no.isOverflow())
    return IndexExprBuilder::overflow();
  if (yes == no)
    return yes;
  if (std::optional<int64_t> constant = difference.asConstant())
    return (cmp == Cmp::EQ ? *constant == 0 : *constant >= 0) ? yes : no;
  uint64_t gcd = gcdOfVariableTerms(difference);
  if (gcd > 1 && gcd <= uint64_t(INT64_MAX)) {
    int64_t divisor = int64_t(gcd), constant = constantTerm(difference);
    if (cmp == Cmp::EQ && constant % divisor != 0)
      return no;
    IndexExprBuilder::Terms reduced;
    for (const Term &term : difference.terms())
      reduced.push_back({floorDivide(term.coefficient, divisor), term.factors});
    difference = IndexExprBuilder::normalise(std::move(reduced));
  }
  if (cmp == Cmp::EQ && difference.terms()[0].coefficient < 0)
    difference = -difference;
  IndexExprBuilder::Terms left, right;
  for (const Term &term : difference.terms()) {
    if (term.coefficient > 0)
      right.push_back(term);
    else
      left.push_back({-term.coefficient, term.factors});
  }
  Atom atom;
  atom.kind = AtomKind::Select;
  atom.cmp = cmp;
  atom.operands = {IndexExprBuilder::normalise(std::move(left)),
                   IndexExprBuilder::normalise(std::move(right)), yes, no};
  return IndexExprBuilder::atom(std::move(atom));
}
