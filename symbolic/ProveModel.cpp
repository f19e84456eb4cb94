//===- ProveModel.cpp - From integer expressions to hypotheses and goals --------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "symbolic/IndexExprBuilder.h"
#include "symbolic/ProveSearch.h"
#include "llvm/ADT/STLExtras.h"

using namespace tegula;

namespace {
constexpr unsigned maxVariables = 250;

/// A value wherever its variables have one: no division by something that could be 0.
bool isTotal(const IndexExpr &expr) {
  for (const IndexExpr::Term &term : expr.terms())
    for (const auto &[atom, power] : term.factors) {
      if (atom->kind == IndexExpr::AtomKind::FloorDiv &&
          atom->operands[1].asConstant().value_or(0) == 0)
        return false;
      if (!llvm::all_of(atom->operands, isTotal))
        return false;
    }
  return !expr.isOverflow();
}

bool dependsOnDims(const IndexExpr &expr) {
  return llvm::any_of(expr.variables(), [](const IndexVar &v) { return !v.isSymbol(); });
}

IndexExpr extremumOf(IndexExpr::AtomKind kind, llvm::ArrayRef<IndexExpr> operands) {
  IndexExpr result = operands.front();
  for (const IndexExpr &operand : operands.drop_front())
    result = kind == IndexExpr::AtomKind::Min ? IndexExpr::min(result, operand)
                                              : IndexExpr::max(result, operand);
  return result;
}

} // namespace

IndexExpr tegula::rebuild(const IndexExpr::Atom &atom) {
  llvm::ArrayRef<IndexExpr> o = atom.operands;
  switch (atom.kind) {
  case IndexExpr::AtomKind::Variable:
    return IndexExpr::variable(atom.var);
  case IndexExpr::AtomKind::FloorDiv:
    return IndexExpr::floorDiv(o[0], o[1]);
  case IndexExpr::AtomKind::Min:
  case IndexExpr::AtomKind::Max:
    return extremumOf(atom.kind, o);
  case IndexExpr::AtomKind::Select:
    return IndexExpr::select(atom.cmp, o[0], o[1], o[2], o[3]);
  case IndexExpr::AtomKind::Float:
    return IndexExprBuilder::ofFloats(o);
  }
  llvm_unreachable("an atom of no kind");
}

//===----------------------------------------------------------------------===//
// Variables
//===----------------------------------------------------------------------===//

unsigned Search::newVariable(IndexExpr expr, bool varies) {
  if (variables.size() >= maxVariables)
    return 0;
  variables.emplace_back();
  variables.back().expr = std::move(expr);
  variables.back().varies = varies;
  return variables.size() - 1;
}

unsigned Search::variableOf(const IndexVar &var) {
  auto [entry, isNew] = numberOf.try_emplace(var, 0);
  if (!isNew)
    return entry->second;
  unsigned number = entry->second = newVariable(IndexExpr::variable(var), !var.isSymbol());
  if (number && var.isSymbol() && !llvm::is_contained(signedSymbols, var.name()))
    variables[number].low = 0;
  return number;
}

void Search::setSigned(llvm::StringRef symbol) { signedSymbols.push_back(symbol.str()); }

void Search::define(llvm::StringRef symbol, const IndexExpr &definition) {
  assert(!numberOf.count(IndexVar::symbol(symbol)) && "defined after its first use");
  signedSymbols.push_back(symbol.str());
  if (unsigned var = variableOf(IndexVar::symbol(symbol)))
    variables[var].definition = std::make_shared<IndexExpr>(definition);
  ++epoch;
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

Poly Search::poly(const IndexExpr &expr) {
  if (expr.isOverflow())
    return Poly::bad();
  Poly result;
  for (const IndexExpr::Term &term : expr.terms()) {
    Poly product(term.coefficient);
    for (const auto &[factor, power] : term.factors) {
      Poly value = atom(factor);
      for (unsigned i = 0; i < power; ++i)
        product = product * value;
    }
    result = result + product;
  }
  return result;
}

Poly Search::atom(const std::shared_ptr<const IndexExpr::Atom> &atom) {
  if (atom->kind == IndexExpr::AtomKind::Variable) {
    unsigned var = variableOf(atom->var);
    return var ? Poly::variable(var) : Poly::bad();
  }
  if (atom->kind == IndexExpr::AtomKind::FloorDiv) {
    Poly num = poly(atom->operands[0]), den = poly(atom->operands[1]);
    return quotient(num, den);
  }
  if (atom->kind == IndexExpr::AtomKind::Float) {
    // An integer of which nothing is known, the same one wherever it stands.
    IndexExpr whole = rebuild(*atom);
    auto [known, isNew] = floats.try_emplace(whole, 0);
    if (isNew)
      known->second = newVariable(whole, dependsOnDims(whole));
    return known->second ? Poly::variable(known->second) : Poly::bad();
  }
  return atom->kind == IndexExpr::AtomKind::Select ? conditional(atom) : extremum(atom);
}

/// The variable that stands for an undecided case distinction, and whether it is new; 0 when there
/// are too many.
std::pair<unsigned, bool>
Search::distinctionVariable(const std::shared_ptr<const IndexExpr::Atom> &atom) {
  IndexExpr whole = rebuild(*atom);
  if (auto found = distinctions.find(whole); found != distinctions.end())
    return {found->second, false};
  unsigned var = newVariable(whole, dependsOnDims(whole));
  if (var) {
    distinctions[whole] = var;
    variables[var].distinction = atom;
  }
  return {var, var != 0};
}

Poly Search::extremum(const std::shared_ptr<const IndexExpr::Atom> &atom) {
  bool isMin = atom->kind == IndexExpr::AtomKind::Min;
  llvm::SmallVector<IndexExpr, 4> kept(atom->operands.begin(), atom->operands.end());
  llvm::SmallVector<Poly, 4> values;
  for (const IndexExpr &operand : kept) {
    values.push_back(poly(operand));
    if (values.back().badResult())
      return Poly::bad();
    // Once, not in every comparison below: sizes may be defined by extrema of sizes.
    if (Poly expanded = expand(values.back()); !expanded.badResult())
      values.back() = expanded;
  }
  // An operand that never wins against another may go.
  for (size_t i = 0; i < kept.size(); ++i)
    for (size_t j = 0; j < kept.size(); ++j) {
      Poly lead = isMin ? values[i] - values[j] : values[j] - values[i];
      if (i == j || !prove(lead, Quick))
        continue;
      kept.erase(kept.begin() + i);
      values.erase(values.begin() + i);
      --i;
      break;
    }
  if (kept.size() == 1)
    return values[0];
  if (kept.size() < atom->operands.size())
    return poly(extremumOf(atom->kind, kept));

  auto [var, isNew] = distinctionVariable(atom);
  if (!var || !isNew)
    return var ? Poly::variable(var) : Poly::bad();
  bool notNegative = true;
  for (Poly &value : values) {
    value = expand(value);
    notNegative = notNegative && prove(value, Quick);
    Variable &v = variables[var];
    (isMin ? v.uppers : v.lowers).push_back({Poly(1), value});
  }
  if (notNegative)
    raiseLow(var, 0);
  return Poly::variable(var);
}

Poly Search::conditional(const std::shared_ptr<const IndexExpr::Atom> &atom) {
  Poly difference = poly(atom->operands[1]) - poly(atom->operands[0]);
  if (difference.badResult())
    return Poly::bad();
  auto known = [&](const Poly &p) { return prove(p, Quick); };
  bool yes = false, no = false;
  switch (atom->cmp) {
  case IndexExpr::Cmp::LT:
    yes = known(difference - Poly(1)), no = !yes && known(-difference);
    break;
  case IndexExpr::Cmp::LE:
    yes = known(difference), no = !yes && known(-difference - Poly(1));
    break;
  case IndexExpr::Cmp::EQ:
  case IndexExpr::Cmp::NE:
    yes = known(difference) && known(-difference);
    no = !yes && (known(difference - Poly(1)) || known(-difference - Poly(1)));
    if (atom->cmp == IndexExpr::Cmp::NE)
      std::swap(yes, no);
    break;
  }
  if (yes || no)
    return poly(atom->operands[yes ? 2 : 3]);

  auto [var, isNew] = distinctionVariable(atom);
  if (!var || !isNew)
    return var ? Poly::variable(var) : Poly::bad();
  // A branch may hold denominators that are 0 only where it is not taken.
  if (!isTotal(atom->operands[2]) || !isTotal(atom->operands[3]))
    return Poly::variable(var);
  Poly first = expand(poly(atom->operands[2])), second = expand(poly(atom->operands[3]));
  if (first.badResult() || second.badResult())
    return Poly::variable(var);
  auto bound = [&](const Poly &low, const Poly &high) {
    variables[var].lowers.push_back({Poly(1), low});
    variables[var].uppers.push_back({Poly(1), high});
  };
  if (known(second - first))
    bound(first, second);
  else if (known(first - second))
    bound(second, first);
  if (known(first) && known(second))
    raiseLow(var, 0);
  return Poly::variable(var);
}

/// `rest` as `multiples` of `den` and what is left: its coefficients are of least magnitude, not in
/// [0, den). -i//den stays so, where the multiple of i by den - 1 might leave 64 bits, in which the
/// formula is computed. A small divisor's multiples of an index do not
/// (frontend/check/sizes/CheckExact.cpp).
static std::pair<Poly, Poly> withLeastCoefficients(const Poly &rest, const Poly &den) {
  constexpr int64_t minDivisor = int64_t(1) << 14;
  std::optional<int64_t> divisor = den.asConstant();
  if (!divisor || *divisor < minDivisor)
    return {Poly(), rest};
  Poly multiples;
  for (auto [monomial, coefficient] : rest.terms)
    if (monomial && coefficient > *divisor / 2)
      multiples = multiples + Poly(monomial, 1);
  return {multiples, rest - multiples * den};
}

Poly Search::quotient(const Poly &num, const Poly &den) {
  if (num.badResult() || den.badResult() || den.isZero())
    return Poly::bad();
  if (std::optional<int64_t> c = den.asConstant(); c && *c < 0)
    return quotient(-num, -den);
  auto known = [&](const Poly &p) {
    Poly expanded = expand(p);
    return !expanded.badResult() && go(expanded, 4);
  };
  bool positive = den.asConstant() || known(den - Poly(1));
  if (!positive && known(den)) {
    addHypothesis(den - Poly(1));
    positive = true;
  }
  if (!positive && known(-den))
    return quotient(-num, -den);

  // num//den = part + rest//den, whatever the values.
  auto [part, rest] = num.divide(den);
  if (part.badResult() || rest.badResult())
    return Poly::bad();
  if (rest.isZero())
    return part;
  if (positive) {
    if (known(rest) && known(den - Poly(1) - rest))
      return part;
    if (known(-rest - Poly(1)) && known(rest + den))
      return part - Poly(1);
    // (x//a)//b is x//(a*b) for positive a, b.
    if (rest.terms.size() == 1 && rest.terms[0].second == 1 &&
        monomial::degree(rest.terms[0].first) == 1)
      if (const auto &inner = variables[rest.topVariable()].ratio)
        if (Poly innerDen = inner->second; innerDen.asConstant() || known(innerDen - Poly(1)))
          return part + quotient(Poly(inner->first), innerDen * den);
  }
  for (unsigned var : quotients)
    if (variables[var].ratio->first == rest && variables[var].ratio->second == den) {
      if (positive)
        boundQuotient(var);
      return part + Poly::variable(var);
    }

  auto [multiples, least] = withLeastCoefficients(rest, den);
  unsigned var = newVariable(expr(multiples) + IndexExpr::floorDiv(expr(least), expr(den)),
                             varies(rest) || varies(den));
  if (!var)
    return Poly::bad();
  quotients.push_back(var);
  variables[var].ratio = {rest, den};
  if (positive)
    boundQuotient(var);
  return part + Poly::variable(var);
}

Poly Search::expand(const Poly &given) {
  Poly p = given;
  // What is put in may not make it much longer; a sum of many sizes is long to begin with.
  const size_t maxTerms = std::max<size_t>(64, given.terms.size());
  for (unsigned round = 0; round < 48; ++round) {
    if (p.badResult() || p.terms.size() > maxTerms)
      return Poly::bad();
    unsigned var = 0;
    Poly value;
    for (auto [m, coefficient] : p.terms) {
      for (; m && !var; m <<= 8) {
        unsigned candidate = monomial::top(m);
        Variable &v = variables[candidate];
        if (v.value) {
          value = *v.value;
          var = candidate;
        } else if (v.definition) {
          std::shared_ptr<const IndexExpr> definition = v.definition;
          value = poly(*definition);
          var = candidate;
        } else if (v.ratio && !v.isExact && v.expandedAt < epoch) {
          auto [num, den] = *v.ratio;
          v.expandedAt = epoch;
          Poly n = expand(num), d = expand(den);
          if (n != num || d != den) {
            value = quotient(n, d);
            // Known multiples come back to themselves: C is G*(C//G).
            if (!value.uses(candidate)) {
              variables[candidate].value = value;
              var = candidate;
            }
          }
        }
      }
      if (var)
        break;
    }
    if (!var)
      return p;
    p = p.substitute(var, value);
  }
  return Poly::bad();
}

IndexExpr Search::expr(const Poly &p) const {
  IndexExpr result;
  for (auto [m, coefficient] : p.terms) {
    IndexExpr product(coefficient);
    for (; m; m <<= 8)
      product = product * variables[monomial::top(m)].expr;
    result = result + product;
  }
  return result;
}
