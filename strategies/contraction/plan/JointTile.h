//===- JointTile.h - Tiles that products share ------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products of the same rows, as in `silu(sum(x[i, k]*a[j, k] for k))*sum(x[i, k]*b[j, k] for k)`,
// share a tile: a stage holds the rows once, and the columns of all products side by side, which
// one wgmma multiplies. A thread then has all sums of an element in its registers:
//
//   stage        rows of x   |  columns of a    columns of b
//   sums         128 rows by |  128 of a        128 of b        a tile of 128 x 256, 128 x 128
//                                                               results
//
// Where products come one after the other the rows are read for each, and all sums but the last
// wait in shared memory.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_PLAN_JOINTTILE_H
#define TEGULA_STRATEGIES_CONTRACTION_PLAN_JOINTTILE_H

#include "strategies/contraction/plan/TensorTile.h"

namespace tegula {

/// Columns of a panel of a stage: a product has whole panels.
inline constexpr int64_t jointPanel = 64;

/// Whether a warpgroup has all columns of such a tile, and each product whole panels.
bool mayBeJoint(const TensorTile &tile);

/// Whether all products, two or more, have the same elements as their rows, and columns that lie in
/// memory in the same way.
bool haveCommonRows(const ContractionPlan &plan, llvm::ArrayRef<ProductOperands> products);

/// `tile` as one that products with common rows share, in blocks that stay for several tiles;
/// nothing where its columns cannot be theirs in equal parts, or where an operand cannot come as
/// boxes of its tensor (TmaOperand.h).
std::optional<TensorTile> jointTileOf(TensorTile tile, llvm::ArrayRef<ProductOperands> products);

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_PLAN_JOINTTILE_H
