//===- ChainCosts.h - When launches of small sums become one ----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_SCHEDULE_CHAINCOSTS_H
#define TEGULA_PASSES_SCHEDULE_CHAINCOSTS_H

#include "passes/schedule/IndependentAxes.h"

namespace tegula {

/// One launch for several statements.
struct ChainPlan {
  llvm::SmallVector<IndependentAxis> axes; ///< whose points a team each has
  int64_t team = 0;                        ///< threads
  double microseconds = 0;
};

/// The plan for the statements that should take the least time; nothing where sizes are not known,
/// where no sum gains by points that a thread takes together, or where a point's temporaries do not
/// fit into shared memory.
std::optional<ChainPlan> planChain(llvm::ArrayRef<tgl::ParallelOp> statements);

/// What a launch of its own should take.
struct AloneTime {
  double microseconds = 0;
  bool isProduct = false; ///< on tensor cores
  bool isLarge = false;   ///< a product that fills tiles of tensor cores
};
std::optional<AloneTime> timeAlone(tgl::ParallelOp statement);

} // namespace tegula

#endif // TEGULA_PASSES_SCHEDULE_CHAINCOSTS_H
