//===- AlignAxes.h - Splits axes to match those of another statement -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_FUSE_ALIGNAXES_H
#define TEGULA_PASSES_FUSE_ALIGNAXES_H

#include "passes/analysis/Nest.h"

namespace tegula {

/// Axes of `statement` that go through a whole dim of a tensor which `other` goes through in
/// digits, one of the two writing it: `o` of `h[n, o]` where the other has `h[n, 4*g + e]`.
struct AlignedAxis {
  unsigned axis;       // of the statement
  IndexExpr high, low; // extents of the digits
  std::string highName;
};
llvm::SmallVector<AlignedAxis, 1> axesToAlign(tgl::ParallelOp statement, tgl::ParallelOp other,
                                              Prover &prover);

/// Splits them: `parallel (n, o)` becomes `parallel (n, g, o)`.
void alignAxes(tgl::ParallelOp statement, llvm::ArrayRef<AlignedAxis> axes, Prover &prover);

} // namespace tegula

#endif // TEGULA_PASSES_FUSE_ALIGNAXES_H
