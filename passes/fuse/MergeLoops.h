//===- MergeLoops.h - Fuses pointwise consumers into sequential loops -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_FUSE_MERGELOOPS_H
#define TEGULA_PASSES_FUSE_MERGELOOPS_H

#include "passes/analysis/Nest.h"

namespace tegula {

/// Moves cheap `parallel`s over one axis into the sequential loop over the same range before them
/// that computes what they read, point by point; a temporary that only carried the values is gone
/// then. Returns the number of statements moved.
unsigned mergeIntoLoops(mlir::Block &block);

} // namespace tegula

#endif // TEGULA_PASSES_FUSE_MERGELOOPS_H
