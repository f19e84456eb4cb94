//===- Witness.cpp - Proofs about sizes that can be replayed ------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/Witness.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::prove;
using AtomKind = IndexExpr::AtomKind;

namespace {
constexpr unsigned maxVariables = 250, maxDepth = 16, maxSteps = 3000, maxCaseDepth = 3;
}

//===----------------------------------------------------------------------===//
// Formulas
//===----------------------------------------------------------------------===//

unsigned Witness::variable(StringRef name, StringRef kind, double rank) {
  auto [entry, isNew] = numbers.try_emplace(name.str(), 0);
  if (isNew && all.size() < maxVariables) {
    entry->second = unsigned(all.size());
    all.push_back({name.str(), kind.str(), rank, {}, IndexExpr::Cmp::LE});
  }
  return entry->second;
}

void Witness::define(StringRef symbol, const Poly &value) { definitions[symbol.str()] = value; }

unsigned Witness::newVariable(StringRef kind, std::vector<Poly> of, IndexExpr::Cmp cmp) {
  for (unsigned var = 1; var < all.size(); ++var)
    if (all[var].kind == kind && all[var].of == of && all[var].cmp == cmp)
      return var;
  if (all.size() >= maxVariables)
    return 0;
  double rank = 0;
  for (const Poly &operand : of)
    if (unsigned top = topOf(operand))
      rank = std::max(rank, all[top].rank);
  std::string name = kind.str() + "_" + std::to_string(all.size());
  while (numbers.count(name))
    name += "_";
  numbers[name] = unsigned(all.size());
  all.push_back({name, kind.str(), rank + 0.5, std::move(of), cmp});
  return unsigned(all.size()) - 1;
}

Poly Witness::quotient(const Poly &numerator, const Poly &denominator) {
  if (numerator.badResult() || denominator.badResult() || denominator.isZero())
    return Poly::bad();
  if (std::optional<int64_t> c = denominator.asConstant(); c && *c < 0)
    return quotient(-numerator, -denominator);
  unsigned var = newVariable("quotient", {numerator, denominator}, IndexExpr::Cmp::LE);
  return var ? Poly::variable(var) : Poly::bad();
}

Poly Witness::distinction(StringRef kind, std::vector<Poly> operands, IndexExpr::Cmp cmp) {
  if (any_of(operands, [](const Poly &one) { return one.badResult(); }))
    return Poly::bad();
  size_t before = all.size();
  unsigned var = newVariable(kind, std::move(operands), cmp);
  if (!var)
    return Poly::bad();
  if (var == before && kind != "where")
    for (const Poly &operand : std::vector<Poly>(all[var].of)) {
      Poly difference = operand - Poly::variable(var);
      assume(kind == "min" ? difference : -difference, json::Object{{"operand_of", all[var].name}});
    }
  return Poly::variable(var);
}

Poly Witness::poly(const IndexExpr &expr, function_ref<Poly(unsigned)> dimOf) {
  if (expr.isOverflow())
    return Poly::bad();
  auto atom = [&](const IndexExpr::Atom &atom) -> Poly {
    if (atom.kind == AtomKind::Variable) {
      if (!atom.var.isSymbol())
        return dimOf(atom.var.position());
      if (auto found = definitions.find(atom.var.name()); found != definitions.end())
        return found->second;
      auto found = numbers.find(atom.var.name());
      return found == numbers.end() ? Poly::bad() : Poly::variable(found->second);
    }
    std::vector<Poly> operands;
    for (const IndexExpr &operand : atom.operands)
      operands.push_back(poly(operand, dimOf));
    switch (atom.kind) {
    case AtomKind::FloorDiv:
      return quotient(operands[0], operands[1]);
    case AtomKind::Min:
      return distinction("min", std::move(operands));
    case AtomKind::Max:
      return distinction("max", std::move(operands));
    case AtomKind::Select:
      return distinction("where", std::move(operands), atom.cmp);
    default:
      return Poly::bad();
    }
  };
  Poly result;
  for (const IndexExpr::Term &term : expr.terms()) {
    Poly product(term.coefficient);
    for (const auto &[factor, power] : term.factors) {
      Poly value = atom(*factor);
      for (unsigned k = 0; k < power; ++k)
        product = product * value;
    }
    result = result + product;
  }
  return result;
}

Poly Witness::poly(const IndexExpr &size) {
  return poly(size, [](unsigned) { return Poly::bad(); });
}

unsigned Witness::topOf(const Poly &p) const {
  unsigned top = 0;
  for (auto [m, coefficient] : p.terms)
    for (; m; m <<= 8)
      if (unsigned var = monomial::top(m);
          !top || all[var].rank > all[top].rank || (all[var].rank == all[top].rank && var > top))
        top = var;
  return top;
}

void Witness::assume(const Poly &hypothesis, json::Object from) {
  if (hypothesis.badResult() || hypothesis.asConstant())
    return; // knowing less is always right
  for (const Hypothesis &known : hypotheses)
    if (known.poly == hypothesis)
      return;
  hypotheses.push_back({hypothesis, std::move(from), topOf(hypothesis)});
  failed.clear();
}

std::string Witness::text(const Poly &p) const {
  std::string result;
  raw_string_ostream os(result);
  for (auto [m, coefficient] : p.terms) {
    os << (coefficient < 0 ? (result.empty() ? "-" : " - ") : (result.empty() ? "" : " + "));
    uint64_t size = coefficient < 0 ? -uint64_t(coefficient) : uint64_t(coefficient);
    if (size != 1 || !m)
      os << size << (m ? "*" : "");
    for (bool isFirst = true; m; m <<= 8, isFirst = false)
      os << (isFirst ? "" : "*") << all[monomial::top(m)].name;
    os.flush();
  }
  return result.empty() ? "0" : result;
}

json::Array Witness::variables() const {
  json::Array array;
  for (const Variable &var : drop_begin(all)) {
    json::Object one{{"name", var.name}, {"kind", var.kind}};
    json::Array of;
    for (const Poly &operand : var.of)
      of.push_back(text(operand));
    if (!of.empty())
      one["of"] = std::move(of);
    static const char *signs[] = {"==", "!=", "<", "<="};
    if (var.kind == "where")
      one["compares"] = signs[unsigned(var.cmp)];
    array.push_back(std::move(one));
  }
  return array;
}

//===----------------------------------------------------------------------===//
// Proofs
//===----------------------------------------------------------------------===//

/// Of a hypothesis `v - c >= 0` with c >= 0 the number, of the largest c.
std::optional<size_t> Witness::lowOf(unsigned var) const {
  std::optional<size_t> best;
  int64_t low = -1;
  for (auto [k, hypothesis] : enumerate(hypotheses)) {
    if (hypothesis.top != var)
      continue;
    std::optional<int64_t> rest = (hypothesis.poly - Poly::variable(var)).asConstant();
    if (rest && *rest <= 0 && -*rest > low) {
      low = -*rest;
      best = k;
    }
  }
  return best;
}

json::Value Witness::byLows(const Poly &goal) {
  json::Object lows;
  __int128 least = goal.constantTerm();
  for (auto [m, coefficient] : goal.terms) {
    if (!m)
      continue;
    if (coefficient < 0)
      return nullptr;
    __int128 product = coefficient;
    for (; m; m <<= 8) {
      unsigned var = monomial::top(m);
      std::optional<size_t> low = lowOf(var);
      if (!low)
        return nullptr;
      lows[all[var].name] = int64_t(*low);
      product *= -hypotheses[*low].poly.constantTerm();
      if (product > INT64_MAX)
        return nullptr;
    }
    least += product;
  }
  if (least < 0)
    return nullptr;
  return json::Object{{"goal", text(goal)}, {"rule", "lows"}, {"lows", std::move(lows)}};
}

void Witness::boundQuotient(unsigned var) {
  const Variable &quotient = all[var];
  if (quotient.kind != "quotient")
    return;
  Poly numerator = quotient.of[0], denominator = quotient.of[1];
  Poly rest = numerator - denominator * Poly::variable(var);
  if (rest.badResult() ||
      any_of(hypotheses, [&](const Hypothesis &known) { return known.poly == rest; }))
    return;
  json::Value isPositive = go(denominator - Poly(1), maxDepth / 2);
  if (isPositive == nullptr)
    return;
  json::Object from{{"quotient", quotient.name}, {"denominator", isPositive}};
  assume(rest, from);
  assume(denominator - Poly(1) - rest, from);
}

json::Value Witness::tryHypothesis(const Poly &goal, unsigned var, const Poly &coefficient,
                                   bool isUpper, const json::Value &sign, size_t number,
                                   unsigned depth) {
  const Poly hypothesis = hypotheses[number].poly;
  SmallVector<Poly, 3> parts = hypothesis.coefficients(var);
  if (parts.size() != 2)
    return nullptr;
  Poly size = isUpper ? -coefficient : coefficient, scale = isUpper ? -parts[1] : parts[1];
  if (std::optional<int64_t> constant = scale.asConstant(); constant && *constant <= 0)
    return nullptr;
  Poly factor = size, by = scale;
  json::Value factorSign = sign, scaleSign = nullptr;
  if (std::optional<Poly> exact = size.exactQuotient(scale)) {
    factor = *exact;
    by = Poly(1);
    if (factor != size)
      factorSign = go(factor, depth + 4);
  }
  scaleSign = go(by - Poly(1), depth + 4);
  if (factorSign == nullptr || scaleSign == nullptr)
    return nullptr;
  Poly rest = by * goal + by - Poly(1) - factor * hypothesis;
  json::Value proof = go(rest, depth + 1);
  if (proof == nullptr)
    return nullptr;
  return json::Object{{"goal", text(goal)},
                      {"rule", "bound"},
                      {"hypothesis", int64_t(number)},
                      {"factor", std::move(factorSign)},
                      {"scale", text(by)},
                      {"positive", std::move(scaleSign)},
                      {"rest", std::move(proof)}};
}

json::Value Witness::byBound(const Poly &goal, unsigned depth) {
  unsigned var = topOf(goal);
  boundQuotient(var);
  // goal = coefficient*var + what is left; the coefficient may have the variable in it.
  Poly coefficient;
  SmallVector<Poly, 3> parts = goal.coefficients(var);
  for (size_t k = parts.size(); k-- > 1;)
    coefficient = coefficient * Poly::variable(var) + parts[k];
  if (coefficient.badResult())
    return nullptr;
  json::Value sign = go(coefficient, depth + 4);
  bool isUpper = sign == nullptr;
  if (isUpper)
    sign = go(-coefficient, depth + 4);
  if (sign == nullptr)
    return nullptr;
  for (size_t number = hypotheses.size(); number-- > 0;) {
    if (hypotheses[number].top != var)
      continue;
    json::Value proof = tryHypothesis(goal, var, coefficient, isUpper, sign, number, depth);
    if (proof != nullptr)
      return proof;
  }
  return nullptr;
}

json::Value Witness::go(const Poly &goal, unsigned depth) {
  if (goal.badResult() || depth > maxDepth || ++steps > maxSteps)
    return nullptr;
  json::Value simple = byLows(goal);
  if (simple != nullptr || goal.asConstant())
    return simple;
  if (int64_t content = goal.content(); content > 1) {
    json::Value rest = go(goal.dividedBy(content), depth);
    if (rest == nullptr)
      return nullptr;
    return json::Object{{"goal", text(goal)}, {"rule", "scale"}, {"by", content}, {"rest", rest}};
  }
  // Also what is being tried further up: a proof that needs itself is none.
  if (!failed.insert(goal.hash()).second)
    return nullptr;
  json::Value proof = byBound(goal, depth);
  if (proof != nullptr)
    failed.erase(goal.hash());
  return proof;
}

//===----------------------------------------------------------------------===//
// Cases
//===----------------------------------------------------------------------===//

std::vector<std::vector<Poly>> Witness::casesOf(unsigned var) const {
  const Variable &one = all[var];
  Poly self = Poly::variable(var);
  std::vector<std::vector<Poly>> cases;
  auto isValue = [&](std::vector<Poly> conditions, const Poly &value) {
    conditions.push_back(self - value);
    conditions.push_back(value - self);
    cases.push_back(std::move(conditions));
  };
  if (one.kind == "min" || one.kind == "max") {
    for (size_t k = 0; k < one.of.size(); ++k) {
      std::vector<Poly> conditions;
      for (size_t other = 0; other < one.of.size(); ++other)
        if (other != k)
          conditions.push_back(one.kind == "min" ? one.of[other] - one.of[k]
                                                 : one.of[k] - one.of[other]);
      isValue(conditions, one.of[k]);
    }
  } else if (one.kind == "where") {
    Poly rise = one.of[1] - one.of[0]; // a <= b is rise >= 0
    bool isEqual = one.cmp == IndexExpr::Cmp::EQ || one.cmp == IndexExpr::Cmp::NE;
    if (isEqual) {
      bool isNot = one.cmp == IndexExpr::Cmp::NE;
      isValue({rise, -rise}, one.of[isNot ? 3 : 2]);
      isValue({rise - Poly(1)}, one.of[isNot ? 2 : 3]);
      isValue({-rise - Poly(1)}, one.of[isNot ? 2 : 3]);
    } else {
      Poly least(one.cmp == IndexExpr::Cmp::LT ? 1 : 0);
      isValue({rise - least}, one.of[2]);
      isValue({-rise + least - Poly(1)}, one.of[3]);
    }
  }
  return cases;
}

json::Value Witness::proveWith(const std::vector<Poly> &more, const Poly &goal) {
  size_t before = hypotheses.size();
  for (const Poly &one : more)
    assume(one, json::Object{{"case", true}});
  failed.clear();
  ++caseDepth;
  json::Value proof = prove(goal);
  --caseDepth;
  json::Object adds;
  for (size_t k = before; k < hypotheses.size(); ++k)
    adds[std::to_string(k)] =
        json::Object{{"is", text(hypotheses[k].poly)}, {"from", json::Object(hypotheses[k].from)}};
  hypotheses.resize(before);
  failed.clear();
  if (proof == nullptr)
    return nullptr;
  return json::Object{{"hypotheses", std::move(adds)}, {"proof", std::move(proof)}};
}

json::Value Witness::byCases(const Poly &goal, unsigned depth) {
  if (depth >= maxCaseDepth)
    return nullptr;
  for (unsigned var = unsigned(all.size()); var-- > 1;) {
    bool isSettled = any_of(hypotheses, [&](const Hypothesis &known) {
      return known.from.getBoolean("case") && known.poly.uses(var) && known.top == var;
    });
    std::vector<std::vector<Poly>> cases = casesOf(var);
    if (isSettled || cases.empty())
      continue;
    json::Array proofs;
    for (const std::vector<Poly> &one : cases) {
      json::Value proof = proveWith(one, goal);
      if (proof == nullptr)
        break;
      proofs.push_back(std::move(proof));
    }
    if (proofs.size() == cases.size())
      return json::Object{{"goal", text(goal)},
                          {"rule", "cases"},
                          {"variable", all[var].name},
                          {"cases", std::move(proofs)}};
  }
  return nullptr;
}

json::Value Witness::prove(const Poly &goal) {
  steps = 0;
  json::Value proof = go(goal, 0);
  if (proof == nullptr && !goal.badResult())
    proof = byCases(goal, caseDepth);
  return proof;
}

/// The numbers of the hypotheses that a proof names.
static void namedBy(const json::Value &proof, std::set<size_t> &named) {
  if (const json::Array *array = proof.getAsArray())
    for (const json::Value &one : *array)
      namedBy(one, named);
  const json::Object *object = proof.getAsObject();
  if (!object)
    return;
  if (std::optional<int64_t> number = object->getInteger("hypothesis"))
    named.insert(size_t(*number));
  if (const json::Object *lows = object->getObject("lows"))
    for (const auto &[name, number] : *lows)
      named.insert(size_t(*number.getAsInteger()));
  for (const auto &[key, value] : *object)
    if (key != "lows")
      namedBy(value, named);
}

json::Object Witness::hypothesesOf(const json::Value &proof) const {
  std::set<size_t> named;
  namedBy(proof, named);
  // A hypothesis may rest on a proof of its own.
  for (size_t before = 0; before != named.size();) {
    before = named.size();
    for (size_t number : std::set<size_t>(named))
      if (number < hypotheses.size())
        namedBy(json::Object(hypotheses[number].from), named);
  }
  json::Object result;
  for (size_t number : named)
    if (number < hypotheses.size())
      result[std::to_string(number)] = json::Object{
          {"is", text(hypotheses[number].poly)}, {"from", json::Object(hypotheses[number].from)}};
  return result;
}
