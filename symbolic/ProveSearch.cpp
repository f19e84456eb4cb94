//===- ProveSearch.cpp - Search for a proof over symbolic sizes -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "symbolic/ProveSearch.h"
#include "llvm/ADT/STLExtras.h"

using namespace tegula;

namespace {
constexpr unsigned maxSteps = 400, maxDepth = 48, maxCaseDepth = 5, maxLinearCalls = 24,
                   maxResidualDepth = 12;

/// A goal p >= 0 over integers, divided by the content of p.
Poly tightened(const Poly &p) {
  int64_t content = p.content();
  return content > 1 ? p.dividedBy(content) : p;
}

/// What scale*v >= value (or <=) makes of a*v + b >= 0: the bound put in, multiplied by the scale
/// where that must be. An integer above -1 is >= 0, hence the slack of scale - 1.
Poly withBound(const Poly &a, const Poly &b, const Search::Bound &bound) {
  if (std::optional<Poly> factor = a.exactQuotient(bound.scale))
    return *factor * bound.value + b;
  return a * bound.value + bound.scale * b + bound.scale - Poly(1);
}
} // namespace

//===----------------------------------------------------------------------===//
// Elimination
//===----------------------------------------------------------------------===//

/// Sees only signs of coefficients and constant lower bounds.
bool Search::quicklyNonNegative(const Poly &p) const {
  if (p.badResult())
    return false;
  __int128 least = 0;
  for (auto [m, coefficient] : p.terms) {
    if (!m) {
      least += coefficient;
      continue;
    }
    if (coefficient < 0)
      return false;
    __int128 product = coefficient;
    for (; m; m <<= 8) {
      std::optional<int64_t> low = variables[monomial::top(m)].low;
      if (!low || *low < 0)
        return false;
      product *= *low;
      if (product > INT64_MAX)
        product = INT64_MAX; // a lower bound of a non-negative product stays one
    }
    least += product;
  }
  return least >= 0;
}

bool Search::isPositive(const Poly &p) { return quicklyNonNegative(p - Poly(1)); }

int Search::sign(const Poly &p, unsigned depth) {
  if (std::optional<int64_t> c = p.asConstant())
    return *c >= 0 ? 1 : -1;
  if (quicklyNonNegative(p))
    return 1;
  if (quicklyNonNegative(-p))
    return -1;
  // A coefficient is worth less effort than the goal.
  if (go(p, depth + 6))
    return 1;
  return go(-p, depth + 6) ? -1 : 0;
}

llvm::SmallVector<Search::Bound, 4> Search::boundsOf(unsigned var, bool isUpper) {
  addInnerBounds(var);
  const Variable &v = variables[var];
  llvm::SmallVector<Bound, 4> result(isUpper ? v.uppers.begin() : v.lowers.begin(),
                                     isUpper ? v.uppers.end() : v.lowers.end());
  if (!isUpper && v.low)
    result.push_back({Poly(1), Poly(*v.low)});
  return result;
}

bool Search::viaBounds(const Poly &a, const Poly &b, unsigned var, bool isUpper, unsigned depth) {
  return llvm::any_of(boundsOf(var, isUpper),
                      [&](const Bound &bound) { return go(withBound(a, b, bound), depth + 1); });
}

/// Puts in the bounds of top variables where there is no choice: a variable that only a constant
/// bounds below, times what is not negative. A sum of a hundred sizes is no deeper a search than
/// one of two.
Poly Search::withoutForced(Poly goal) {
  while (!goal.badResult() && !goal.asConstant() && !quicklyNonNegative(goal)) {
    unsigned var = goal.topVariable();
    if (variables[var].value)
      break;
    llvm::SmallVector<Poly, 3> parts = goal.coefficients(var);
    if (parts.size() != 2 || !quicklyNonNegative(parts[1]))
      break;
    llvm::SmallVector<Bound, 4> bounds = boundsOf(var, false);
    if (bounds.size() != 1 || bounds.front().scale != Poly(1) || !bounds.front().value.asConstant())
      break;
    goal = tightened(parts[1] * bounds.front().value + parts[0]);
  }
  return goal;
}

bool Search::go(const Poly &given, unsigned depth) {
  if (contradiction)
    return true;
  if (given.badResult())
    return false;
  Poly goal = withoutForced(tightened(given));
  if (quicklyNonNegative(goal))
    return true;
  if (goal.asConstant() || depth >= maxDepth || ++steps > maxSteps)
    return false;
  // Also what is being tried further up: a proof that needs itself is none.
  if (!failed.insert(goal.hash()).second)
    return false;

  unsigned var = goal.topVariable();
  if (variables[var].value)
    return go(goal.substitute(var, *variables[var].value), depth + 1);
  llvm::SmallVector<Poly, 3> parts = goal.coefficients(var);
  bool proved = false;
  if (parts.size() == 2) {
    if (int s = sign(parts[1], depth)) {
      proved = viaBounds(parts[1], parts[0], var, s < 0, depth);
    } else {
      // Linear in var: least at one of the ends.
      proved = viaBounds(parts[1], parts[0], var, false, depth) &&
               viaBounds(parts[1], parts[0], var, true, depth);
    }
  } else {
    // Higher powers: monotone from an end, or concave, hence least at an end.
    auto atEnd = [&](bool isUpper) {
      return llvm::any_of(boundsOf(var, isUpper), [&](const Bound &bound) {
        return bound.scale == Poly(1) && go(goal.substitute(var, bound.value), depth + 1);
      });
    };
    for (const Bound &bound : boundsOf(var, false)) {
      if (proved || bound.scale != Poly(1))
        break;
      Poly moved = goal.substitute(var, bound.value + Poly::variable(var));
      llvm::SmallVector<Poly, 3> shifted = moved.coefficients(var);
      auto rises = [&](const Poly &c) { return sign(c, depth) > 0; };
      auto falls = [&](const Poly &c) { return c.isZero() || sign(c, depth) < 0; };
      if (llvm::all_of(llvm::drop_begin(shifted), rises))
        proved = go(shifted[0], depth + 1);
      else if (llvm::all_of(llvm::drop_begin(shifted), falls))
        proved = atEnd(true);
    }
    if (!proved && parts.size() == 3 && sign(parts[2], depth) < 0)
      proved = atEnd(false) && atEnd(true);
  }
  if (proved)
    failed.erase(goal.hash());
  return proved;
}

bool Search::prove(const Poly &goal, Effort effort) {
  if (contradiction)
    return true;
  Poly expanded = tightened(expand(goal));
  if (expanded.badResult())
    return false;
  steps = 0;
  if (go(expanded, 0))
    return true;
  if (effort == Quick || ++linearCalls > maxLinearCalls)
    return false;
  return proveLinear(expanded) || proveByCases(expanded);
}

bool Search::prove(const Condition &condition, Effort effort) {
  Poly lhs = poly(condition.lhs);
  switch (condition.kind) {
  case Condition::NonNegative:
    return prove(lhs, effort);
  case Condition::Zero:
    return prove(lhs, effort) && prove(-lhs, effort);
  case Condition::NonZero:
    return prove(lhs - Poly(1), effort) || prove(-lhs - Poly(1), effort);
  case Condition::Divides: {
    Poly rhs = expand(poly(condition.rhs));
    if (!prove(rhs - Poly(1), effort) && !prove(-rhs - Poly(1), effort))
      return false;
    Poly multiple = expand(lhs);
    if (multiple.exactQuotient(rhs))
      return true;
    Poly rest = multiple - rhs * quotient(multiple, rhs);
    return prove(rest, effort) && prove(-rest, effort);
  }
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Case distinctions
//===----------------------------------------------------------------------===//

std::optional<unsigned> Search::relevantDistinction(const Poly &goal) const {
  llvm::SmallVector<bool, 32> seen(variables.size(), false);
  llvm::SmallVector<unsigned, 16> queue;
  auto visit = [&](const Poly &p) {
    for (auto [m, coefficient] : p.terms)
      for (; m; m <<= 8)
        if (unsigned var = monomial::top(m); !seen[var]) {
          seen[var] = true;
          queue.push_back(var);
        }
  };
  visit(goal);
  for (size_t next = 0; next < queue.size(); ++next) {
    const Variable &v = variables[queue[next]];
    if (v.value) {
      visit(*v.value);
      continue;
    }
    if (v.distinction)
      return queue[next];
    if (v.ratio) {
      visit(v.ratio->first);
      visit(v.ratio->second);
    }
    for (const Bound &bound : v.lowers)
      visit(bound.value);
    for (const Bound &bound : v.uppers)
      visit(bound.value);
  }
  return std::nullopt;
}

unsigned Search::caseCount(unsigned var) const {
  const IndexExpr::Atom &atom = *variables[var].distinction;
  if (atom.kind != IndexExpr::AtomKind::Select)
    return atom.operands.size();
  return atom.cmp == IndexExpr::Cmp::EQ || atom.cmp == IndexExpr::Cmp::NE ? 3 : 2;
}

void Search::takeCase(unsigned var, unsigned which) {
  std::shared_ptr<const IndexExpr::Atom> atom = variables[var].distinction;
  auto difference = [&](unsigned a, unsigned b) {
    return expand(poly(atom->operands[a]) - poly(atom->operands[b]));
  };
  unsigned taken = which; // the operand that is the value
  if (atom->kind != IndexExpr::AtomKind::Select) {
    bool isMin = atom->kind == IndexExpr::AtomKind::Min;
    for (unsigned other = 0; other < atom->operands.size(); ++other)
      if (other != which)
        addHypothesis(isMin ? difference(other, which) : difference(which, other));
  } else if (atom->cmp == IndexExpr::Cmp::LT || atom->cmp == IndexExpr::Cmp::LE) {
    // Of a < b and b <= a, or of a <= b and b < a, one holds.
    Poly strict(atom->cmp == IndexExpr::Cmp::LT ? 1 : 0);
    addHypothesis(which == 0 ? difference(1, 0) - strict : difference(0, 1) - Poly(1) + strict);
    taken = 2 + which;
  } else {
    if (which == 0)
      addEquality(difference(0, 1));
    else
      addHypothesis(which == 1 ? difference(1, 0) - Poly(1) : difference(0, 1) - Poly(1));
    taken = (which == 0) == (atom->cmp == IndexExpr::Cmp::EQ) ? 2 : 3;
  }
  replace(var, expand(poly(atom->operands[taken])));
}

bool Search::proveByCases(const Poly &goal) {
  if (caseDepth >= maxCaseDepth)
    return false;
  std::optional<unsigned> var = relevantDistinction(goal);
  if (!var)
    return false;
  for (unsigned which = 0, n = caseCount(*var); which < n; ++which) {
    Search one = *this;
    ++one.caseDepth;
    one.takeCase(*var, which);
    bool proved = one.prove(goal);
    linearCalls = one.linearCalls;
    if (!proved)
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Bounds and conditions in sizes alone
//===----------------------------------------------------------------------===//

bool Search::varies(const Poly &p) const {
  for (auto [m, coefficient] : p.terms)
    for (; m; m <<= 8)
      if (variables[monomial::top(m)].varies)
        return true;
  return false;
}

/// The highest variable of p that varies.
static unsigned topVarying(const Poly &p, llvm::function_ref<bool(unsigned)> varies) {
  unsigned result = 0;
  for (auto [m, coefficient] : p.terms)
    for (; m; m <<= 8)
      if (monomial::top(m) > result && varies(monomial::top(m)))
        result = monomial::top(m);
  return result;
}

/// p with its highest varying variable at the end that makes it largest or smallest.
std::optional<Poly> Search::eliminateTop(const Poly &p, bool wantMax) {
  unsigned var = topVarying(p, [&](unsigned v) { return variables[v].varies; });
  if (variables[var].value)
    return p.substitute(var, *variables[var].value);
  llvm::SmallVector<Poly, 3> parts = p.coefficients(var);
  bool rises;
  if (parts.size() == 2) {
    int s = sign(parts[1], 0);
    if (!s)
      return std::nullopt;
    rises = s > 0;
  } else {
    if (!variables[var].low || *variables[var].low < 0 ||
        !llvm::all_of(llvm::drop_begin(parts), [&](const Poly &c) { return sign(c, 0) > 0; }))
      return std::nullopt;
    rises = true;
  }
  llvm::SmallVector<Bound, 4> bounds = boundsOf(var, rises == wantMax);
  for (const Bound &bound : bounds) {
    if (parts.size() == 2) {
      if (std::optional<Poly> factor = parts[1].exactQuotient(bound.scale))
        return *factor * bound.value + parts[0];
    } else if (bound.scale == Poly(1) && (wantMax || quicklyNonNegative(bound.value))) {
      // A power rises from 0 on, not from a bound below.
      return p.substitute(var, bound.value);
    }
  }
  return std::nullopt;
}

std::optional<Poly> Search::extreme(const Poly &p, bool wantMax) {
  std::optional<Poly> result = expand(p);
  steps = 0;
  for (unsigned i = 0; i < 32; ++i) {
    if (!result || result->badResult())
      return std::nullopt;
    if (!varies(*result))
      return result;
    result = eliminateTop(*result, wantMax);
  }
  return std::nullopt;
}

bool Search::residuals(const Poly &goal, llvm::SmallVectorImpl<Poly> &out, bool &exact,
                       unsigned depth) {
  Poly p = tightened(expand(goal));
  if (p.badResult() || out.size() > 4 || depth > maxResidualDepth)
    return false;
  if (prove(p, Quick))
    return true;
  unsigned var = topVarying(p, [&](unsigned v) { return variables[v].varies; });
  if (!var) {
    if (p.asConstant())
      return false;
    if (!llvm::is_contained(out, p))
      out.push_back(p);
    return true;
  }
  llvm::SmallVector<Poly, 3> parts = p.coefficients(var);
  if (parts.size() != 2)
    return false;
  int s = sign(parts[1], 0);
  for (bool isUpper : {false, true}) {
    if (s && (s < 0) != isUpper)
      continue;
    llvm::SmallVector<Bound, 4> bounds = boundsOf(var, isUpper);
    if (bounds.empty())
      return false;
    const Bound *bound = llvm::find_if(
        bounds, [&](const Bound &b) { return parts[1].exactQuotient(b.scale).has_value(); });
    if (bound == bounds.end())
      bound = bounds.begin();
    exact &= bounds.size() == 1 && bound->scale == Poly(1) && !variables[var].ratio &&
             !variables[var].distinction;
    if (!residuals(withBound(parts[1], parts[0], *bound), out, exact, depth + 1))
      return false;
  }
  return true;
}
