//===- Prove.cpp - What holds for all sizes -------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "symbolic/Prove.h"
#include "symbolic/ProveState.h"
#include "llvm/ADT/STLExtras.h"

using namespace tegula;

namespace {
// Sizes tried before the costly proof, and after it failed; points tried at each.
constexpr unsigned quickSizes = 8, manySizes = 64, pointsEach = 400;
constexpr size_t maxConditions = 3;
constexpr unsigned maxAtoms = 1000;
/// A search has 250 variables: these many sizes leave room for what a question adds.
constexpr size_t manySizesOfFacts = 180;

std::vector<IndexExpr> goalsOf(const Condition &condition) {
  switch (condition.kind) {
  case Condition::NonNegative:
    return {condition.lhs};
  case Condition::Zero:
    return {condition.lhs, -condition.lhs};
  default:
    return {};
  }
}
} // namespace

std::string Condition::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  switch (kind) {
  case NonNegative:
    os << lhs << " >= 0";
    break;
  case Zero:
    os << lhs << " == 0";
    break;
  case NonZero:
    os << lhs << " != 0";
    break;
  case Divides:
    os << lhs << " is a multiple of " << rhs;
    break;
  }
  return text;
}

/// Atoms of `expr` written out, counted up to `limit`.
static void countAtoms(const IndexExpr &expr, unsigned limit, unsigned &count) {
  for (const IndexExpr::Term &term : expr.terms())
    for (const auto &[atom, power] : term.factors) {
      if (++count > limit)
        return;
      for (const IndexExpr &operand : atom->operands)
        countAtoms(operand, limit, count);
    }
}

bool tegula::isTooLarge(const IndexExpr &expr) {
  unsigned count = 0;
  countAtoms(expr, maxAtoms, count);
  return count > maxAtoms;
}

bool tegula::isTooLarge(llvm::ArrayRef<IndexExpr> exprs, const Domain &domain) {
  auto large = [](const IndexExpr &e) { return isTooLarge(e); };
  return llvm::any_of(exprs, large) ||
         llvm::any_of(domain.vars, [&](auto &var) { return large(var.lo) || large(var.hi); }) ||
         llvm::any_of(domain.conditions, [&](auto &c) { return large(c.lhs) || large(c.rhs); });
}

Prover::Prover(SizeFacts facts) : state(std::make_unique<State>()) {
  state->facts = std::move(facts);
}
Prover::~Prover() = default;
Prover::Prover(Prover &&) noexcept = default;
Prover &Prover::operator=(Prover &&) noexcept = default;

const SizeFacts &Prover::facts() const { return state->facts; }

void Prover::assume(const Condition &fact) {
  if (isTooLarge({fact.lhs, fact.rhs}, Domain()))
    return; // knowing less is always right
  state->facts.facts.push_back(fact);
  if (state->hasBase())
    state->mutableBase().assume(fact);
}

void Prover::define(llvm::StringRef name, const IndexExpr &definition) {
  state->facts.definitions.push_back({name.str(), definition});
  state->forget();
}

const Search &Prover::State::base() {
  if (!known) {
    known.emplace();
    for (const std::string &name : facts.signedSymbols)
      known->setSigned(name);
    for (const auto &[name, definition] : facts.definitions)
      known->define(name, definition);
    for (const Condition &fact : facts.facts)
      known->assume(fact);
  }
  return *known;
}

static void addSizes(const IndexExpr &expr, llvm::StringSet<> &sizes) {
  for (const IndexVar &var : expr.variables())
    if (var.isSymbol())
      sizes.insert(var.name());
}

bool Prover::State::hasManySizes() {
  for (; factsCounted < facts.facts.size(); ++factsCounted)
    for (const IndexExpr &side : {facts.facts[factsCounted].lhs, facts.facts[factsCounted].rhs})
      addSizes(side, sizes);
  for (; definitionsCounted < facts.definitions.size(); ++definitionsCounted) {
    sizes.insert(facts.definitions[definitionsCounted].first);
    addSizes(facts.definitions[definitionsCounted].second, sizes);
  }
  return sizes.size() > manySizesOfFacts;
}

Search Prover::State::searchOf(llvm::ArrayRef<IndexExpr> exprs) {
  llvm::StringSet<> near;
  for (const IndexExpr &expr : exprs)
    addSizes(expr, near);
  llvm::SmallVector<llvm::StringSet<>> sizesOf(facts.facts.size());
  for (auto [fact, of] : llvm::zip_equal(facts.facts, sizesOf)) {
    addSizes(fact.lhs, of);
    addSizes(fact.rhs, of);
  }
  auto isNear = [&](const llvm::StringSet<> &of) {
    return llvm::any_of(of, [&](const auto &size) { return near.contains(size.first()); });
  };
  llvm::SmallVector<bool> taken(facts.facts.size(), false);
  for (bool changed = true; changed;) {
    changed = false;
    size_t before = near.size();
    for (const auto &[name, definition] : llvm::reverse(facts.definitions))
      if (near.contains(name))
        addSizes(definition, near);
    for (size_t i = 0; i != taken.size(); ++i)
      if (!taken[i] && near.size() + sizesOf[i].size() <= manySizesOfFacts && isNear(sizesOf[i])) {
        taken[i] = changed = true;
        for (const auto &size : sizesOf[i])
          near.insert(size.first());
      }
    changed |= near.size() != before;
  }
  Search search;
  for (const std::string &name : facts.signedSymbols)
    search.setSigned(name);
  for (const auto &[name, definition] : facts.definitions)
    if (!near.contains(name))
      search.setSigned(name);
  for (const auto &[name, definition] : facts.definitions)
    if (near.contains(name))
      search.define(name, definition);
  for (auto [fact, isTaken] : llvm::zip_equal(facts.facts, taken))
    if (isTaken)
      search.assume(fact);
  return search;
}

Search Prover::State::searchIn(const Domain &domain, llvm::ArrayRef<IndexExpr> goals) {
  llvm::SmallVector<IndexExpr> exprs;
  if (hasManySizes()) {
    llvm::append_range(exprs, goals);
    for (const RangedVar &var : domain.vars)
      llvm::append_values(exprs, var.lo, var.hi);
    for (const Condition &condition : domain.conditions)
      llvm::append_values(exprs, condition.lhs, condition.rhs);
  }
  Search search = hasManySizes() ? searchOf(exprs) : base();
  for (const IndexExpr &goal : goals)
    search.declare(goal);
  search.addDomain(domain);
  return search;
}

//===----------------------------------------------------------------------===//
// Counterexamples
//===----------------------------------------------------------------------===//

Trial Prover::State::tryAt(const Condition &condition, const Domain &domain,
                           llvm::ArrayRef<IndexExpr> mentioned, unsigned sizesLimit) {
  std::vector<IndexExpr> used(mentioned.begin(), mentioned.end());
  used.push_back(condition.lhs);
  used.push_back(condition.rhs);
  for (const RangedVar &var : domain.vars) {
    used.push_back(var.lo);
    used.push_back(var.hi);
  }
  for (const Condition &c : domain.conditions) {
    used.push_back(c.lhs);
    used.push_back(c.rhs);
  }
  SizeSampler sampler(facts, used);
  PointWalker walker(sampler, domain, used);
  Trial trial;
  std::optional<IndexProgram> lhs = sampler.compile(condition.lhs);
  std::optional<IndexProgram> rhs = sampler.compile(condition.rhs);
  std::vector<std::optional<IndexProgram>> others;
  for (const IndexExpr &expr : mentioned)
    others.push_back(sampler.compile(expr));
  if (!lhs || !rhs ||
      !llvm::all_of(others, [](const auto &program) { return program.has_value(); }))
    return trial;
  for (unsigned i = 0; i < sizesLimit && sampler.next(); ++i) {
    bool any = false, fails = false;
    bool complete = walker.walk(pointsEach, [&] {
      std::optional<bool> holds = evaluate(condition.kind, *lhs, *rhs, sampler.slots);
      if (!holds || !llvm::all_of(others, [&](const auto &p) { return p->run(sampler.slots); }))
        return true; // says nothing here
      any = true;
      if (*holds)
        return true;
      fails = true;
      if (!trial.counterexample) {
        trial.counterexample.emplace();
        trial.counterexample->sizes = sampler.sizes();
        trial.counterexample->point = walker.point();
        trial.counterexample->value = *lhs->run(sampler.slots);
      }
      return false;
    });
    trial.failing += fails;
    trial.passing += any && !fails;
    trial.exhaustive = !sampler.hasSymbols() && (complete || fails);
  }
  return trial;
}

/// What holds where `condition` does not, in a form that can be proved.
static std::optional<Condition> negation(const Condition &condition) {
  switch (condition.kind) {
  case Condition::NonNegative:
    return Condition::nonNegative(-condition.lhs - 1);
  case Condition::Zero:
    return Condition::nonZero(condition.lhs);
  case Condition::NonZero:
    return Condition::zero(condition.lhs);
  case Condition::Divides:
    return std::nullopt;
  }
  return std::nullopt;
}

bool Prover::State::alwaysAtCorner(llvm::ArrayRef<Condition> conditions, const Domain &domain,
                                   const Counterexample &example) {
  if (domain.vars.size() > 16)
    return false;
  std::map<IndexVar, int64_t> value;
  for (const auto &[name, size] : example.sizes)
    value[IndexVar::symbol(name)] = size;
  for (const auto &[position, at] : example.point)
    value[IndexVar::dim(position)] = at;
  auto valueOf = [&](const IndexVar &var) -> std::optional<int64_t> {
    auto found = value.find(var);
    return found == value.end() ? std::nullopt : std::optional(found->second);
  };
  llvm::SmallVector<IndexExpr> mentioned;
  for (const Condition &condition : conditions)
    llvm::append_values(mentioned, condition.lhs, condition.rhs);
  for (const RangedVar &var : domain.vars)
    llvm::append_values(mentioned, var.lo, var.hi);
  auto isSize = [](const RangedVar &var) { return var.lo.isSize() && var.hi.isSize(); };

  // Where a range of the example has one element, both ends are tried, in all combinations for the
  // first few such variables.
  for (unsigned combination = 0; combination < 16; ++combination) {
    unsigned ambiguous = 0;
    std::map<unsigned, IndexExpr> corner;
    auto atCorner = [&](const IndexExpr &expr) {
      return expr.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
        auto found = corner.find(var.position());
        if (var.isSymbol() || found == corner.end())
          return std::nullopt;
        return found->second;
      });
    };
    Search search = searchIn(Domain(), mentioned);
    bool good = true;
    for (const RangedVar &var : domain.vars)
      if (isSize(var))
        search.assume(Condition::lessThan(var.lo, var.hi));
    for (const RangedVar &var : domain.vars) {
      std::optional<int64_t> lo = var.lo.evaluate(valueOf), hi = var.hi.evaluate(valueOf);
      if (!lo || !hi)
        return false;
      int64_t at = value[IndexVar::dim(var.position)];
      bool high = at != *lo;
      if (!high && at == *hi - 1)
        high = (combination >> std::min(ambiguous++, 4u)) & 1;
      IndexExpr low = atCorner(var.lo), end = atCorner(var.hi);
      if (!isSize(var))
        good &= search.prove(Condition::lessThan(low, end));
      corner[var.position] = high ? end - 1 : low;
    }
    for (const Condition &c : domain.conditions)
      good &= search.prove(Condition{c.kind, atCorner(c.lhs), atCorner(c.rhs)});
    if (good && llvm::all_of(conditions, [&](const Condition &c) {
          return search.prove(Condition{c.kind, atCorner(c.lhs), atCorner(c.rhs)});
        }))
      return true;
    if (combination + 1 >= 1u << std::min(ambiguous, 4u))
      break;
  }
  return false;
}

void Prover::State::fillConditions(Search &search, llvm::ArrayRef<IndexExpr> goals,
                                   const Domain &domain, Outcome &outcome) {
  llvm::SmallVector<Poly, 4> rest;
  bool exact = domain.conditions.empty();
  for (const RangedVar &var : domain.vars)
    exact &= var.lo.isSize() && var.hi.isSize();
  for (const IndexExpr &goal : goals)
    if (!search.residuals(search.poly(goal), rest, exact))
      return;
  if (rest.size() > maxConditions)
    return;
  for (const Poly &p : rest)
    outcome.suffices.push_back(Condition::nonNegative(search.expr(p)));
  outcome.necessary = exact && !rest.empty();
}

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

Outcome Prover::State::decide(Search &search, const Condition &condition,
                              llvm::ArrayRef<IndexExpr> goals, const Domain &domain,
                              llvm::ArrayRef<IndexExpr> mentioned) {
  Outcome outcome;
  Trial trial = tryAt(condition, domain, mentioned, quickSizes);
  if (!trial.failing) {
    if (search.prove(condition)) {
      outcome.verdict = Verdict::Proved;
      return outcome;
    }
    if (trial.exhaustive) {
      // Constant sizes, every point visited, and none failed.
      outcome.verdict = Verdict::Proved;
      return outcome;
    }
    trial = tryAt(condition, domain, mentioned, manySizes);
  }
  if (trial.failing) {
    outcome.counterexample = trial.counterexample;
    std::optional<Condition> opposite = negation(condition);
    bool always = trial.exhaustive || (!trial.passing && opposite &&
                                       alwaysAtCorner(*opposite, domain, *trial.counterexample));
    outcome.verdict = always ? Verdict::Refuted : Verdict::Depends;
    // Without a proof, what fails everywhere (an error where failing somewhere is a guard) is tried
    // harder.
    outcome.failsEverywhereTried =
        always || (!trial.passing && !tryAt(condition, domain, mentioned, manySizes).passing);
  }
  if (outcome.verdict != Verdict::Refuted)
    fillConditions(search, goals, domain, outcome);
  return outcome;
}

Outcome Prover::holds(const Condition &condition, const Domain &domain) {
  if (isTooLarge({condition.lhs, condition.rhs}, domain))
    return Outcome();
  Search search = state->searchIn(domain, {condition.lhs, condition.rhs});
  if (search.prove(condition, Search::Quick)) {
    Outcome outcome;
    outcome.verdict = Verdict::Proved;
    return outcome;
  }
  return state->decide(search, condition, goalsOf(condition), domain, {});
}

Outcome Prover::inBounds(const IndexExpr &expr, const IndexExpr &size, const Domain &domain) {
  if (isTooLarge({expr, size}, domain))
    return Outcome();
  Search search = state->searchIn(domain, {expr, size});
  Poly value = search.poly(expr), rest = search.poly(size) - Poly(1) - value;
  Outcome result;
  result.verdict = Verdict::Proved;
  result.necessary = true;
  for (bool isUpper : {false, true}) {
    if (search.prove(isUpper ? rest : value, Search::Quick))
      continue;
    Condition side = isUpper ? Condition::lessThan(expr, size) : Condition::nonNegative(expr);
    Outcome one = state->decide(search, side, goalsOf(side), domain, {expr, size});
    if (one.proved())
      continue;
    // The worse of the two sides; Refuted beats Depends beats Unknown.
    auto rank = [](Verdict v) {
      return v == Verdict::Refuted ? 3 : v == Verdict::Depends ? 2 : v == Verdict::Unknown ? 1 : 0;
    };
    bool both = !result.proved();
    if (rank(one.verdict) > rank(result.verdict)) {
      result.verdict = one.verdict;
      result.counterexample = one.counterexample;
      result.failsEverywhereTried = one.failsEverywhereTried;
    }
    bool haveList = !one.suffices.empty() && (!both || !result.suffices.empty());
    if (haveList)
      result.suffices.insert(result.suffices.end(), one.suffices.begin(), one.suffices.end());
    else
      result.suffices.clear();
    result.necessary &= one.necessary && haveList;
  }
  result.necessary &= !result.suffices.empty();
  if (result.counterexample) {
    std::map<IndexVar, int64_t> value;
    for (const auto &[name, v] : result.counterexample->sizes)
      value[IndexVar::symbol(name)] = v;
    for (const auto &[position, v] : result.counterexample->point)
      value[IndexVar::dim(position)] = v;
    auto valueOf = [&](const IndexVar &var) -> std::optional<int64_t> {
      auto found = value.find(var);
      return found == value.end() ? std::nullopt : std::optional(found->second);
    };
    result.counterexample->value = expr.evaluate(valueOf).value_or(0);
    result.counterexample->bound = size.evaluate(valueOf).value_or(0);
  }
  return result;
}

bool Prover::proves(const Condition &condition, const Domain &domain) {
  if (isTooLarge({condition.lhs, condition.rhs}, domain))
    return false;
  Search search = state->searchIn(domain, {condition.lhs, condition.rhs});
  return search.prove(condition);
}

bool Prover::provesInBounds(const IndexExpr &expr, const IndexExpr &size, const Domain &domain) {
  if (isTooLarge({expr, size}, domain))
    return false;
  Search search = state->searchIn(domain, {expr, size});
  return search.prove(Condition::nonNegative(expr)) &&
         search.prove(Condition::lessThan(expr, size));
}

Range Prover::range(const IndexExpr &expr, const Domain &domain) {
  if (isTooLarge(expr, domain))
    return Range();
  Search search = state->searchIn(domain, {expr});
  Poly p = search.poly(expr);
  Range range;
  if (std::optional<Poly> min = search.extreme(p, false))
    range.min = search.expr(*min);
  if (std::optional<Poly> max = search.extreme(p, true))
    range.max = search.expr(*max);
  return range;
}

IndexExpr Prover::simplify(const IndexExpr &expr, const Domain &domain) {
  if (isTooLarge(expr, domain))
    return expr;
  Search search = state->searchIn(domain, {expr});
  Poly p = search.poly(expr);
  return p.badResult() ? expr : search.expr(p);
}
