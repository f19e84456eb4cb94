//===- ProveImages.cpp - Which elements equations write -------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two equations write no common element, one equation writes none twice. Coverage is in
// ProveCover.cpp.
//
//===----------------------------------------------------------------------===//

#include "symbolic/ProveState.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

using namespace tegula;

namespace {
constexpr unsigned imageSizes = 40, imagePoints = 1500;

/// Shifts the dims of an image out of the way of another's.
Image renamed(const Image &image, unsigned offset, llvm::ArrayRef<unsigned> kept) {
  auto rename = [&](const IndexExpr &expr) {
    return expr.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
      if (var.isSymbol() || llvm::is_contained(kept, var.position()))
        return std::nullopt;
      return IndexExpr::dim(var.position() + offset);
    });
  };
  Image result;
  for (const RangedVar &var : image.domain.vars) {
    bool keep = llvm::is_contained(kept, var.position);
    result.domain.add(keep ? var.position : var.position + offset, rename(var.lo), rename(var.hi));
  }
  for (const Condition &c : image.domain.conditions)
    result.domain.conditions.push_back({c.kind, rename(c.lhs), rename(c.rhs)});
  for (const IndexExpr &subscript : image.subscripts)
    result.subscripts.push_back(rename(subscript));
  return result;
}

unsigned pastDims(const Image &image) {
  unsigned result = 0;
  auto see = [&](const IndexExpr &expr) {
    for (const IndexVar &var : expr.variables())
      if (!var.isSymbol())
        result = std::max(result, var.position() + 1);
  };
  for (const RangedVar &var : image.domain.vars) {
    result = std::max(result, var.position + 1);
    see(var.lo), see(var.hi);
  }
  for (const Condition &c : image.domain.conditions)
    see(c.lhs), see(c.rhs);
  llvm::for_each(image.subscripts, see);
  return result;
}

Domain both(const Domain &a, const Domain &b) {
  Domain result = a;
  for (const RangedVar &var : b.vars)
    if (llvm::none_of(a.vars, [&](const RangedVar &v) { return v.position == var.position; }))
      result.vars.push_back(var);
  result.conditions.append(b.conditions.begin(), b.conditions.end());
  return result;
}

std::vector<IndexExpr> expressionsOf(const Image &image) {
  std::vector<IndexExpr> result = image.subscripts;
  for (const RangedVar &var : image.domain.vars) {
    result.push_back(var.lo);
    result.push_back(var.hi);
  }
  for (const Condition &c : image.domain.conditions) {
    result.push_back(c.lhs);
    result.push_back(c.rhs);
  }
  return result;
}

/// The subscripts of an image, ready to run.
class ImagePrograms {
public:
  ImagePrograms(SizeSampler &sampler, const Image &image)
      : sampler(sampler), walker(sampler, image.domain, image.subscripts) {
    for (const IndexExpr &subscript : image.subscripts)
      if (std::optional<IndexProgram> program = sampler.compile(subscript))
        programs.push_back(std::move(*program));
      else
        usable = false;
  }
  /// Visits the elements; true when it saw all of them.
  bool walk(llvm::function_ref<bool(llvm::ArrayRef<int64_t>)> visit) {
    return usable && walker.walk(imagePoints, [&] {
      llvm::SmallVector<int64_t, 6> element;
      for (const IndexProgram &program : programs) {
        std::optional<int64_t> value = program.run(sampler.slots);
        if (!value)
          return true;
        element.push_back(*value);
      }
      return visit(element);
    });
  }
  std::vector<std::pair<unsigned, int64_t>> point() const { return walker.point(); }

private:
  SizeSampler &sampler;
  PointWalker walker;
  std::vector<IndexProgram> programs;
  bool usable = true;
};

//===----------------------------------------------------------------------===//
// One-to-one subscripts
//===----------------------------------------------------------------------===//

/// Finds out which variables the values of the subscripts determine. `a*E + b` determines a and b
/// where 0 <= b < E: digits in a mixed radix.
class Determiner {
public:
  Determiner(Search &search, const Image &image) : search(search) {
    for (const RangedVar &var : image.domain.vars)
      pending.push_back({var.position, search.variable(IndexVar::dim(var.position))});
    for (const IndexExpr &subscript : image.subscripts)
      known.push_back(search.expand(search.poly(subscript)));
  }

  bool all() {
    for (bool changed = true; changed && !pending.empty();) {
      changed = false;
      for (const Poly &value : known)
        changed |= determine(value);
      llvm::erase_if(pending,
                     [&](auto &p) { return isDetermined(p.second) || isSingle(p.second); });
    }
    return pending.empty();
  }
  llvm::ArrayRef<std::pair<unsigned, unsigned>> undetermined() const { return pending; }

private:
  struct Digit {
    Poly weight; // its absolute value
    Poly span;   // largest minus smallest digit
    unsigned var;
  };

  bool isDetermined(unsigned var) {
    if (llvm::is_contained(determined, var))
      return true;
    if (!search.isVarying(var))
      return true;
    // A quotient of what is determined is, too.
    if (const auto *ratio = search.ratioOf(var))
      return allDetermined(ratio->first) && allDetermined(ratio->second);
    return false;
  }
  bool allDetermined(const Poly &p) {
    for (auto [m, coefficient] : p.terms)
      for (; m; m <<= 8)
        if (!isDetermined(monomial::top(m)))
          return false;
    return true;
  }
  bool isSingle(unsigned var) {
    Poly v = Poly::variable(var);
    std::optional<Poly> low = search.extreme(v, false), high = search.extreme(v, true);
    if (!low || !high || !search.prove(*low - *high, Search::Quick))
      return false;
    determined.push_back(var);
    return true;
  }

  bool determine(const Poly &value) {
    if (value.badResult())
      return false;
    llvm::SmallVector<unsigned, 4> open;
    for (auto [m, coefficient] : value.terms)
      for (; m; m <<= 8)
        if (unsigned var = monomial::top(m); !isDetermined(var) && !llvm::is_contained(open, var))
          open.push_back(var);
    if (open.empty() || open.size() > 5)
      return false;
    std::vector<Digit> digits;
    for (unsigned var : open) {
      llvm::SmallVector<Poly, 3> parts = value.coefficients(var);
      if (parts.size() != 2 || !allDetermined(parts[1]) || search.varies(parts[1]))
        return false;
      Poly weight = parts[1];
      if (!search.prove(weight, Search::Quick))
        weight = -weight;
      Digit digit{weight, Poly(), var};
      if (open.size() > 1) {
        Poly v = Poly::variable(var);
        std::optional<Poly> low = search.extreme(v, false), high = search.extreme(v, true);
        if (!low || !high)
          return false;
        digit.span = *high - *low;
      }
      digits.push_back(std::move(digit));
    }
    llvm::SmallVector<bool, 5> used(digits.size(), false);
    if (!ordered(digits, used, Poly(), 0))
      return false;
    determined.append(open.begin(), open.end());
    return true;
  }

  /// The remaining digits, in some order, each weigh more than all before them together.
  bool ordered(llvm::ArrayRef<Digit> digits, llvm::MutableArrayRef<bool> used, const Poly &below,
               unsigned count) {
    if (count == digits.size())
      return true;
    for (size_t i = 0; i < digits.size(); ++i) {
      if (used[i] || !search.prove(digits[i].weight - below - Poly(1), Search::Quick))
        continue;
      used[i] = true;
      if (ordered(digits, used, below + digits[i].weight * digits[i].span, count + 1))
        return true;
      used[i] = false;
    }
    return false;
  }

  Search &search;
  std::vector<Poly> known;
  std::vector<std::pair<unsigned, unsigned>> pending; // position, variable
  llvm::SmallVector<unsigned, 8> determined;
};
} // namespace

Outcome Prover::injective(const Image &image) {
  if (isTooLarge(image.subscripts, image.domain))
    return Outcome();
  Outcome outcome;
  outcome.verdict = Verdict::Proved;
  Search search = state->searchIn(image.domain, image.subscripts);
  Determiner determiner(search, image);
  if (determiner.all())
    return outcome;

  // Two points with one element that differ in some variable: by symmetry the first has less there.
  unsigned offset = pastDims(image);
  Image other = renamed(image, offset, {});
  Domain pair = both(image.domain, other.domain);
  bool proved = true;
  for (auto [position, var] : determiner.undetermined()) {
    Search twice = state->searchIn(pair, image.subscripts);
    for (auto [mine, its] : llvm::zip_equal(image.subscripts, other.subscripts))
      twice.assume(Condition::equal(mine, its));
    twice.assume(Condition::lessThan(IndexExpr::dim(position), IndexExpr::dim(position + offset)));
    proved = proved && twice.prove(Poly(-1));
  }
  if (proved)
    return outcome;

  outcome.verdict = Verdict::Unknown;
  SizeSampler sampler(state->facts, expressionsOf(image));
  ImagePrograms programs(sampler, image);
  unsigned passing = 0;
  bool exhaustive = false;
  for (unsigned i = 0; i < imageSizes && sampler.next(); ++i) {
    std::map<std::vector<int64_t>, std::vector<std::pair<unsigned, int64_t>>> seen;
    bool fails = false;
    bool complete = programs.walk([&](llvm::ArrayRef<int64_t> element) {
      auto [entry, isNew] = seen.try_emplace(element.vec(), programs.point());
      if (isNew)
        return true;
      fails = true;
      if (!outcome.counterexample) {
        outcome.counterexample.emplace();
        outcome.counterexample->sizes = sampler.sizes();
        outcome.counterexample->point = entry->second;
        outcome.counterexample->other = programs.point();
      }
      return false;
    });
    passing += !fails && !seen.empty();
    exhaustive = !sampler.hasSymbols() && (complete || fails);
  }
  outcome.failsEverywhereTried = outcome.counterexample && !passing;
  if (outcome.counterexample)
    outcome.verdict = exhaustive ? Verdict::Refuted : Verdict::Depends;
  else if (exhaustive)
    outcome.verdict = Verdict::Proved;
  return outcome;
}

//===----------------------------------------------------------------------===//
// Disjoint images
//===----------------------------------------------------------------------===//

/// Two subscripts that are never equal because they differ in a low digit: w*a + r and w*b + s with
/// r and s in [0, w) meet only where r is s.
static bool differInLowDigit(Search &search, const Poly &mine, const Poly &its) {
  llvm::SmallVector<Poly, 4> weights;
  for (auto [m, coefficient] : mine.terms)
    for (Monomial rest = m; rest; rest <<= 8)
      if (unsigned var = monomial::top(rest); search.isVarying(var))
        if (llvm::SmallVector<Poly, 3> parts = mine.coefficients(var);
            parts.size() == 2 && !search.varies(parts[1]) && !llvm::is_contained(weights, parts[1]))
          weights.push_back(parts[1]);
  for (const Poly &weight : weights) {
    Poly low = mine.divide(weight).second, other = its.divide(weight).second;
    auto isDigit = [&](const Poly &p) {
      return search.prove(p, Search::Quick) && search.prove(weight - Poly(1) - p, Search::Quick);
    };
    bool differ = search.prove(other - low - Poly(1), Search::Quick) ||
                  search.prove(low - other - Poly(1), Search::Quick);
    if (differ && isDigit(low) && isDigit(other))
      return true;
  }
  return false;
}

Outcome Prover::disjoint(const Image &a, const Image &given, llvm::ArrayRef<unsigned> shared) {
  assert(a.subscripts.size() == given.subscripts.size() && "images in tensors of different rank");
  if (isTooLarge(a.subscripts, a.domain) || isTooLarge(given.subscripts, given.domain))
    return Outcome();
  Outcome outcome;
  outcome.verdict = Verdict::Proved;
  Image b = renamed(given, pastDims(a), shared);
  Domain pair = both(a.domain, b.domain);
  std::vector<IndexExpr> subscripts = a.subscripts;
  subscripts.insert(subscripts.end(), b.subscripts.begin(), b.subscripts.end());

  Search apart = state->searchIn(pair, subscripts);
  llvm::SmallVector<Poly, 4> gaps;
  for (auto [mine, its] : llvm::zip_equal(a.subscripts, b.subscripts)) {
    Poly gap = apart.poly(its) - apart.poly(mine);
    if (apart.prove(gap - Poly(1), Search::Quick) || apart.prove(-gap - Poly(1), Search::Quick))
      return outcome;
    if (differInLowDigit(apart, apart.expand(apart.poly(mine)), apart.expand(apart.poly(its))))
      return outcome;
    gaps.push_back(gap);
  }
  Search meeting = apart;
  for (auto [mine, its] : llvm::zip_equal(a.subscripts, b.subscripts))
    meeting.assume(Condition::equal(mine, its));
  if (meeting.prove(Poly(-1)))
    return outcome;

  outcome.verdict = Verdict::Unknown;
  std::vector<IndexExpr> used = expressionsOf(a), more = expressionsOf(b);
  used.insert(used.end(), more.begin(), more.end());
  SizeSampler sampler(state->facts, used);
  ImagePrograms first(sampler, a), second(sampler, b);
  unsigned passing = 0;
  bool exhaustive = false;
  // A shared variable is one more coordinate.
  auto withShared = [&](llvm::ArrayRef<int64_t> element) {
    std::vector<int64_t> key = element.vec();
    for (unsigned position : shared)
      key.push_back(sampler.slots[*sampler.slotOf(IndexVar::dim(position))]);
    return key;
  };
  for (unsigned i = 0; i < imageSizes && sampler.next(); ++i) {
    std::map<std::vector<int64_t>, std::vector<std::pair<unsigned, int64_t>>> seen;
    bool complete = first.walk([&](llvm::ArrayRef<int64_t> element) {
      seen.try_emplace(withShared(element), first.point());
      return true;
    });
    bool fails = false, any = false;
    complete &= second.walk([&](llvm::ArrayRef<int64_t> element) {
      any = true;
      auto found = seen.find(withShared(element));
      if (found == seen.end())
        return true;
      fails = true;
      if (!outcome.counterexample) {
        outcome.counterexample.emplace();
        outcome.counterexample->sizes = sampler.sizes();
        outcome.counterexample->point = found->second;
        outcome.counterexample->other = second.point();
      }
      return false;
    });
    passing += !fails && any && !seen.empty();
    exhaustive = !sampler.hasSymbols() && (complete || fails);
  }
  if (!outcome.counterexample) {
    if (exhaustive)
      outcome.verdict = Verdict::Proved;
    return outcome;
  }
  outcome.failsEverywhereTried = !passing;
  Counterexample example = *outcome.counterexample;
  example.point.insert(example.point.end(), example.other.begin(), example.other.end());
  std::vector<Condition> meet;
  for (auto [mine, its] : llvm::zip_equal(a.subscripts, b.subscripts))
    meet.push_back(Condition::equal(mine, its));
  bool always = exhaustive || (!passing && state->alwaysAtCorner(meet, pair, example));
  outcome.verdict = always ? Verdict::Refuted : Verdict::Depends;
  // The caller's names for the second point.
  for (auto &[position, value] : outcome.counterexample->other)
    if (!llvm::is_contained(shared, position))
      position -= pastDims(a);
  if (always)
    return outcome;

  // One gap kept open is enough.
  for (const Poly &gap : gaps)
    for (const Poly &goal : {gap - Poly(1), -gap - Poly(1)}) {
      llvm::SmallVector<Poly, 4> rest;
      bool exact = true;
      if (apart.residuals(goal, rest, exact) && rest.size() == 1) {
        outcome.suffices = {Condition::nonNegative(apart.expr(rest[0]))};
        return outcome;
      }
    }
  return outcome;
}
