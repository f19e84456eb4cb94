//===- TileReductions.h - Plans partial reductions in the epilogue -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If the result of a matrix product is reduced next, the epilogue of a block writes *partial*
// results: one for all columns of the tile that belong to a result, or for a few rows. The
// statement has a combining write (`tgl.write add`) with the attribute `part`; its subscripts are
// those of the result and the index of the partial among the reduced rows and columns.
// `tgl-reduce-in-tiles` makes such writes, and code generation
// (strategies/contraction/lower/EpilogueReductions.cpp) computes them.
//
// Rows, and columns, are counted through their axes, the last fastest; where the axes fall into
// those that are kept, those that are reduced and others that are kept, line number (b * reduced +
// m) * after + k is of result (b, k).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_PLAN_TILEREDUCTIONS_H
#define TEGULA_STRATEGIES_CONTRACTION_PLAN_TILEREDUCTIONS_H

#include "strategies/contraction/plan/TensorTile.h"
#include "llvm/ADT/BitVector.h"

namespace tegula {

/// The writes of partial results in a statement.
llvm::SmallVector<tgl::WriteOp> partialWrites(tgl::ParallelOp op);

/// How the rows or the columns of a tile are divided into partial results.
struct ReducedLines {
  llvm::SmallVector<unsigned> reducedAxes; ///< of the statement
  int64_t before = 1, reduced = 1,
          after = 1;     ///< lines; of columns with those that are there for padding
  int64_t own = 1;       ///< reduced lines that a tile has of a result
  int64_t length = 1;    ///< reduced lines of a part
  int64_t parts = 1;     ///< of a result
  int64_t segments = 1;  ///< results (by `before`) of which a tile of columns has lines
  tgl::ValueExpr number; ///< of the part, in the statement's axes
  bool isReduced() const { return !reducedAxes.empty(); }
};

/// How a tile reduces some axes of the statement. Columns are reduced over the whole tile or not at
/// all.
struct TileReductions {
  ReducedLines rows, columns;
  llvm::SmallVector<unsigned> batch; ///< reduced batch axes: each point has partials of its own

  /// All axes that are reduced, ascending.
  llvm::SmallVector<int64_t> reducedAxes() const;
  /// The subscripts of a partial beside those of the result, with extents.
  llvm::SmallVector<std::pair<tgl::ValueExpr, int64_t>> numbers(tgl::ParallelOp op) const;
};

/// The padded extents of the column axes, if the tile uses a halo tile; else empty.
llvm::SmallVector<int64_t> paddedColumns(const ContractionPlan &plan,
                                         llvm::ArrayRef<ProductOperands> products,
                                         const TensorTile &tile, bool hasWgmma);

/// Plans the partials of a reduction over the axes `reduced`; nothing if they have no such form.
/// `counted`: from paddedColumns.
std::optional<TileReductions> planTileReductions(const ContractionPlan &plan,
                                                 const TensorTile &tile,
                                                 const llvm::BitVector &reduced,
                                                 llvm::ArrayRef<int64_t> counted);

/// Plans the partials of a write that has the attribute; nothing if its subscripts are those of
/// another tile.
std::optional<TileReductions> tileReductionsOf(tgl::WriteOp write, const ContractionPlan &plan,
                                               const TensorTile &tile,
                                               llvm::ArrayRef<int64_t> counted);

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_PLAN_TILEREDUCTIONS_H
