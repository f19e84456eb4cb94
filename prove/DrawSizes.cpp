//===- DrawSizes.cpp - Sizes that a kernel's guards admit ------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/Draw.h"
#include "symbolic/Guards.h"
#include "symbolic/IndexProgram.h"
#include "llvm/ADT/StringMap.h"
#include <set>

using namespace mlir;
using namespace tegula;
using namespace tegula::prove;

static int64_t drawSize(SizeKind kind, unsigned attempt, Draws &draws) {
  static const int64_t primes[] = {2, 3, 5, 7, 11, 13};
  static const int64_t multiples[] = {4, 8, 12, 16, 24, 32, 48, 64, 96, 128};
  // Guards that want multiples, or sizes above others, are met by trying more and more freely.
  bool isFree = attempt > 40 && draws.below(3) == 0;
  if (isFree)
    return draws.below(2) ? multiples[draws.below(std::size(multiples))]
                          : 1 + int64_t(draws.below(16));
  switch (kind) {
  case SizeKind::Borders:
    return 1 + int64_t(draws.below(3));
  case SizeKind::Small:
    return 2 + int64_t(draws.below(4));
  case SizeKind::Primes:
    return primes[draws.below(std::size(primes))];
  case SizeKind::Wide:
    return 4 + int64_t(draws.below(draws.below(2) ? 8 : 36));
  }
  return 1;
}

std::vector<std::string> tegula::prove::boundSizes(tgl::KernelOp kernel) {
  std::vector<SizeSpec> sizeSpecs;
  std::vector<GuardSpec> guardSpecs;
  launchSpecs(kernel, sizeSpecs, guardSpecs);
  std::vector<std::string> names;
  for (const SizeSpec &spec : sizeSpecs)
    if (spec.boundBy)
      names.push_back(spec.name);
  return names;
}

namespace {
/// Looks for sizes that the guards of a kernel admit. Sizes are numbered as their specs are.
class SizeSearch {
public:
  SizeSearch(tgl::KernelOp kernel, SizeKind kind, const Sizes &given, uint64_t seed)
      : kind(kind), draws(mix(seed, 0x73697a6573)) {
    std::vector<GuardSpec> guards;
    launchSpecs(kernel, specs, guards);
    std::string error;
    checks = LaunchChecks::make(specs, guards, error);
    for (auto [size, spec] : llvm::enumerate(specs)) {
      auto found = given.find(spec.name);
      fixed.push_back(found == given.end() ? std::nullopt : std::optional(found->second));
      if (spec.boundBy)
        bound[*spec.boundBy] = unsigned(size);
      numbers[spec.name] = unsigned(size);
    }
    for (Type type : kernel.getArgumentTypes())
      if (auto tensor = dyn_cast<tgl::TglTensorType>(type))
        for (tgl::IndexExprAttr dim : tensor.getDims())
          dims.push_back(compiled(dim.getExpr()));
    if (checks)
      for (const GuardSpec &guard : checks->guards())
        equations.push_back(guard.kind == GuardSpec::Zero ? compiled(guard.lhs) : std::nullopt);
  }

  std::optional<Sizes> run() {
    if (!checks)
      return std::nullopt;
    for (unsigned attempt = 0; attempt < 5000; ++attempt) {
      Values drawn(specs.size(), 0);
      // Where a network's sizes must meet many guards at once, hardly any draw does.
      bool isMended = attempt >= fewDraws && attempt < fewDraws + mendedDraws;
      for (auto [size, spec] : llvm::enumerate(specs))
        if (fixed[size])
          drawn[size] = *fixed[size];
        else if (spec.boundBy)
          drawn[size] = drawSize(kind, isMended ? 0 : attempt, draws);
      if (isMended && !mend(drawn))
        continue;
      if (std::optional<Sizes> sizes = admitted(drawn))
        return sizes;
    }
    return std::nullopt;
  }

private:
  using Values = llvm::SmallVector<int64_t>;
  static constexpr unsigned fewDraws = 40, mendedDraws = 60, mostChanges = 100;
  static constexpr int64_t largestMended = 128;

  /// Nothing where an expression is about more than sizes.
  std::optional<IndexProgram> compiled(const IndexExpr &expr) const {
    return IndexProgram::compile(expr, [&](const IndexVar &var) -> std::optional<unsigned> {
      auto found = var.isSymbol() ? numbers.find(var.name()) : numbers.end();
      return found == numbers.end() ? std::nullopt : std::optional(found->second);
    });
  }

  /// Why the guards do not admit what was drawn; `all`: derived sizes too.
  std::optional<GuardFailure> failureAt(const Values &drawn, Values &all) const {
    auto failure = checks->decide(
        [&](unsigned argument, unsigned dim) { return drawn[bound.at({argument, dim})]; }, all);
    for (auto [size, value] : llvm::enumerate(fixed))
      if (value)
        all[size] = *value;
    return failure;
  }

  /// All sizes, where the guards admit them and no dim is negative.
  std::optional<Sizes> admitted(const Values &drawn) const {
    Values all;
    if (failureAt(drawn, all))
      return std::nullopt;
    Sizes sizes;
    for (auto [value, spec] : llvm::zip_equal(all, specs)) {
      if (value < 0)
        return std::nullopt;
      sizes[spec.name] = value;
    }
    for (const std::optional<IndexProgram> &dim : dims)
      if (std::optional<int64_t> value = dim ? dim->run(all) : std::nullopt; !value || *value < 0)
        return std::nullopt;
    return sizes;
  }

  /// How many guards hold before one does not; all and one more where all do.
  size_t progressOf(const Values &drawn) const {
    Values all;
    std::optional<GuardFailure> failure = failureAt(drawn, all);
    if (!failure)
      return checks->guards().size() + 2;
    return failure->kind == GuardFailure::SizeError ? 0 : failure->index + 1;
  }

  /// Changes one size after another so that more guards hold. False where that leads nowhere.
  bool mend(Values &drawn) {
    for (unsigned change = 0; change < mostChanges; ++change) {
      size_t progress = progressOf(drawn);
      if (progress > checks->guards().size() + 1)
        return true;
      std::vector<unsigned> free = freeSizes(progress);
      if (free.empty())
        return false;
      if (!solve(drawn, progress, free) && !enlarge(drawn, progress, free))
        return false;
    }
    return false;
  }

  /// Drawn sizes that the guard at hand is about, in an order that is drawn; all where none is.
  std::vector<unsigned> freeSizes(size_t progress) {
    std::vector<unsigned> all, free;
    std::set<std::string> used;
    if (progress > 0)
      used = usedBy(checks->guards()[progress - 1]);
    for (auto [size, spec] : llvm::enumerate(specs))
      if (spec.boundBy && !fixed[size]) {
        all.push_back(unsigned(size));
        if (used.count(spec.name))
          free.push_back(unsigned(size));
      }
    std::vector<unsigned> &result = free.empty() ? all : free;
    for (size_t k = result.size(); k > 1; --k)
      std::swap(result[k - 1], result[draws.below(k)]);
    return result;
  }

  /// Sizes that a guard is about, also by way of derived ones.
  std::set<std::string> usedBy(const GuardSpec &guard) const {
    std::set<std::string> used;
    auto add = [&](const IndexExpr &expr) {
      for (const IndexVar &var : expr.variables())
        if (var.isSymbol())
          used.insert(var.name().str());
    };
    add(guard.lhs);
    add(guard.rhs);
    for (const auto *list : {&guard.lows, &guard.highs, &guard.conditions})
      llvm::for_each(*list, add);
    for (const SizeSpec &spec : llvm::reverse(specs))
      if (!spec.boundBy && used.count(spec.name))
        add(spec.definition);
    return used;
  }

  /// Sets a size that an equation gives: KF = C*P*Q.
  bool solve(Values &drawn, size_t progress, llvm::ArrayRef<unsigned> free) const {
    if (progress == 0 || !equations[progress - 1])
      return false;
    for (unsigned size : free) {
      auto valueAt = [&](int64_t value) -> std::optional<int64_t> {
        Values other = drawn, all;
        other[size] = value;
        std::optional<GuardFailure> failure = failureAt(other, all);
        if (failure && failure->kind == GuardFailure::SizeError)
          return std::nullopt;
        return equations[progress - 1]->run(all);
      };
      std::optional<int64_t> at0 = valueAt(0), at1 = valueAt(1), at2 = valueAt(2);
      if (!at0 || !at1 || !at2 || *at1 == *at0 || *at2 - *at1 != *at1 - *at0 ||
          *at0 % (*at1 - *at0) != 0)
        continue;
      Values solved = drawn;
      solved[size] = -*at0 / (*at1 - *at0);
      if (solved[size] <= 0 || progressOf(solved) <= progress)
        continue;
      drawn = solved;
      return true;
    }
    return false;
  }

  /// The least larger size with which one guard more holds; where no size alone does it, one is
  /// doubled.
  bool enlarge(Values &drawn, size_t progress, llvm::ArrayRef<unsigned> free) {
    for (unsigned size : free)
      for (int64_t value = drawn[size] + 1; value <= largestMended; ++value) {
        Values other = drawn;
        other[size] = value;
        if (progressOf(other) <= progress)
          continue;
        drawn = other;
        return true;
      }
    int64_t &chosen = drawn[free[draws.below(free.size())]];
    chosen = std::max<int64_t>(2 * chosen, 1);
    return chosen <= largestMended;
  }

  SizeKind kind;
  Draws draws;
  std::vector<SizeSpec> specs;
  std::optional<LaunchChecks> checks;
  std::vector<std::optional<int64_t>> fixed;               // sizes that are given
  std::map<std::pair<unsigned, unsigned>, unsigned> bound; // by argument and dim
  llvm::StringMap<unsigned> numbers;                       // by name
  std::vector<std::optional<IndexProgram>> dims;           // of all arguments
  std::vector<std::optional<IndexProgram>> equations;      // by guard
};
} // namespace

std::optional<Sizes> tegula::prove::drawSizes(tgl::KernelOp kernel, SizeKind kind,
                                              const Sizes &given, uint64_t seed) {
  return SizeSearch(kernel, kind, given, seed).run();
}
