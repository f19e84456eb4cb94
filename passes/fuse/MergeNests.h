//===- MergeNests.h - Fuses statements over common outer axes ---*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_FUSE_MERGENESTS_H
#define TEGULA_PASSES_FUSE_MERGENESTS_H

#include "passes/analysis/Nest.h"

namespace tegula {

struct MergeOptions {
  bool batchedProducts = false, groupedProducts = false, reducedProducts = false;
  int64_t minPoints = 0;
};

/// Merges `parallel` statements of a block that share axes into nests over these, in which what has
/// further axes is an inner `parallel`; with `batchedProducts` also contractions of a batch, whose
/// rows run in blocks later. With `groupedProducts` those with a factor that data chooses count as
/// contractions, with `reducedProducts` statements that reduce the columns of one product share its
/// tiles (tile-merge-loops). Nests of much work have `minPoints` at least, each of which a part of
/// the machine runs, where sizes are known. Returns the number of merges.
unsigned mergeNests(mlir::Block &block, const MergeOptions &options, Prover &prover);

struct PrivatizeCounts {
  unsigned privatized = 0, forwarded = 0;
};
/// Temporaries of `block` that only one of its `parallel`s uses, each point its own elements,
/// become private to the point; those of one element that are written once become values.
PrivatizeCounts privatizeTemps(mlir::Block &block, Prover &prover);
/// Replaces a temporary of one element, whose writes stand in its block, one of them before every
/// read, by the values. (A function that fills its result before it sets it writes twice.)
bool forwardTemp(tgl::TempOp temp);

} // namespace tegula

#endif // TEGULA_PASSES_FUSE_MERGENESTS_H
