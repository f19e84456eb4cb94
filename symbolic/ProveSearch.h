//===- ProveSearch.h - Search for a proof over symbolic sizes -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One problem of the prover: variables with bounds, hypotheses, and goals `p >= 0`.
//
// A goal is proved by elimination: the variable of the highest number is replaced by the bound that
// makes the goal smallest, which leaves a goal over lower variables; bounds are over lower
// variables alone, so this ends in constants. A floor division is a variable q with
// den*q <= num <= den*q + den - 1. What elimination misses goes to linear arithmetic over monomials
// with products of hypotheses (ProveLinear.cpp).
//
// A minimum, maximum or conditional is a variable with the bounds that hold in all its cases; where
// the proof fails so, the cases are tried one by one.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_SYMBOLIC_PROVESEARCH_H
#define TEGULA_SYMBOLIC_PROVESEARCH_H

#include "symbolic/Polynomial.h"
#include "symbolic/Prove.h"
#include "llvm/ADT/DenseSet.h"
#include <map>

namespace tegula {

/// An atom as an expression.
IndexExpr rebuild(const IndexExpr::Atom &atom);

class Search {
public:
  /// `scale*v >= value` (a lower bound) or `scale*v <= value` (an upper one); scale > 0.
  struct Bound {
    Poly scale, value;
  };

  void setSigned(llvm::StringRef symbol);
  void define(llvm::StringRef symbol, const IndexExpr &definition);
  /// Adds a hypothesis.
  void assume(const Condition &condition);
  /// Numbers the sizes in `expr`: all that a problem has come before its dims, because elimination
  /// goes from high to low numbers.
  void declare(const IndexExpr &expr);
  /// Adds the variables with their bounds, that each range has an element, and the conditions.
  void addDomain(const Domain &domain);

  /// Derived sizes stay as they are; goals are expanded when proved. All denominators in `expr`
  /// are from then on taken not to be 0: elsewhere the expression has no value.
  Poly poly(const IndexExpr &expr);
  IndexExpr expr(const Poly &p) const;
  Poly expand(const Poly &p);
  /// floor(num / den), where den is not 0.
  Poly quotient(const Poly &num, const Poly &den);

  enum Effort { Quick, Full }; // without or with linear arithmetic and case distinctions
  /// `goal >= 0` follows from the hypotheses.
  bool prove(const Poly &goal, Effort effort = Full);
  bool prove(const Condition &condition, Effort effort = Full);

  /// The number of a dim or symbol; what a number stands for.
  unsigned variable(const IndexVar &var) { return variableOf(var); }
  bool isVarying(unsigned var) const { return variables[var].varies; }
  bool varies(const Poly &p) const;
  /// Numerator and denominator of a quotient, else null.
  const std::pair<Poly, Poly> *ratioOf(unsigned var) const {
    return variables[var].ratio ? &*variables[var].ratio : nullptr;
  }

  /// Conditions on sizes that together give `goal >= 0`, those of them that do not follow; false
  /// where none were found. `exact` is cleared where they may ask for more than needed in a box.
  bool residuals(const Poly &goal, llvm::SmallVectorImpl<Poly> &out, bool &exact,
                 unsigned depth = 0);
  /// A bound of p without the dims of the domain.
  std::optional<Poly> extreme(const Poly &p, bool wantMax);

private:
  struct Variable {
    IndexExpr expr;             // what it stands for
    bool varies = false;        // depends on a dim
    std::optional<int64_t> low; // a constant lower bound
    llvm::SmallVector<Bound, 1> lowers, uppers;
    std::optional<Poly> value;                          // an equality that replaces it
    std::shared_ptr<const IndexExpr> definition;        // a derived size
    std::shared_ptr<const IndexExpr::Atom> distinction; // a minimum, maximum or conditional
    std::optional<std::pair<Poly, Poly>> ratio;         // a quotient: numerator, denominator
    bool isExact = false;                               // of which the remainder is known to be 0
    bool isBounded = false;      // a quotient: what its denominator's sign says was added
    size_t askedAt = 0;          // ... and at how many hypotheses the sign was last asked for
    bool hasInnerBounds = false; // bounds from those of the numerator were added
    unsigned expandedAt = 0;     // a quotient: at this epoch it was found to need no expansion
  };

  unsigned newVariable(IndexExpr expr, bool varies);
  unsigned variableOf(const IndexVar &var);
  void addVariable(const RangedVar &range);
  void collectBounds(const IndexExpr &bound, bool isUpper, llvm::SmallVectorImpl<Poly> &out);
  Poly atom(const std::shared_ptr<const IndexExpr::Atom> &atom);
  Poly extremum(const std::shared_ptr<const IndexExpr::Atom> &atom);
  Poly conditional(const std::shared_ptr<const IndexExpr::Atom> &atom);
  std::pair<unsigned, bool> distinctionVariable(const std::shared_ptr<const IndexExpr::Atom> &atom);

  void addHypothesis(const Poly &h);
  void addEquality(const Poly &p);
  bool dependsOn(const IndexExpr &expr, const IndexVar &var) const;
  void replace(unsigned var, const Poly &value);
  void raiseLow(unsigned var, int64_t low);
  void boundQuotient(unsigned var);
  void addInnerBounds(unsigned var);

  Poly withoutForced(Poly goal);
  bool go(const Poly &goal, unsigned depth);
  bool quicklyNonNegative(const Poly &p) const;
  int sign(const Poly &p, unsigned depth);
  bool isPositive(const Poly &p);
  bool viaBounds(const Poly &a, const Poly &b, unsigned var, bool isUpper, unsigned depth);
  bool proveLinear(const Poly &goal);
  bool proveByCases(const Poly &goal);
  std::optional<unsigned> relevantDistinction(const Poly &goal) const;
  unsigned caseCount(unsigned var) const;
  void takeCase(unsigned var, unsigned which);
  std::optional<Poly> eliminateTop(const Poly &p, bool wantMax);
  llvm::SmallVector<Bound, 4> boundsOf(unsigned var, bool isUpper);

  std::vector<Variable> variables{1}; // number 0 is unused
  std::map<IndexVar, unsigned> numberOf;
  std::vector<unsigned> quotients;
  std::map<IndexExpr, unsigned> distinctions;
  std::map<IndexExpr, unsigned> floats; // by what computes them: texts of two may be the same
  std::vector<std::string> signedSymbols;
  std::vector<Poly> hypotheses;
  llvm::DenseSet<uint64_t> failed; // goals tried in vain under the present hypotheses
  unsigned epoch = 1;              // counts equalities and definitions
  unsigned steps = 0;
  unsigned caseDepth = 0, linearCalls = 0, innerDepth = 0;
  bool contradiction = false;
};

} // namespace tegula

#endif // TEGULA_SYMBOLIC_PROVESEARCH_H
