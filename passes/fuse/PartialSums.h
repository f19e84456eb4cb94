//===- PartialSums.h - Sums over several axes, an axis at a time -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_FUSE_PARTIALSUMS_H
#define TEGULA_PASSES_FUSE_PARTIALSUMS_H

#include "ir/tgl/TglUtils.h"

namespace tegula {

/// A sum of products over several axes, such as the heads of a group and their rows, of which a
/// statement before it has the sums over the longest one alone.
class PartialSums {
public:
  /// Makes the statement; nothing where the statement has no such sum.
  static std::optional<PartialSums> make(tgl::ParallelOp whole);

  tgl::ParallelOp parts, whole;

  /// Whether the operation belongs to the sum that has parts.
  bool isInSum(mlir::Operation *op) const { return tgl::ReduceOp(sum)->isAncestor(op); }
  /// The sum becomes one of its parts.
  void use();
  /// The parts go.
  void drop();

private:
  tgl::ReduceOp sum;
  tgl::TempOp temp;
  unsigned kept = 0; ///< the axis of the sum that parts are summed over
};

} // namespace tegula

#endif // TEGULA_PASSES_FUSE_PARTIALSUMS_H
