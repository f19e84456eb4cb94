//===- Witness.h - Proofs about sizes that can be replayed --------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds for `p >= 0` a proof from hypotheses that are polynomials, too, and writes it so that
// repeating it needs no search: each step names a hypothesis and what it is multiplied by. It
// shares nothing with symbolic/Prove.h but the polynomials: what that one proves is found here once
// more.
//
// A proof of a goal g, over integers, is one of
//
//   lows   each monomial but the constant has a positive coefficient and variables alone for which
//   a
//          hypothesis `v - c >= 0` with c >= 0 is named; at these c the goal is not negative
//   scale  g = by * rest + c, by and c numbers, by >= 1, c >= 0, and a proof of rest
//   bound  proofs of scale >= 1, of factor >= 0, and of scale*g + scale - 1 - factor*h >= 0 for a
//          hypothesis h: then scale*g > -scale, so that g >= 0
//   cases  a proof for each case of a minimum, maximum or conditional, or for a polynomial that is
//          not negative and for one that is, with what holds in that case as further hypotheses
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PROVE_WITNESS_H
#define TEGULA_PROVE_WITNESS_H

#include "symbolic/IndexExpr.h"
#include "symbolic/Polynomial.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/JSON.h"
#include <map>
#include <set>

namespace tegula::prove {

/// One question about sizes and indices: variables, hypotheses and proofs.
class Witness {
public:
  /// A variable of the formulas below; `rank`: what is eliminated first, the highest first.
  unsigned variable(llvm::StringRef name, llvm::StringRef kind, double rank);
  /// The value of a size that others define.
  void define(llvm::StringRef symbol, const Poly &value);

  /// The formula over variables: sizes by name, dims by `dimOf`. Quotients, minima, maxima and
  /// conditionals become variables. Bad where there are too many.
  Poly poly(const IndexExpr &expr, llvm::function_ref<Poly(unsigned)> dimOf);
  Poly poly(const IndexExpr &size);

  /// `from` says why it holds.
  void assume(const Poly &hypothesis, llvm::json::Object from);
  /// The proof as JSON; null where none is found.
  llvm::json::Value prove(const Poly &goal);

  std::string text(const Poly &p) const;
  llvm::json::Array variables() const;
  /// The hypotheses that a proof names, by their numbers, but for those that its cases add.
  llvm::json::Object hypothesesOf(const llvm::json::Value &proof) const;

private:
  struct Variable {
    std::string name, kind;
    double rank = 0;
    std::vector<Poly> of; // quotients: numerator, denominator; minima and the like: operands
    IndexExpr::Cmp cmp = IndexExpr::Cmp::LE;
  };
  struct Hypothesis {
    Poly poly;
    llvm::json::Object from;
    unsigned top = 0; // the variable of the highest rank
  };

  unsigned newVariable(llvm::StringRef kind, std::vector<Poly> of, IndexExpr::Cmp cmp);
  Poly quotient(const Poly &numerator, const Poly &denominator);
  Poly distinction(llvm::StringRef kind, std::vector<Poly> operands,
                   IndexExpr::Cmp cmp = IndexExpr::Cmp::LE);
  void boundQuotient(unsigned var);
  unsigned topOf(const Poly &p) const;
  std::optional<size_t> lowOf(unsigned var) const;
  llvm::json::Value go(const Poly &goal, unsigned depth);
  llvm::json::Value byLows(const Poly &goal);
  llvm::json::Value byBound(const Poly &goal, unsigned depth);
  llvm::json::Value tryHypothesis(const Poly &goal, unsigned var, const Poly &coefficient,
                                  bool isUpper, const llvm::json::Value &sign, size_t number,
                                  unsigned depth);
  llvm::json::Value byCases(const Poly &goal, unsigned depth);
  std::vector<std::vector<Poly>> casesOf(unsigned var) const;
  llvm::json::Value proveWith(const std::vector<Poly> &more, const Poly &goal);

  std::vector<Variable> all{1}; // number 0 is none
  std::map<std::string, unsigned, std::less<>> numbers;
  std::map<std::string, Poly, std::less<>> definitions;
  std::vector<Hypothesis> hypotheses;
  llvm::DenseSet<uint64_t> failed;
  unsigned steps = 0, caseDepth = 0;
};

} // namespace tegula::prove

#endif // TEGULA_PROVE_WITNESS_H
