//===- FewRows.h - Plans tile loops of few rows -----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A nest whose points each walk a tile loop with products inside, as TileLoop.h, of which few share
// what the loop reads: the queries of a group of heads at a step of decoding. Its time is that of
// reading keys and values once. All axes along which no right factor varies are the rows of one
// tile; the other axes number blocks.
//
// A right factor may be read where data says (a page of a cache), under a condition that is the
// same along a line in memory; the loop may end where data says.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_FEW_ROWS_PLAN_FEWROWS_H
#define TEGULA_STRATEGIES_FEW_ROWS_PLAN_FEWROWS_H

#include "passes/analysis/Matched.h"
#include "target/TargetInfo.h"

namespace tegula {

/// A sum of products in the tile loop.
struct FewRowsProduct {
  tgl::ReduceOp reduce;
  tgl::ParallelOp nest;     ///< around it; its only axis are the columns
  bool reducesTile = false; ///< over the tile; else the columns are the tile's
  tgl::ReadOp a;            ///< the left factor where it is the same for all tiles; else null
  mlir::Value aValue;       ///< the left factor as f32
  bool isWide = false;      ///< that factor is f32, not rounded to the type of the right one
  tgl::ReadOp b;            ///< the right factor: bf16, f16, or numbers of 8 bits
  mlir::Value bValue;       ///< the same as f32
  mlir::Type element;       ///< bf16 or f16, of which both factors are numbers
  int64_t fixed = 0;        ///< points of the axis that is not the tile's
};

struct FewRowsPlan {
  tgl::ParallelOp op;
  llvm::SmallVector<unsigned> rows; ///< axes that share right factors, slowest first
  int64_t numRows = 1;
  std::optional<int64_t> blocks;   ///< points of the other axes
  bool hasInvariantBlocks = false; ///< whether that is what choices go by: Invariance.h
  tgl::TilesOp tiles;
  llvm::SmallVector<FewRowsProduct> products;
  int64_t maxColumns = 0; ///< of a nest or a sum that is not the tile's

  bool isRow(unsigned axis) const { return llvm::is_contained(rows, axis); }
  const FewRowsProduct *productOf(tgl::ReduceOp reduce) const;
};

Matched<FewRowsPlan> planFewRows(tgl::ParallelOp op);

/// Columns of a tile in registers for so many points of an axis: what products and lines in shared
/// memory come in.
int64_t tileColumnsFor(int64_t points);

/// Rows of a block, 16 for each warp, and points of the loop that it takes at a time.
struct FewRowsShape {
  int64_t rows = 16, columns = 32;

  std::string name() const; ///< `16x32`
  /// Of the statement.
  static constexpr llvm::StringLiteral attributeName = "few_rows_tile";
  mlir::Attribute toAttribute(mlir::MLIRContext *context) const;
  static std::optional<FewRowsShape> of(tgl::ParallelOp op);
};

Matched<FewRowsShape> chooseFewRowsShape(const FewRowsPlan &plan);

} // namespace tegula

#endif // TEGULA_STRATEGIES_FEW_ROWS_PLAN_FEWROWS_H
