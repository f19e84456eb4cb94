//===- ScanTile.h - Tiles of long scans -------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop that carries a total, in a statement of its own, is cut into tiles: some neighbouring
// points, and a part of the steps. Blocks take tiles as they come, all points' first parts first. A
// tile gets the total before it from the totals of the tiles before it in its group of parts and
// from that of all groups before (strategies/scan/lower/LookBackScan.h). The shape is written into
// the loop (attribute `scan_tile`).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_SCAN_PLAN_SCANTILE_H
#define TEGULA_STRATEGIES_SCAN_PLAN_SCANTILE_H

#include "passes/analysis/PrefixLoop.h"

namespace tegula {

struct ScanTile {
  /// Of the loop, and of the scheduled statement.
  static constexpr llvm::StringLiteral attributeName = "scan_tile";
  static constexpr int64_t threads = 256;

  int64_t columns; ///< points of a tile, a power of two up to 32; 1: along rows
  int64_t each;    ///< elements of a thread, a power of two
  int64_t group;   ///< parts of a group, a power of two

  int64_t steps() const { return threads * each / columns; }

  mlir::Attribute toAttribute(mlir::MLIRContext *context) const;
  static std::optional<ScanTile> of(tgl::ForOp loop);
};

/// The tiles of a loop whose statement has so many points.
struct ScanGrid {
  int64_t across; ///< tiles over the points
  int64_t parts;  ///< of the steps

  ScanGrid(const ScanTile &tile, int64_t points, int64_t steps);
  int64_t groups(const ScanTile &tile) const;
};

/// For a machine that so many threads keep busy; nothing where tiles gain nothing.
Matched<ScanTile> chooseScanTile(tgl::ParallelOp statement, const PrefixLoop &prefix,
                                 int64_t threads);

/// The loop of a statement that is nothing but one in tiles.
Matched<PrefixLoop> matchLookBackScan(tgl::ParallelOp statement);

} // namespace tegula

#endif // TEGULA_STRATEGIES_SCAN_PLAN_SCANTILE_H
