//===- ProveSample.h - Statements at small sizes ------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Small sizes that satisfy given facts, in a fixed order, and the points of a domain at them. Finds
// counterexamples; proves nothing.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_SYMBOLIC_PROVESAMPLE_H
#define TEGULA_SYMBOLIC_PROVESAMPLE_H

#include "symbolic/IndexProgram.h"
#include "symbolic/Prove.h"
#include <map>

namespace tegula {

/// Walks through admissible sizes. Slots hold symbols first, dims behind them.
class SizeSampler {
public:
  /// For statements about `used`: their symbols, and those that facts connect with them.
  SizeSampler(const SizeFacts &facts, llvm::ArrayRef<IndexExpr> used);

  /// Moves to other sizes; false when none are left to try.
  bool next();
  /// Gives a dim a slot.
  void addDim(unsigned position);
  std::optional<unsigned> slotOf(const IndexVar &var) const;
  std::optional<IndexProgram> compile(const IndexExpr &expr) const;

  bool hasSymbols() const { return !freeSlots.empty(); }
  std::vector<std::pair<std::string, int64_t>> sizes() const;

  std::vector<int64_t> slots;

private:
  struct Fact {
    Condition::Kind kind;
    IndexProgram lhs, rhs;
    std::vector<unsigned> free; // slots of free symbols that it depends on
  };
  bool derive();
  bool holds(const Fact &fact) const;
  bool repair(const Fact &fact);
  bool nudge(const Fact &fact, llvm::function_ref<std::optional<int64_t>()> measure, int64_t wanted,
             bool orMore);
  int64_t random(int64_t below);

  std::map<IndexVar, unsigned> slotNumber;
  std::vector<unsigned> freeSlots;
  std::vector<bool> isSigned; // by slot
  std::vector<std::pair<unsigned, IndexProgram>> derived;
  std::vector<Fact> facts;
  std::vector<std::vector<int64_t>> seen;
  unsigned attempt = 0;
  uint64_t randomState = 0x9e3779b97f4a7c15ull;
  bool usable = true;
};

/// The points of a domain at the sampler's present sizes.
class PointWalker {
public:
  /// `others`: expressions of the statement; dims in them that the domain lacks take small values.
  PointWalker(SizeSampler &sampler, const Domain &domain, llvm::ArrayRef<IndexExpr> others);

  /// Calls `visit` with the slots set, for at most `limit` points, until it says false. True when
  /// every point was visited.
  bool walk(unsigned limit, llvm::function_ref<bool()> visit);
  std::vector<std::pair<unsigned, int64_t>> point() const;

private:
  struct Axis {
    unsigned position, slot;
    bool isSize;                        // bounds without dims
    std::optional<IndexProgram> lo, hi; // nothing: an arbitrary integer
  };
  struct Test {
    Condition::Kind kind;
    IndexProgram lhs, rhs;
  };
  bool visitFrom(size_t axis, llvm::function_ref<bool()> visit);

  SizeSampler &sampler;
  std::vector<Axis> axes;
  std::vector<Test> tests;
  unsigned left = 0, nodesLeft = 0; // points, and values on the way to them
  bool complete = true, usable = true;
};

/// Whether a condition holds; nothing where it has no value.
std::optional<bool> evaluate(Condition::Kind kind, const IndexProgram &lhs, const IndexProgram &rhs,
                             llvm::ArrayRef<int64_t> slots);

} // namespace tegula

#endif // TEGULA_SYMBOLIC_PROVESAMPLE_H
