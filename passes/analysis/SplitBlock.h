//===- SplitBlock.h - Splits a parallel around loops into a nest -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_ANALYSIS_SPLITBLOCK_H
#define TEGULA_PASSES_ANALYSIS_SPLITBLOCK_H

#include "passes/analysis/Nest.h"

namespace tegula {

/// A `parallel` whose body holds sequential loops becomes a `parallel` over the axes along which
/// everything carried or reduced in the loops varies. What varies along more axes is computed in
/// inner `parallel`s; carried values of that kind live in private temporaries, which the loops
/// update in place. True where the block changed (it is then gone).
bool splitBlock(tgl::ParallelOp block, Prover &prover, int64_t tileSize);

} // namespace tegula

#endif // TEGULA_PASSES_ANALYSIS_SPLITBLOCK_H
