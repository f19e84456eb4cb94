//===- TileParts.h - Reductions of which a tile has a part --------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where what a matrix product makes is reduced next, a block has the terms in its tile and leaves one number for
// each *part* of a reduction: of columns, all of the tile's that belong to one result; of rows, a few. The statement
// says so by a write that combines (`tgl.write add`) with the attribute `part`; its subscripts are the result's, and
// the part's number among the rows and columns that are reduced. `tgl-reduce-in-tiles` makes such writes, and code
// generation (codegen/TileParts.cpp) computes them.
//
// Rows, and columns, are counted through their axes, the last fastest; where the axes fall into those that are kept,
// those that are reduced and others that are kept, line number (b * reduced + m) * after + k is of result (b, k).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_TILEPARTS_H
#define TEGULA_PASSES_TILEPARTS_H

#include "passes/TensorTile.h"
#include "llvm/ADT/BitVector.h"

namespace tegula {

/// The writes of a statement that have the attribute.
llvm::SmallVector<tgl::WriteOp> partWrites(tgl::ParallelOp op);

/// How the rows or the columns of a tile fall into parts.
struct PartLines {
  llvm::SmallVector<unsigned> reducedAxes;       ///< of the statement
  int64_t before = 1, reduced = 1, after = 1;    ///< lines; of columns with those that are there for padding
  int64_t own = 1;                               ///< reduced lines that a tile has of a result
  int64_t length = 1;                            ///< reduced lines of a part
  int64_t parts = 1;                             ///< of a result
  int64_t segments = 1;                          ///< results (by `before`) of which a tile of columns has lines
  tgl::ValueExpr number;                         ///< of the part, in the statement's axes
  bool isReduced() const { return !reducedAxes.empty(); }
};

/// How a tile computes a reduction over some axes of the statement: columns are reduced as far as a tile has them, or
/// not at all.
struct TileParts {
  PartLines rows, columns;
  llvm::SmallVector<unsigned> batch; ///< reduced axes of the batch: each of their points has parts of its own

  /// All axes that are reduced, ascending.
  llvm::SmallVector<int64_t> reducedAxes() const;
  /// Of a part's place what comes beside the result's subscripts, with extents.
  llvm::SmallVector<std::pair<tgl::ValueExpr, int64_t>> numbers(tgl::ParallelOp op) const;
};

/// The extents by which columns are counted, where the tile has one copy of the image for all taps; else empty.
llvm::SmallVector<int64_t> countedColumns(const ContractionPlan &plan, llvm::ArrayRef<ProductOperands> products,
                                          const TensorTile &tile, bool hasWarpgroups);

/// Nothing where a tile's parts are not of so simple a form. `counted` as from countedColumns.
std::optional<TileParts> planParts(const ContractionPlan &plan, const TensorTile &tile,
                                   const llvm::BitVector &reduced, llvm::ArrayRef<int64_t> counted);

/// The same of a write that has the attribute; nothing where its subscripts are those of another tile.
std::optional<TileParts> partsOf(tgl::WriteOp write, const ContractionPlan &plan, const TensorTile &tile,
                                 llvm::ArrayRef<int64_t> counted);

} // namespace tegula

#endif // TEGULA_PASSES_TILEPARTS_H
