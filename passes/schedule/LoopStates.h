//===- LoopStates.h - What a tile loop carries, as partial results -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Online softmax carries a maximum m and sums that are relative to it:
//
//   m' = max(m, x);  l' = l * exp(m - m') + sum of exp(s - m') * ...
//
// A sum whose terms have one factor exp(s - m') is what it would be relative to any other m times
// exp(m' - m). So states of different parts of the loop's range merge: m = max of all m_i, and
// l = sum of l_i * exp(m_i - m). Sums that are relative to nothing are added up.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_SCHEDULE_LOOPSTATES_H
#define TEGULA_PASSES_SCHEDULE_LOOPSTATES_H

#include "passes/analysis/Matched.h"

namespace tegula {

struct LoopState {
  enum Kind { Max, Min, Sum } kind;
  mlir::Value carried; ///< the loop's argument, or the temporary that it carries
  unsigned result = 0; ///< of the loop; of temporaries none
  /// exp(m - m'), by which a sum is scaled in each turn; null: it is not.
  mlir::Operation *scale = nullptr;
  unsigned scaledBy = 0; ///< the state m
};

/// The states of a loop: first its arguments, in their order, then temporaries of one dim.
Matched<llvm::SmallVector<LoopState>> statesOf(tgl::TilesOp loop);

} // namespace tegula

#endif // TEGULA_PASSES_SCHEDULE_LOOPSTATES_H
