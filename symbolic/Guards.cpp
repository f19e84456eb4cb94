//===- Guards.cpp - Sizes and guards of a launch --------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "symbolic/Guards.h"
#include "symbolic/IndexProgram.h"
#include "symbolic/Prove.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
#include <set>

using namespace tegula;

namespace {
// Points listed before and after a proof is tried.
constexpr uint64_t fewPoints = 1 << 12, manyPoints = 1 << 24;

using Wide = __int128;

struct Linear { // rest + sum of weight * variable
  IndexProgram rest;
  std::vector<IndexProgram> weights; // by variable of the box
};

struct CompiledGuard {
  IndexProgram lhs, rhs;
  std::vector<IndexProgram> lows, highs, conditions;
  /// Where the box is one of sizes alone, unfiltered, and lhs linear in its variables.
  std::optional<Linear> linear;
  unsigned highestSize = 0; // sizes used are below
};

IndexExpr withDim(const IndexExpr &expr, unsigned position, int64_t value) {
  return expr.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
    if (var.isSymbol() || var.position() != position)
      return std::nullopt;
    return IndexExpr(value);
  });
}
} // namespace

struct LaunchChecks::State {
  std::vector<SizeSpec> sizes;
  std::vector<GuardSpec> guards;
  std::map<std::string, unsigned, std::less<>> slotOfName;
  std::vector<std::optional<IndexProgram>> definitions;
  std::vector<CompiledGuard> compiled;
  unsigned slotCount = 0;

  enum class Answer { Holds, Fails, Unknown };
  Answer decide(unsigned index, std::vector<int64_t> &slots) const;
  Answer decideBox(unsigned index, std::vector<int64_t> &slots) const;
  /// Lists points; Unknown when there are more than `limit`.
  Answer list(const CompiledGuard &guard, std::vector<int64_t> &slots, size_t axis,
              uint64_t &limit) const;
  Answer prove(const GuardSpec &guard, std::vector<int64_t> &slots) const;
  std::string describe(unsigned index, llvm::ArrayRef<int64_t> slots) const;
  std::string sizesIn(llvm::ArrayRef<IndexExpr> exprs, llvm::ArrayRef<int64_t> slots,
                      unsigned known) const;
  GuardFailure sizeError(unsigned index, std::vector<int64_t> &slots) const;
  /// The first failure at sizes that are computed into `slots`, without its message.
  std::optional<GuardFailure> firstFailure(llvm::function_ref<int64_t(unsigned, unsigned)> dimOf,
                                           std::vector<int64_t> &slots) const;
  GuardFailure explained(const GuardFailure &failure, std::vector<int64_t> &slots) const;
};

LaunchChecks::LaunchChecks() : state(std::make_unique<State>()) {}
LaunchChecks::~LaunchChecks() = default;
LaunchChecks::LaunchChecks(LaunchChecks &&) noexcept = default;
LaunchChecks &LaunchChecks::operator=(LaunchChecks &&) noexcept = default;
llvm::ArrayRef<SizeSpec> LaunchChecks::sizes() const { return state->sizes; }
llvm::ArrayRef<GuardSpec> LaunchChecks::guards() const { return state->guards; }

std::optional<LaunchChecks> LaunchChecks::make(std::vector<SizeSpec> sizes,
                                               std::vector<GuardSpec> guards, std::string &error) {
  LaunchChecks checks;
  State &state = *checks.state;
  unsigned highest = 0;
  unsigned boxSize = 0; // dims that may stand in the expression at hand
  auto slotOf = [&](const IndexVar &var) -> std::optional<unsigned> {
    if (!var.isSymbol()) {
      if (var.position() >= boxSize)
        return std::nullopt;
      return sizes.size() + var.position();
    }
    auto found = state.slotOfName.find(var.name());
    if (found == state.slotOfName.end()) {
      error = "size '" + var.name().str() + "' is used before it is defined";
      return std::nullopt;
    }
    highest = std::max(highest, found->second + 1);
    return found->second;
  };
  auto compile = [&](const IndexExpr &expr) -> std::optional<IndexProgram> {
    std::optional<IndexProgram> program = IndexProgram::compile(expr, slotOf);
    if (!program && error.empty())
      error = "'" + expr.str() + "' cannot be computed at a launch";
    return program;
  };
  auto compileAll = [&](llvm::ArrayRef<IndexExpr> exprs, std::vector<IndexProgram> &out) {
    for (const IndexExpr &expr : exprs)
      if (std::optional<IndexProgram> program = compile(expr))
        out.push_back(std::move(*program));
      else
        return false;
    return true;
  };

  for (auto [i, size] : llvm::enumerate(sizes)) {
    state.definitions.emplace_back();
    if (!size.boundBy && !(state.definitions.back() = compile(size.definition)))
      return std::nullopt;
    if (!state.slotOfName.try_emplace(size.name, i).second) {
      error = "size '" + size.name + "' is defined twice";
      return std::nullopt;
    }
  }
  size_t largestBox = 0;
  for (const GuardSpec &guard : guards) {
    highest = 0;
    boxSize = guard.lows.size();
    largestBox = std::max(largestBox, guard.lows.size());
    if (guard.highs.size() != guard.lows.size()) {
      error = "a guard's box lacks a bound";
      return std::nullopt;
    }
    std::optional<IndexProgram> lhs = compile(guard.lhs), rhs = compile(guard.rhs);
    if (!lhs || !rhs)
      return std::nullopt;
    CompiledGuard compiled{std::move(*lhs), std::move(*rhs), {}, {}, {}, std::nullopt, 0};
    if (!compileAll(guard.lows, compiled.lows) || !compileAll(guard.highs, compiled.highs) ||
        !compileAll(guard.conditions, compiled.conditions))
      return std::nullopt;
    auto isSize = [](const IndexExpr &e) { return e.isSize(); };
    if (guard.kind == GuardSpec::InBounds && guard.conditions.empty() && guard.rhs.isSize() &&
        llvm::all_of(guard.lows, isSize) && llvm::all_of(guard.highs, isSize)) {
      std::vector<IndexExpr> weights;
      IndexExpr rest = guard.lhs;
      bool linear = true;
      for (unsigned k = 0; k < guard.lows.size(); ++k) {
        IndexExpr base = withDim(rest, k, 0), weight = withDim(rest, k, 1) - base;
        linear &= weight.isSize() && base + weight * IndexExpr::dim(k) == rest;
        weights.push_back(weight);
        rest = base;
      }
      std::vector<IndexProgram> programs;
      if (linear && compileAll(weights, programs))
        if (std::optional<IndexProgram> program = compile(rest))
          compiled.linear = Linear{std::move(*program), std::move(programs)};
    }
    compiled.highestSize = highest;
    state.compiled.push_back(std::move(compiled));
  }
  state.slotCount = sizes.size() + largestBox;
  state.sizes = std::move(sizes);
  state.guards = std::move(guards);
  error.clear();
  return checks;
}

std::optional<GuardFailure> LaunchChecks::run(llvm::function_ref<int64_t(unsigned, unsigned)> dimOf,
                                              llvm::SmallVectorImpl<int64_t> &values) const {
  std::vector<int64_t> slots;
  std::optional<GuardFailure> failure = state->firstFailure(dimOf, slots);
  values.assign(slots.begin(), slots.begin() + state->sizes.size());
  if (failure)
    return state->explained(*failure, slots);
  return std::nullopt;
}

std::optional<GuardFailure>
LaunchChecks::decide(llvm::function_ref<int64_t(unsigned, unsigned)> dimOf,
                     llvm::SmallVectorImpl<int64_t> &values) const {
  std::vector<int64_t> slots;
  std::optional<GuardFailure> failure = state->firstFailure(dimOf, slots);
  values.assign(slots.begin(), slots.begin() + state->sizes.size());
  return failure;
}

std::optional<GuardFailure>
LaunchChecks::State::firstFailure(llvm::function_ref<int64_t(unsigned, unsigned)> dimOf,
                                  std::vector<int64_t> &slots) const {
  slots.assign(slotCount, 0);
  for (unsigned i = 0; i < sizes.size(); ++i) {
    std::optional<int64_t> value = sizes[i].boundBy
                                       ? dimOf(sizes[i].boundBy->first, sizes[i].boundBy->second)
                                       : definitions[i]->run(slots);
    if (value)
      slots[i] = *value;
    if (!value || (sizes[i].boundBy && *value > maxBoundSize))
      return GuardFailure{GuardFailure::SizeError, i, ""};
  }
  for (unsigned i = 0; i < guards.size(); ++i) {
    Answer answer = decide(i, slots);
    if (answer != Answer::Holds)
      return GuardFailure{
          answer == Answer::Fails ? GuardFailure::Violated : GuardFailure::GuardError, i, ""};
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Deciding
//===----------------------------------------------------------------------===//

LaunchChecks::State::Answer LaunchChecks::State::decide(unsigned index,
                                                        std::vector<int64_t> &slots) const {
  const CompiledGuard &guard = compiled[index];
  auto answer = [](bool holds) { return holds ? Answer::Holds : Answer::Fails; };
  if (guards[index].kind == GuardSpec::InBounds)
    return decideBox(index, slots);
  std::optional<int64_t> lhs = guard.lhs.run(slots);
  if (!lhs)
    return Answer::Unknown;
  switch (guards[index].kind) {
  case GuardSpec::NonNegative:
    return answer(*lhs >= 0);
  case GuardSpec::Zero:
    return answer(*lhs == 0);
  case GuardSpec::NonZero:
    return answer(*lhs != 0);
  default:
    break;
  }
  std::optional<int64_t> rhs = guard.rhs.run(slots);
  if (!rhs)
    return Answer::Unknown;
  return answer(*rhs != 0 && (*rhs == -1 || *lhs % *rhs == 0));
}

LaunchChecks::State::Answer LaunchChecks::State::decideBox(unsigned index,
                                                           std::vector<int64_t> &slots) const {
  const CompiledGuard &guard = compiled[index];
  if (guard.linear) {
    // Largest and smallest at corners.
    std::optional<int64_t> rest = guard.linear->rest.run(slots), size = guard.rhs.run(slots);
    if (!rest && size == INT64_MAX)
      return Answer::Fails; // that a formula stays within 64 bits is what is asked
    if (!rest || !size)
      return Answer::Unknown;
    Wide least = *rest, most = *rest;
    std::vector<int64_t> leastAt, mostAt;
    for (auto [low, high, weight] :
         llvm::zip_equal(guard.lows, guard.highs, guard.linear->weights)) {
      std::optional<int64_t> lo = low.run(slots), hi = high.run(slots), w = weight.run(slots);
      if (!lo || !hi || !w)
        return Answer::Unknown;
      if (*lo >= *hi)
        return Answer::Holds; // no points
      leastAt.push_back(*w >= 0 ? *lo : *hi - 1);
      mostAt.push_back(*w >= 0 ? *hi - 1 : *lo);
      least += Wide(*w) * leastAt.back();
      most += Wide(*w) * mostAt.back();
    }
    if (least >= 0 && most < *size)
      return Answer::Holds;
    llvm::copy(least < 0 ? leastAt : mostAt, slots.begin() + sizes.size());
    return Answer::Fails;
  }
  uint64_t limit = fewPoints;
  Answer answer = list(guard, slots, 0, limit);
  if (answer != Answer::Unknown || limit)
    return answer;
  answer = prove(guards[index], slots);
  if (answer != Answer::Unknown)
    return answer;
  limit = manyPoints;
  return list(guard, slots, 0, limit);
}

LaunchChecks::State::Answer LaunchChecks::State::list(const CompiledGuard &guard,
                                                      std::vector<int64_t> &slots, size_t axis,
                                                      uint64_t &limit) const {
  if (axis == guard.lows.size()) {
    for (const IndexProgram &condition : guard.conditions) {
      std::optional<int64_t> value = condition.run(slots);
      if (!value)
        return Answer::Unknown;
      if (*value < 0)
        return Answer::Holds;
    }
    std::optional<int64_t> lhs = guard.lhs.run(slots), rhs = guard.rhs.run(slots);
    if (!lhs || !rhs)
      return Answer::Unknown;
    return *lhs >= 0 && *lhs < *rhs ? Answer::Holds : Answer::Fails;
  }
  std::optional<int64_t> lo = guard.lows[axis].run(slots), hi = guard.highs[axis].run(slots);
  if (!lo || !hi)
    return Answer::Unknown;
  for (int64_t value = *lo; value < *hi; ++value) {
    if (limit == 0)
      return Answer::Unknown;
    --limit;
    slots[sizes.size() + axis] = value;
    Answer answer = list(guard, slots, axis + 1, limit);
    if (answer != Answer::Holds)
      return answer;
  }
  return Answer::Holds;
}

LaunchChecks::State::Answer LaunchChecks::State::prove(const GuardSpec &guard,
                                                       std::vector<int64_t> &slots) const {
  auto atSizes = [&](const IndexExpr &expr) {
    return expr.substitute([&](const IndexVar &var) -> std::optional<IndexExpr> {
      if (!var.isSymbol())
        return std::nullopt;
      return IndexExpr(slots[slotOfName.find(var.name())->second]);
    });
  };
  Domain domain;
  for (auto [k, low, high] : llvm::enumerate(guard.lows, guard.highs))
    domain.add(k, atSizes(low), atSizes(high));
  for (const IndexExpr &condition : guard.conditions)
    domain.conditions.push_back(Condition::nonNegative(atSizes(condition)));
  Prover prover;
  Outcome outcome = prover.inBounds(atSizes(guard.lhs), atSizes(guard.rhs), domain);
  if (outcome.proved())
    return Answer::Holds;
  if (!outcome.counterexample)
    return Answer::Unknown;
  for (auto [position, value] : outcome.counterexample->point)
    if (position < guard.lows.size())
      slots[sizes.size() + position] = value;
  return Answer::Fails;
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

std::string LaunchChecks::State::sizesIn(llvm::ArrayRef<IndexExpr> exprs,
                                         llvm::ArrayRef<int64_t> slots, unsigned known) const {
  std::set<unsigned> used;
  for (const IndexExpr &expr : exprs)
    for (const IndexVar &var : expr.variables())
      if (var.isSymbol())
        used.insert(slotOfName.find(var.name())->second);
  std::string text;
  for (unsigned slot : used)
    if (slot < known)
      text += (text.empty() ? "" : ", ") + sizes[slot].name + " = " + std::to_string(slots[slot]);
  return text;
}

std::string LaunchChecks::State::describe(unsigned index, llvm::ArrayRef<int64_t> slots) const {
  const GuardSpec &guard = guards[index];
  std::vector<IndexExpr> exprs = {guard.lhs, guard.rhs};
  llvm::append_range(exprs, guard.lows);
  llvm::append_range(exprs, guard.highs);
  llvm::append_range(exprs, guard.conditions);
  std::string text = sizesIn(exprs, slots, sizes.size());
  if (guard.kind == GuardSpec::InBounds) {
    std::optional<int64_t> lhs = compiled[index].lhs.run(slots),
                           rhs = compiled[index].rhs.run(slots);
    if (lhs && rhs) {
      std::string point;
      for (size_t k = 0; k < guard.lows.size(); ++k)
        point += (k ? ", " : "") + std::to_string(slots[sizes.size() + k]);
      text += (text.empty() ? "" : "; ") + (point.empty() ? "" : "at (" + point + ") ") +
              "the subscript is " + std::to_string(*lhs) + ", the dim " + std::to_string(*rhs);
    }
  }
  std::string message = guard.message.empty() ? guard.str() : guard.message;
  return text.empty() ? message : message + " (" + text + ")";
}

GuardFailure LaunchChecks::State::explained(const GuardFailure &failure,
                                            std::vector<int64_t> &slots) const {
  unsigned index = failure.index;
  if (failure.kind != GuardFailure::SizeError)
    return {failure.kind, index,
            describe(index, slots) + (failure.kind == GuardFailure::Violated
                                          ? ""
                                          : ": cannot be decided for these sizes")};
  if (!sizes[index].boundBy)
    return sizeError(index, slots);
  return {GuardFailure::SizeError, index,
          "size " + sizes[index].name + " = " + std::to_string(slots[index]) +
              " is beyond 2^48, the largest dim"};
}

GuardFailure LaunchChecks::State::sizeError(unsigned index, std::vector<int64_t> &slots) const {
  // A guard on sizes that have values may say why this one has none.
  for (unsigned i = 0; i < guards.size(); ++i)
    if (compiled[i].highestSize <= index && guards[i].kind != GuardSpec::InBounds &&
        decide(i, slots) == Answer::Fails)
      return {GuardFailure::Violated, i, describe(i, slots)};
  const SizeSpec &size = sizes[index];
  std::string values = sizesIn(size.definition, slots, index);
  return {GuardFailure::SizeError, index,
          "size " + size.name + " = " + size.definition.str() +
              " has no value: it divides by 0 or leaves 64 bits" +
              (values.empty() ? "" : " (" + values + ")")};
}
