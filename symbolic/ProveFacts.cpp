//===- ProveFacts.cpp - Hypotheses of the prover --------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "symbolic/ProveSearch.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/SaveAndRestore.h"
#include <climits>

using namespace tegula;

void Search::raiseLow(unsigned var, int64_t low) {
  std::optional<int64_t> &known = variables[var].low;
  if (!known || *known < low)
    known = low;
}

void Search::addHypothesis(const Poly &given) {
  Poly h = expand(given);
  if (h.badResult())
    return; // knowing less is always right
  if (int64_t content = h.content(); content > 1)
    h = h.dividedBy(content);
  if (std::optional<int64_t> c = h.asConstant()) {
    contradiction |= *c < 0;
    return;
  }
  if (llvm::is_contained(hypotheses, h))
    return;
  hypotheses.push_back(h);
  failed.clear();

  unsigned var = h.topVariable();
  if (h.degreeIn(var) == 1) {
    llvm::SmallVector<Poly, 3> parts = h.coefficients(var);
    const Poly &a = parts[1], &b = parts[0];
    std::optional<int64_t> c = a.asConstant(), rest = b.asConstant();
    Variable &v = variables[var];
    if (c && *c > 0) {
      // The content is 1, so c is 1 where the rest is a constant.
      if (rest)
        raiseLow(var, -*rest);
      else
        v.lowers.push_back({a, -b});
    } else if (c) {
      v.uppers.push_back({-a, b});
    } else if (isPositive(a)) {
      v.lowers.push_back({a, -b});
    } else if (isPositive(-a)) {
      v.uppers.push_back({-a, b});
    }
  }

  // A product that is positive, of factors that are not negative: all are at least 1. And a product
  // that is not negative, of factors of which all but one are positive.
  Monomial product = h.terms.back().first;
  bool isProduct = monomial::degree(product) > 1 && h.terms.back().second > 0 &&
                   (h.terms.size() == 1 || (h.terms.size() == 2 && !h.terms[0].first));
  if (!isProduct || h.constantTerm() > 0)
    return;
  auto lowOf = [&](unsigned place) {
    return variables[monomial::factor(product, place)].low.value_or(INT64_MIN);
  };
  unsigned notPositive = 0, notKnown = 0, last = 0;
  for (unsigned place = 0; place < monomial::degree(product); ++place) {
    notKnown += lowOf(place) < 0;
    if (lowOf(place) < 1) {
      ++notPositive;
      last = monomial::factor(product, place);
    }
  }
  if (h.constantTerm() < 0 && !notKnown)
    for (Monomial m = product; m; m <<= 8)
      raiseLow(monomial::top(m), 1);
  else if (notPositive == 1)
    raiseLow(last, h.constantTerm() < 0 ? 1 : 0);
}

void Search::replace(unsigned var, const Poly &value) {
  if (value.badResult() || value.uses(var))
    return;
  Variable old = variables[var];
  variables[var].value = value;
  ++epoch;
  failed.clear();
  for (unsigned other = 1; other < variables.size(); ++other)
    if (other != var && variables[other].value && variables[other].value->uses(var))
      variables[other].value = variables[other].value->substitute(var, value);
  // What was known of the variable is now known of its value.
  if (old.low)
    addHypothesis(value - Poly(*old.low));
  for (const Bound &bound : old.lowers)
    addHypothesis(bound.scale * value - bound.value);
  for (const Bound &bound : old.uppers)
    addHypothesis(bound.value - bound.scale * value);
}

bool Search::dependsOn(const IndexExpr &expr, const IndexVar &var) const {
  for (const IndexVar &used : expr.variables()) {
    if (used == var)
      return true;
    auto found = numberOf.find(used);
    if (found != numberOf.end() && variables[found->second].definition &&
        dependsOn(*variables[found->second].definition, var))
      return true;
  }
  return false;
}

void Search::addEquality(const Poly &given) {
  Poly p = expand(given);
  if (p.badResult() || p.isZero())
    return;
  // num == den*(num//den): the quotient is then a number of its own, its bounds say nothing more.
  for (unsigned var : quotients) {
    if (!p.uses(var))
      continue;
    auto [num, den] = *variables[var].ratio;
    Poly exact = expand(num) - expand(den) * Poly::variable(var);
    if (p == exact || -p == exact) {
      variables[var].isExact = true;
      variables[var].lowers.clear();
      variables[var].uppers.clear();
    }
  }
  if (int64_t content = p.content(); content > 1) {
    contradiction |= p.constantTerm() % content != 0;
    p = p.dividedBy(content);
  }
  if (std::optional<int64_t> c = p.asConstant()) {
    contradiction |= *c != 0;
    return;
  }
  // Solve for the highest variable that stands alone with coefficient 1 or -1.
  for (auto [m, coefficient] : llvm::reverse(p.terms)) {
    if (monomial::degree(m) != 1 || (coefficient != 1 && coefficient != -1))
      continue;
    unsigned var = monomial::top(m);
    if (variables[var].ratio || p.degreeIn(var) != 1 || p.coefficients(var)[1].terms.size() != 1)
      continue;
    Poly rest = p.coefficients(var)[0];
    // Not by something made of the variable itself.
    auto isCircular = [&](const Poly::Term &term) {
      for (Monomial left = term.first; left; left <<= 8) {
        const Variable &v = variables[monomial::top(left)];
        std::optional<IndexVar> self = variables[var].expr.asVariable();
        if (!v.isExact && self && dependsOn(v.expr, *self))
          return true;
      }
      return false;
    };
    if (llvm::any_of(rest.terms, isCircular))
      continue;
    replace(var, coefficient == 1 ? -rest : rest);
    return;
  }
  addHypothesis(p);
  addHypothesis(-p);
}

void Search::assume(const Condition &condition) {
  Poly lhs = poly(condition.lhs);
  switch (condition.kind) {
  case Condition::NonNegative:
    addHypothesis(lhs);
    break;
  case Condition::Zero:
    addEquality(lhs);
    break;
  case Condition::NonZero:
    if (prove(lhs, Quick))
      addHypothesis(lhs - Poly(1));
    else if (prove(-lhs, Quick))
      addHypothesis(-lhs - Poly(1));
    break;
  case Condition::Divides: {
    Poly multiple = expand(lhs), divisor = expand(poly(condition.rhs));
    Poly ratio = quotient(multiple, divisor);
    if (ratio.badResult())
      break;
    bool notNegative = prove(multiple, Quick) && prove(divisor, Quick);
    addEquality(multiple - divisor * ratio);
    if (notNegative)
      addHypothesis(ratio);
    break;
  }
  }
}

void Search::collectBounds(const IndexExpr &bound, bool isUpper, llvm::SmallVectorImpl<Poly> &out) {
  // Below a minimum is below each, and likewise above a maximum.
  IndexExpr::AtomKind wanted = isUpper ? IndexExpr::AtomKind::Min : IndexExpr::AtomKind::Max;
  for (const IndexExpr::Term &term : bound.terms())
    if (term.coefficient == 1 && term.factors.size() == 1 && term.factors[0].second == 1 &&
        term.factors[0].first->kind == wanted) {
      const IndexExpr::Atom &atom = *term.factors[0].first;
      IndexExpr rest = bound - rebuild(atom);
      for (const IndexExpr &operand : atom.operands)
        collectBounds(rest + operand, isUpper, out);
      return;
    }
  Poly value = expand(poly(bound));
  if (!value.badResult())
    out.push_back(isUpper ? value - Poly(1) : value);
}

void Search::addVariable(const RangedVar &range) {
  // The bounds' own variables come first: elimination goes from high to low numbers.
  llvm::SmallVector<Poly, 2> lows, highs;
  collectBounds(range.lo, false, lows);
  collectBounds(range.hi, true, highs);
  unsigned var = variableOf(IndexVar::dim(range.position));
  if (!var)
    return;
  for (const Poly &low : lows) {
    hypotheses.push_back(Poly::variable(var) - low);
    if (std::optional<int64_t> c = low.asConstant())
      raiseLow(var, *c);
    else
      variables[var].lowers.push_back({Poly(1), low});
  }
  for (const Poly &high : highs) {
    hypotheses.push_back(high - Poly::variable(var));
    variables[var].uppers.push_back({Poly(1), high});
  }
  for (const Poly &low : lows)
    for (const Poly &high : highs)
      addHypothesis(high - low);
  failed.clear();
}

void Search::declare(const IndexExpr &expr) {
  for (const IndexVar &var : expr.variables()) {
    if (!var.isSymbol())
      continue;
    unsigned number = variableOf(var);
    if (number && variables[number].definition) {
      std::shared_ptr<const IndexExpr> definition = variables[number].definition;
      declare(*definition);
    }
  }
}

void Search::addDomain(const Domain &domain) {
  for (const RangedVar &var : domain.vars) {
    declare(var.lo);
    declare(var.hi);
  }
  for (const Condition &condition : domain.conditions) {
    declare(condition.lhs);
    declare(condition.rhs);
  }
  for (const RangedVar &var : domain.vars)
    addVariable(var);
  for (const Condition &condition : domain.conditions)
    assume(condition);
}

/// num - den < den*(num//den) <= num, for a positive denominator.
void Search::boundQuotient(unsigned var) {
  if (variables[var].isBounded || variables[var].isExact)
    return;
  variables[var].isBounded = true;
  auto [num, den] = *variables[var].ratio;
  Poly n = expand(num), d = expand(den);
  if (n.badResult() || d.badResult())
    return;
  Variable &v = variables[var];
  v.lowers.push_back({d, n - d + Poly(1)});
  v.uppers.push_back({d, n});
  hypotheses.push_back(n - d * Poly::variable(var));
  hypotheses.push_back(d * Poly::variable(var) + d - Poly(1) - n);
  failed.clear();
}

void Search::addInnerBounds(unsigned var) {
  if (variables[var].hasInnerBounds || !variables[var].ratio || innerDepth >= 4)
    return;
  // A denominator may be known to be positive only since the range of an index was told.
  if (variables[var].askedAt == hypotheses.size() + 1)
    return;
  variables[var].askedAt = hypotheses.size() + 1;
  llvm::SaveAndRestore nested(innerDepth, innerDepth + 1);
  auto [num, den] = *variables[var].ratio;
  num = expand(num);
  den = expand(den);
  if (num.badResult() || den.badResult() || !(den.asConstant() || isPositive(den)))
    return;
  variables[var].hasInnerBounds = true;
  boundQuotient(var);
  if (go(num, 4))
    raiseLow(var, 0);
  if (varies(den))
    return;
  // Floor division grows with its numerator.
  for (bool wantMax : {false, true}) {
    std::optional<Poly> end = num;
    for (unsigned i = 0; i < 6 && end && !end->badResult() && varies(*end); ++i) {
      end = eliminateTop(*end, wantMax);
      if (!end)
        break;
      Poly bound = expand(quotient(*end, den));
      if (bound.badResult() || bound.uses(var))
        continue;
      Variable &v = variables[var];
      (wantMax ? v.uppers : v.lowers).push_back({Poly(1), bound});
      hypotheses.push_back(wantMax ? bound - Poly::variable(var) : Poly::variable(var) - bound);
    }
  }
}
