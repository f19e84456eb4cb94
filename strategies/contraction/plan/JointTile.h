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
// Products that are only added, as in `sum(x[i, k]*a[j, k] for k) + sum(y[i, l]*b[j, l] for l)`,
// are accumulated: one sum over the points of the first, then over those of the second.
//
// Elsewhere products come one after the other, and all sums but the last wait in shared memory.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_PLAN_JOINTTILE_H
#define TEGULA_STRATEGIES_CONTRACTION_PLAN_JOINTTILE_H

#include "strategies/contraction/plan/TensorTile.h"
#include "target/TargetInfo.h"

namespace tegula {

/// Columns of a panel of a stage: of products side by side each has whole panels.
inline constexpr int64_t jointPanel = 64;

/// Whether products may share such a tile: a warpgroup has all columns.
bool mayHaveOneMainloop(const TensorTile &tile);

/// Whether all products, two or more, have the same elements as their rows, and columns that lie in
/// memory in the same way.
bool haveCommonRows(const ContractionPlan &plan, llvm::ArrayRef<ProductOperands> products);

/// Whether the statement uses nothing but the sum of all products, two or more, whose operands lie
/// in memory in the same way.
bool areOneSum(const ContractionPlan &plan, llvm::ArrayRef<ProductOperands> products);

/// Whether warps may do the rest for their own sums, as far as the statement tells
/// (EpiloguePlan::fitsWarpEpilogue): nothing is reduced in tiles, and columns come in fours.
bool maySumsStayInWarps(const ContractionPlan &plan);

/// The tile for products that come one after the other where those of `tile` cannot have one
/// mainloop: of as many columns as leave room for sums that wait. Nothing where there is no room.
std::optional<TensorTile> separateTileOf(TensorTile tile, llvm::ArrayRef<ProductOperands> products,
                                         const TargetInfo &machine);

/// Whether products may share the tile, and their operands can come as boxes of their tensors
/// (TmaOperand.h).
bool canHaveOneMainloop(const TensorTile &tile, llvm::ArrayRef<ProductOperands> products);

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_PLAN_JOINTTILE_H
