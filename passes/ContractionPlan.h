//===- ContractionPlan.h - Which statements are matrix products ---------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A parallel statement whose values come from sums of products is a matrix product: its axes fall into
// *rows* (only one side of the product varies along them), *columns* (only the other side) and *batch*
// (both). What stands inside the sum is evaluated at any point: reads with any affine subscript, fills,
// conversions, elementwise functions. So a convolution is a matrix product whose columns are the points
// of an image. Host code (codegen/Contraction.h) and device code (codegen/DeviceContraction.h) block
// such statements each in its own way.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_CONTRACTIONPLAN_H
#define TEGULA_PASSES_CONTRACTIONPLAN_H

#include "ir/Tgl.h"

namespace tegula {

/// One side of a product.
struct ContractionSide {
  llvm::SmallVector<mlir::Value> factors;
  /// What computes them, in order: operations of the statement and of the sum.
  llvm::SmallVector<mlir::Operation *> slice;
  /// The summed axes (the side's own) can be counted through as if they were the last of them
  /// alone.
  bool collapsesSum = false, collapsesAxes = false;
  /// Neighbours in memory are neighbours along the summed axes, not along rows or columns.
  bool lanesAlongSum = false;
};

struct ContractionProduct {
  tgl::ReduceOp reduce;
  ContractionSide row, column;
};

struct ContractionPlan {
  tgl::ParallelOp op;
  /// Axes of `op`. The last of the columns becomes vector lanes in the rest of the statement.
  llvm::SmallVector<unsigned> batch, rows, columns;
  std::vector<ContractionProduct> products;
  /// The statement without its sums.
  llvm::SmallVector<mlir::Operation *> rest;
  /// The rest can be counted through as if rows (columns) were the last axis alone.
  bool restCollapsesRows = false, restCollapsesColumns = false;
  mlir::Type element; ///< f32 or f64; i32 of sums of products of bytes
};

/// On a write, the axes of the statement that are reduced: nobody else writes to its tensor but what sets it to what
/// changes no result, and the points that meet at an element are of one tile.
inline constexpr llvm::StringLiteral partAttrName = "part";

/// The axis that must be a column where results are parts, whose places tell nothing of it.
unsigned laneAxisOfParts(tgl::ParallelOp op);

/// How to compute the statement as matrix products; nothing where it is none. `byVectors`: vectors of
/// columns run through the rest of the statement, so results of a long axis must be near to each other.
std::optional<ContractionPlan> planContraction(tgl::ParallelOp op, bool byVectors = true);

} // namespace tegula

#endif // TEGULA_PASSES_CONTRACTIONPLAN_H
