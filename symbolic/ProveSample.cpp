//===- ProveSample.cpp - Statements at small sizes ------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "symbolic/ProveSample.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

using namespace tegula;

namespace {
constexpr unsigned maxAttempts = 160, maxSymbols = 40, repairRounds = 12;
} // namespace

std::optional<bool> tegula::evaluate(Condition::Kind kind, const IndexProgram &lhs,
                                     const IndexProgram &rhs, llvm::ArrayRef<int64_t> slots) {
  std::optional<int64_t> value = lhs.run(slots);
  if (!value)
    return std::nullopt;
  switch (kind) {
  case Condition::NonNegative:
    return *value >= 0;
  case Condition::Zero:
    return *value == 0;
  case Condition::NonZero:
    return *value != 0;
  case Condition::Divides: {
    std::optional<int64_t> divisor = rhs.run(slots);
    if (!divisor)
      return std::nullopt;
    return *divisor != 0 && (*divisor == -1 || *value % *divisor == 0);
  }
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

SizeSampler::SizeSampler(const SizeFacts &given, llvm::ArrayRef<IndexExpr> used) {
  std::set<IndexVar> symbols;
  auto addSymbols = [&](const IndexExpr &expr) {
    bool added = false;
    for (const IndexVar &var : expr.variables())
      added |= var.isSymbol() && symbols.insert(var).second;
    return added;
  };
  for (const IndexExpr &expr : used)
    addSymbols(expr);
  std::vector<bool> takenFacts(given.facts.size(), false);
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto &[name, definition] : given.definitions)
      if (symbols.count(IndexVar::symbol(name)))
        changed |= addSymbols(definition);
    for (size_t i = 0; i < given.facts.size(); ++i) {
      const Condition &fact = given.facts[i];
      auto touches = [&](const IndexExpr &expr) {
        return llvm::any_of(expr.variables(), [&](const IndexVar &v) { return symbols.count(v); });
      };
      if (takenFacts[i] || (!touches(fact.lhs) && !touches(fact.rhs)))
        continue;
      takenFacts[i] = changed = true;
      addSymbols(fact.lhs);
      addSymbols(fact.rhs);
    }
  }
  if (symbols.size() > maxSymbols) {
    usable = false;
    return;
  }
  std::map<IndexVar, IndexExpr> definitions;
  for (const auto &[name, definition] : given.definitions)
    definitions.try_emplace(IndexVar::symbol(name), definition);
  for (const IndexVar &var : symbols) {
    slotNumber[var] = slots.size();
    if (!definitions.count(var))
      freeSlots.push_back(slots.size());
    isSigned.push_back(llvm::is_contained(given.signedSymbols, var.name()));
    slots.push_back(0);
  }
  // Free symbols behind each slot, to know what a fact can be repaired with.
  std::map<unsigned, std::set<unsigned>> freeBehind;
  for (unsigned slot : freeSlots)
    freeBehind[slot] = {slot};
  auto behind = [&](const IndexExpr &expr) {
    std::set<unsigned> result;
    for (const IndexVar &var : expr.variables())
      if (auto slot = slotOf(var))
        result.insert(freeBehind[*slot].begin(), freeBehind[*slot].end());
    return result;
  };
  for (const auto &[name, definition] : given.definitions) {
    std::optional<unsigned> slot = slotOf(IndexVar::symbol(name));
    if (!slot)
      continue;
    std::optional<IndexProgram> program = compile(definition);
    usable &= program.has_value();
    if (!program)
      return;
    derived.push_back({*slot, std::move(*program)});
    freeBehind[*slot] = behind(definition);
  }
  for (size_t i = 0; i < given.facts.size(); ++i) {
    if (!takenFacts[i])
      continue;
    const Condition &fact = given.facts[i];
    std::optional<IndexProgram> lhs = compile(fact.lhs), rhs = compile(fact.rhs);
    usable &= lhs && rhs;
    if (!usable)
      return;
    std::set<unsigned> free = behind(fact.lhs), more = behind(fact.rhs);
    free.insert(more.begin(), more.end());
    facts.push_back({fact.kind, std::move(*lhs), std::move(*rhs), {free.begin(), free.end()}});
  }
}

std::optional<unsigned> SizeSampler::slotOf(const IndexVar &var) const {
  auto found = slotNumber.find(var);
  return found == slotNumber.end() ? std::nullopt : std::optional(found->second);
}

std::optional<IndexProgram> SizeSampler::compile(const IndexExpr &expr) const {
  return IndexProgram::compile(expr, [&](const IndexVar &var) { return slotOf(var); });
}

void SizeSampler::addDim(unsigned position) {
  if (slotNumber.try_emplace(IndexVar::dim(position), slots.size()).second)
    slots.push_back(0);
}

int64_t SizeSampler::random(int64_t below) {
  randomState ^= randomState << 13;
  randomState ^= randomState >> 7;
  randomState ^= randomState << 17;
  return (randomState >> 11) % below;
}

bool SizeSampler::derive() {
  for (auto &[slot, program] : derived) {
    std::optional<int64_t> value = program.run(slots);
    if (!value)
      return false;
    slots[slot] = *value;
  }
  return true;
}

bool SizeSampler::holds(const Fact &fact) const {
  return evaluate(fact.kind, fact.lhs, fact.rhs, slots).value_or(false);
}

/// Changes one free symbol so that `measure` becomes `wanted` (or more), going by its slope.
bool SizeSampler::nudge(const Fact &fact, llvm::function_ref<std::optional<int64_t>()> measure,
                        int64_t wanted, bool orMore) {
  std::optional<int64_t> now = measure();
  if (!now)
    return false;
  size_t first = random(fact.free.size());
  for (size_t i = 0; i < fact.free.size(); ++i) {
    unsigned slot = fact.free[(first + i) % fact.free.size()];
    int64_t before = slots[slot];
    for (int64_t step : {1, 2, 4, -1}) {
      slots[slot] = before + step;
      std::optional<int64_t> then = derive() ? measure() : std::nullopt;
      if (!then || *then == *now)
        continue;
      __int128 slope = __int128(*then) - *now, lack = __int128(wanted) - *now;
      __int128 times = lack / slope + (lack % slope != 0);
      __int128 target = before + step * times;
      if (times <= 0 || target > 64 || target < -64 || (target < 0 && !isSigned[slot]))
        continue;
      slots[slot] = target;
      std::optional<int64_t> reached = derive() ? measure() : std::nullopt;
      if (reached && (*reached == wanted || (orMore && *reached >= wanted)))
        return true;
    }
    slots[slot] = before;
    derive();
  }
  return false;
}

bool SizeSampler::repair(const Fact &fact) {
  if (fact.free.empty())
    return false;
  auto lhs = [&] { return fact.lhs.run(slots); };
  switch (fact.kind) {
  case Condition::NonNegative:
    return nudge(fact, lhs, 0, true);
  case Condition::Zero:
    return nudge(fact, lhs, 0, false);
  case Condition::NonZero:
    return nudge(fact, lhs, 1, true);
  case Condition::Divides: {
    std::optional<int64_t> value = lhs(), divisor = fact.rhs.run(slots);
    constexpr int64_t large = int64_t(1) << 60;
    if (!value || !divisor || *value > large || *value < -large || *divisor > large ||
        *divisor < -large)
      return false;
    if (*divisor == 0)
      return nudge(fact, [&] { return fact.rhs.run(slots); }, 1, true);
    int64_t size = std::abs(*divisor);
    return nudge(fact, lhs, ((*value + size - 1) / size + random(2)) * size, false);
  }
  }
  return false;
}

bool SizeSampler::next() {
  if (!usable || (freeSlots.empty() && attempt))
    return false;
  while (attempt < maxAttempts) {
    unsigned now = attempt++;
    static constexpr int64_t sizes[] = {1, 2, 3, 4, 5, 7, 6, 8, 9, 11, 12, 16};
    for (unsigned slot : freeSlots) {
      if (now < 3)
        slots[slot] = now + 1;
      else
        slots[slot] = sizes[random(std::min<unsigned>(2 + now / 4, std::size(sizes)))];
      if (now >= 8 && random(16) == 0)
        slots[slot] = isSigned[slot] ? -1 - random(2) : 0;
    }
    bool good = false;
    for (unsigned round = 0; round < repairRounds && !good; ++round) {
      if (!derive()) {
        for (unsigned slot : freeSlots)
          if (slots[slot] == 0)
            slots[slot] = 1;
        if (!derive())
          break;
      }
      good = true;
      for (const Fact &fact : facts)
        if (!holds(fact)) {
          good = false;
          repair(fact);
        }
    }
    if (!good || (!facts.empty() && !llvm::all_of(facts, [&](const Fact &f) { return holds(f); })))
      continue;
    std::vector<int64_t> chosen;
    for (unsigned slot : freeSlots)
      chosen.push_back(slots[slot]);
    if (llvm::is_contained(seen, chosen))
      continue;
    seen.push_back(std::move(chosen));
    return true;
  }
  return false;
}

std::vector<std::pair<std::string, int64_t>> SizeSampler::sizes() const {
  std::vector<std::pair<std::string, int64_t>> result;
  for (const auto &[var, slot] : slotNumber)
    if (var.isSymbol())
      result.push_back({var.name().str(), slots[slot]});
  return result;
}

//===----------------------------------------------------------------------===//
// Points
//===----------------------------------------------------------------------===//

PointWalker::PointWalker(SizeSampler &sampler, const Domain &domain,
                         llvm::ArrayRef<IndexExpr> others)
    : sampler(sampler) {
  std::set<unsigned> listed, arbitrary;
  for (const RangedVar &var : domain.vars)
    listed.insert(var.position);
  auto collect = [&](const IndexExpr &expr) {
    for (const IndexVar &var : expr.variables())
      if (!var.isSymbol() && !listed.count(var.position()))
        arbitrary.insert(var.position());
  };
  for (const RangedVar &var : domain.vars)
    collect(var.lo), collect(var.hi);
  for (const Condition &condition : domain.conditions)
    collect(condition.lhs), collect(condition.rhs);
  llvm::for_each(others, collect);

  auto addAxis = [&](unsigned position) -> Axis & {
    sampler.addDim(position);
    axes.push_back({position, *sampler.slotOf(IndexVar::dim(position)), false, {}, {}});
    return axes.back();
  };
  for (unsigned position : arbitrary)
    addAxis(position);
  for (const RangedVar &var : domain.vars) {
    Axis &axis = addAxis(var.position);
    axis.lo = sampler.compile(var.lo);
    axis.hi = sampler.compile(var.hi);
    axis.isSize = axis.lo && axis.hi && var.lo.isSize() && var.hi.isSize();
    usable &= axis.lo && axis.hi;
  }
  for (const Condition &condition : domain.conditions) {
    std::optional<IndexProgram> lhs = sampler.compile(condition.lhs);
    std::optional<IndexProgram> rhs = sampler.compile(condition.rhs);
    usable &= lhs && rhs;
    if (usable)
      tests.push_back({condition.kind, std::move(*lhs), std::move(*rhs)});
  }
}

bool PointWalker::visitFrom(size_t index, llvm::function_ref<bool()> visit) {
  if (index == axes.size()) {
    if (left == 0) {
      complete = false;
      return false;
    }
    --left;
    for (const Test &test : tests)
      if (!evaluate(test.kind, test.lhs, test.rhs, sampler.slots).value_or(false))
        return true;
    return visit();
  }
  const Axis &axis = axes[index];
  int64_t lo = -1, hi = 5;
  if (axis.lo) {
    std::optional<int64_t> low = axis.lo->run(sampler.slots), high = axis.hi->run(sampler.slots);
    if (!low || !high)
      return true; // no values, no points
    lo = *low, hi = *high;
  } else {
    complete = false;
  }
  constexpr int64_t edge = 8;
  if (lo > INT64_MAX - edge || hi < INT64_MIN + edge) {
    complete = false;
    return true;
  }
  for (int64_t value = lo; value < hi; ++value) {
    if (value == lo + edge && hi - edge > value) {
      value = hi - edge; // the middle of a long range
      complete = false;
    }
    if (nodesLeft == 0) {
      complete = false;
      return false;
    }
    --nodesLeft;
    sampler.slots[axis.slot] = value;
    if (!visitFrom(index + 1, visit))
      return false;
  }
  return true;
}

bool PointWalker::walk(unsigned limit, llvm::function_ref<bool()> visit) {
  if (!usable)
    return false;
  left = limit;
  nodesLeft = 4 * limit;
  complete = true;
  // One empty range of sizes alone empties the domain; found below it would cost all the others.
  for (const Axis &axis : axes)
    if (axis.isSize) {
      std::optional<int64_t> low = axis.lo->run(sampler.slots), high = axis.hi->run(sampler.slots);
      if (low && high && *low >= *high)
        return true;
    }
  return visitFrom(0, visit) && complete;
}

std::vector<std::pair<unsigned, int64_t>> PointWalker::point() const {
  std::vector<std::pair<unsigned, int64_t>> result;
  for (const Axis &axis : axes)
    result.push_back({axis.position, sampler.slots[axis.slot]});
  return result;
}
