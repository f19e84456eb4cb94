//===- RegisterTiles.h - Points that a thread computes together -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In `parallel (i, j) { reduce (k) a[i, k]*b[k, j] }` a thread that has 4 by 4 neighbouring points
// loads 8 elements for 16 multiplications. Nests of a statement that a team of threads shares
// (tgl-chain-launches) get such tiles: `point_tile` says how many points a thread has along each
// axis, and `mapping` along which of them they are a vector.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_ANALYSIS_REGISTERTILES_H
#define TEGULA_PASSES_ANALYSIS_REGISTERTILES_H

#include "ir/tgl/Tgl.h"
#include <optional>

namespace tegula {

/// On a statement: how many threads share a point of it.
inline constexpr llvm::StringLiteral teamAttrName = "team";
/// On a nest of such a statement.
inline constexpr llvm::StringLiteral pointTileAttrName = "point_tile";

struct RegisterTile {
  llvm::SmallVector<int64_t> points; ///< of a thread, along each axis
  std::optional<unsigned> lane;      ///< the axis along which they are a vector
  /// Whether a thread's points along an axis lie side by side; else as many apart as there are
  /// tiles, so that neighbouring threads have neighbouring points.
  llvm::SmallVector<bool> sideBySide;
  /// Values that a thread adds to, one after the other.
  int64_t accumulators = 1;
  /// Clocks of a multiprocessor for all points of the nest, where it has nothing else to do.
  double clocks = 0;
};

/// The threads that share a point of the statement, where an attribute says so.
std::optional<int64_t> teamOf(tgl::ParallelOp statement);

/// The tile that takes the fewest clocks for a nest over the axes `inner` of the op (the op has
/// others where the nest is yet to be made), which a team of so many threads shares. Nothing where
/// the nest has no sums that read an element for several points, or is more than those sums and
/// values.
std::optional<RegisterTile> chooseRegisterTile(tgl::AxesOp op, llvm::ArrayRef<unsigned> inner,
                                               int64_t team);
std::optional<RegisterTile> chooseRegisterTile(tgl::ParallelOp nest, int64_t team);

/// Clocks of such a nest where each thread has one point, or a vector of them.
std::optional<double> clocksWithoutTile(tgl::AxesOp op, llvm::ArrayRef<unsigned> inner,
                                        int64_t team);

/// The tile that the attributes say; nothing where there is none.
std::optional<RegisterTile> registerTileOf(tgl::ParallelOp nest);

/// The type that a temporary of a team has in shared memory: with rows of a whole number of lines a
/// vector longer, so that neighbours along a column are in other banks.
tgl::TglTensorType typeOfSharedRows(tgl::TglTensorType type);

} // namespace tegula

#endif // TEGULA_PASSES_ANALYSIS_REGISTERTILES_H
