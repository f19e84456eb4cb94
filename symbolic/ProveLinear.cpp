//===- ProveLinear.cpp - Proofs by linear arithmetic over monomials -------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The goal's negation, the hypotheses that share variables with it and some products of two of them
// are linear in their monomials. Where no rational point satisfies all, the goal holds; small
// problems are also asked for an integer point. Caps keep a question in the tens of microseconds
// to a few milliseconds, since the library cannot be interrupted.
//
//===----------------------------------------------------------------------===//

#include "mlir/Analysis/Presburger/IntegerRelation.h"
#include "mlir/Analysis/Presburger/Simplex.h"
#include "symbolic/ProveSearch.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <bitset>

using namespace tegula;

namespace {
constexpr unsigned maxRows = 48, maxProducts = 40, maxColumns = 40;
constexpr unsigned maxIntegerRows = 32, maxIntegerColumns = 10;
constexpr int64_t maxCoefficient = int64_t(1) << 24, maxIntegerCoefficient = 1 << 10;

using Vars = std::bitset<256>;

Vars varsOf(const Poly &p) {
  Vars result;
  for (auto [m, coefficient] : p.terms)
    for (; m; m <<= 8)
      result.set(monomial::top(m));
  return result;
}

/// Rows r >= 0, each polynomial at most once.
class Rows {
public:
  bool add(const Poly &row) {
    if (row.badResult() || row.asConstant() || llvm::is_contained(rows, row))
      return false;
    rows.push_back(row);
    return true;
  }
  std::vector<Poly> rows;
};

/// A hypothesis multiplied by something not negative is one more hypothesis. Those are made that
/// produce a product which occurs in the goal.
void addProducts(Rows &rows, const Poly &goal) {
  std::vector<Poly> base = rows.rows;
  unsigned added = 0;
  auto linearIn = [](const Poly &p, unsigned var) {
    return llvm::any_of(p.terms,
                        [&](const Poly::Term &t) { return t.first == monomial::variable(var); });
  };
  for (auto [m, coefficient] : goal.terms) {
    if (monomial::degree(m) < 2)
      continue;
    unsigned previous = 0;
    for (unsigned place = 0; place < monomial::degree(m); ++place) {
      unsigned var = monomial::factor(m, place);
      if (var == previous)
        continue;
      previous = var;
      Monomial rest = *monomial::divide(m, monomial::variable(var));
      for (const Poly &h : base) {
        if (!linearIn(h, var))
          continue;
        for (const Poly &other : base) {
          if (added >= maxProducts)
            return;
          bool hasRest =
              llvm::any_of(other.terms, [&](const Poly::Term &t) { return t.first == rest; });
          if (hasRest && other.terms.size() <= 4 && h.terms.size() <= 6)
            added += rows.add(h * other);
        }
      }
    }
  }
}
} // namespace

bool Search::proveLinear(const Poly &goal) {
  // What shares variables with the goal, directly and then once removed, and so on.
  Rows rows;
  Vars reached = varsOf(goal);
  if (goal.asConstant())
    reached.set(); // a contradiction may lie anywhere
  auto addLow = [&](unsigned var) {
    if (variables[var].low)
      rows.add(Poly::variable(var) - Poly(*variables[var].low));
  };
  for (unsigned round = 0; round < 3; ++round) {
    Vars before = reached;
    // The latest are the most particular.
    for (size_t i = hypotheses.size(); i-- > 0;) {
      Poly h = expand(hypotheses[i]);
      if (rows.rows.size() < maxRows && (varsOf(h) & before).any() && rows.add(h))
        reached |= varsOf(h);
    }
    if (reached == before)
      break;
  }
  for (unsigned var = 1; var < variables.size(); ++var)
    if (reached.test(var) && rows.rows.size() < maxRows + 20)
      addLow(var);
  addProducts(rows, goal);
  rows.rows.push_back(-goal - Poly(1));

  llvm::DenseMap<Monomial, unsigned> column;
  for (const Poly &row : rows.rows)
    for (auto [m, coefficient] : row.terms)
      if (m)
        column.try_emplace(m, column.size());
  if (column.size() > maxColumns)
    return false;

  mlir::presburger::Simplex simplex(column.size());
  bool smallIntegers = column.size() <= maxIntegerColumns && rows.rows.size() <= maxIntegerRows;
  std::vector<llvm::SmallVector<int64_t, 16>> matrix;
  for (const Poly &row : rows.rows) {
    llvm::SmallVector<int64_t, 16> line(column.size() + 1, 0);
    bool fits = true;
    for (auto [m, coefficient] : row.terms) {
      line[m ? column.lookup(m) : column.size()] = coefficient;
      fits &= coefficient <= maxCoefficient && coefficient >= -maxCoefficient;
      smallIntegers &=
          coefficient <= maxIntegerCoefficient && coefficient >= -maxIntegerCoefficient;
    }
    if (!fits)
      continue; // a hypothesis less
    simplex.addInequality(mlir::presburger::getDynamicAPIntVec(line));
    if (simplex.isEmpty())
      return true;
    matrix.push_back(std::move(line));
  }
  if (!smallIntegers)
    return false;
  mlir::presburger::IntegerRelation set(
      mlir::presburger::PresburgerSpace::getSetSpace(column.size()));
  for (const auto &line : matrix)
    set.addInequality(line);
  return set.isIntegerEmpty();
}
