//===- ProveState.h - What a Prover keeps -------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_SYMBOLIC_PROVESTATE_H
#define TEGULA_SYMBOLIC_PROVESTATE_H

#include "symbolic/Prove.h"
#include "symbolic/ProveSample.h"
#include "symbolic/ProveSearch.h"
#include "llvm/ADT/StringSet.h"

namespace tegula {

/// Written out, the expression would fill pages: nothing is proved of it, nor tried.
bool isTooLarge(const IndexExpr &expr);
bool isTooLarge(llvm::ArrayRef<IndexExpr> exprs, const Domain &domain);

/// What came of trying a statement at small sizes.
struct Trial {
  unsigned passing = 0, failing = 0; // sizes at which the domain has a point
  bool exhaustive = false;           // all there is to try: constant sizes, every point
  std::optional<Counterexample> counterexample;
};

struct Prover::State {
  SizeFacts facts;

  /// A search that knows the facts; copied for each question that a kernel of so many sizes has
  /// room for.
  const Search &base();
  /// More sizes than one search holds beside what a question needs.
  bool hasManySizes();
  /// A search that knows what the facts say of sizes that stand in `exprs`, and of those that such
  /// facts connect them with, as far as there is room.
  Search searchOf(llvm::ArrayRef<IndexExpr> exprs);
  void forget() { known.reset(); }
  bool hasBase() const { return known.has_value(); }
  Search &mutableBase() { return *known; }

  /// A search that knows the facts and the domain, for goals made of these expressions.
  Search searchIn(const Domain &domain, llvm::ArrayRef<IndexExpr> goals);
  /// Tries `condition` at every point, for up to `sizesLimit` sizes; counterexamples give the sizes
  /// in `mentioned`, too.
  Trial tryAt(const Condition &condition, const Domain &domain, llvm::ArrayRef<IndexExpr> mentioned,
              unsigned sizesLimit);
  /// Decides a statement that is not proved quickly. `goals`, each >= 0, are what it says (none
  /// where it has no such form).
  Outcome decide(Search &search, const Condition &condition, llvm::ArrayRef<IndexExpr> goals,
                 const Domain &domain, llvm::ArrayRef<IndexExpr> mentioned);
  /// There is a point, each variable at an end of its range, where all `conditions` hold whatever
  /// the sizes for which the domain has a point. The example says which ends to try.
  bool alwaysAtCorner(llvm::ArrayRef<Condition> conditions, const Domain &domain,
                      const Counterexample &example);
  void fillConditions(Search &search, llvm::ArrayRef<IndexExpr> goals, const Domain &domain,
                      Outcome &outcome);

private:
  std::optional<Search> known;
  llvm::StringSet<> sizes; // in the first facts and definitions
  size_t factsCounted = 0, definitionsCounted = 0;
};

} // namespace tegula

#endif // TEGULA_SYMBOLIC_PROVESTATE_H
