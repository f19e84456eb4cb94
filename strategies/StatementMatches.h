//===- StatementMatches.h - The matches of scheduled statements -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An analysis of scheduled kernels. tgl-schedule keeps the match of each statement here; passes
// after it, the lowering, `--why` and the checks of `schedule { }` read it. Passes after the
// schedule may move a statement, and change nothing in it.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_STATEMENTMATCHES_H
#define TEGULA_STRATEGIES_STATEMENTMATCHES_H

#include "strategies/Strategy.h"
#include <mutex>

namespace tegula {

/// Thread-safe: kernels of a module are scheduled at once.
class StatementMatches {
public:
  /// The match of a statement; null: it is not scheduled. Where IR was read as text the match is
  /// restored from the attribute; a mismatch if the statement is not what that says.
  Matched<const StatementMatch *> of(tgl::ParallelOp op);
  /// The same, and null for a mismatch.
  const StatementMatch *find(tgl::ParallelOp op) {
    Matched<const StatementMatch *> match = of(op);
    return match ? *match : nullptr;
  }
  void keep(std::unique_ptr<StatementMatch> match);
  /// Matches that were made again, from attributes.
  unsigned numRestored() const { return restored; }

private:
  unsigned restored = 0;
  std::mutex mutex;
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<StatementMatch>> matches;
};

/// Mixed into passes that keep or read matches. Alone, such as in tegula-opt, a pass has its own.
class MatchingPass {
public:
  virtual ~MatchingPass() = default;
  std::shared_ptr<StatementMatches> matches = std::make_shared<StatementMatches>();
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_STATEMENTMATCHES_H
