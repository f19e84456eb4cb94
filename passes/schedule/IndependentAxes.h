//===- IndependentAxes.h - Axes along which statements never meet -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Dependences between statements of a loop have a distance along each axis. An axis is independent
// where all distances are 0: each access to a tensor that one of the statements writes has the axis
// itself as its subscript in one dim, the same dim everywhere. Points of different batches, heads
// or columns never meet then, in whatever order the loop's steps run. Where statements run once, a
// tensor that one of them writes and nothing reads has no part in this.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_SCHEDULE_INDEPENDENTAXES_H
#define TEGULA_PASSES_SCHEDULE_INDEPENDENTAXES_H

#include "passes/analysis/Nest.h"

namespace tegula {

/// For each statement, the number of the axis that is the common one.
using IndependentAxis = llvm::DenseMap<mlir::Operation *, unsigned>;

/// The independent axes of statements that no other contains, in the order of the first one's axes.
/// `runOnce`: no loop around them runs them again before all points are done.
llvm::SmallVector<IndependentAxis> independentAxes(llvm::ArrayRef<tgl::ParallelOp> statements,
                                                   bool runOnce = false);

} // namespace tegula

#endif // TEGULA_PASSES_SCHEDULE_INDEPENDENTAXES_H
