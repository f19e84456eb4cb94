//===- TileLoopMasks.h - Masks that data decides ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of a `where` whose condition is made of comparisons of something that varies along rows with
// something that varies along the tile's columns (`j <= i and segment[i] == segment[j]`,
// `j < length[b]`, `valid[j]`), a few numbers for a block of rows say which columns it may hold in
// and where it holds throughout, whatever the data is: the least and the greatest value in the
// block's rows, held against each column's value.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_TILE_LOOP_PLAN_TILELOOPMASKS_H
#define TEGULA_STRATEGIES_TILE_LOOP_PLAN_TILELOOPMASKS_H

#include "strategies/tile_loop/plan/TileLoop.h"

namespace tegula {

/// What a value in a nest over the tile varies along, beside axes of blocks.
enum class MaskSide { Block, Row, Column, Both };

/// A part of a condition that is not made of conditions.
enum class MaskLeaf {
  Truth,    ///< varies along rows or columns alone
  Compared, ///< compares a value of rows with one of columns
  Unknown
};

class MaskAnalysis {
public:
  MaskAnalysis(const TileLoopPlan &plan, mlir::BlockArgument column)
      : op(plan.op), row(tgl::AxesOp(cast<tgl::AxesOp>(tgl::ParallelOp(plan.op).getOperation()))
                             .getAxes()[plan.row]),
        column(column) {}

  MaskSide sideOf(mlir::Value value) const;
  MaskLeaf leafOf(mlir::Value condition) const;
  /// The conditions of which it is made; none of a leaf.
  static llvm::SmallVector<mlir::Value, 2> partsOf(mlir::Value condition);
  /// Operations of the statement that compute it, each after those that it uses; nothing where they
  /// are more than scalar ones and reads of the kernel's tensors.
  std::optional<llvm::SetVector<mlir::Operation *>> sliceOf(mlir::Value value) const;

private:
  bool addSlice(mlir::Value value, llvm::SetVector<mlir::Operation *> &slice) const;

  mutable tgl::ParallelOp op;
  mlir::BlockArgument row, column;
};

/// The masks of the loop that data decides, and which no comparison of indices says all about.
llvm::SmallVector<TileLoopPlan::DataMask> dataMasksOf(const TileLoopPlan &plan);

} // namespace tegula

#endif // TEGULA_STRATEGIES_TILE_LOOP_PLAN_TILELOOPMASKS_H
