//===- SkinnyProduct.h - Plans products of few rows -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `y[i, j] = sum(x[i, k] * bf16(((w[j, k//2] >> 4*(k % 2)) & 15) * s[j, k//128]) for k)` with at
// most 32 rows i: the time is that of reading w once. The weight is computed in the registers that
// tensor cores take it from, so that no launch before it writes it, and no shared memory holds it.
//
// One axis along which only the weight varies is the tile's columns; rows are all axes along which
// it does not vary, packed to one tile; all others number blocks.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_SKINNY_PRODUCT_PLAN_SKINNYPRODUCT_H
#define TEGULA_STRATEGIES_SKINNY_PRODUCT_PLAN_SKINNYPRODUCT_H

#include "passes/analysis/Matched.h"
#include "target/TargetInfo.h"

namespace tegula {

/// A sum of products.
struct SkinnyFactors {
  tgl::ReduceOp reduce;
  mlir::Value weight, activation; ///< numbers of `element`
  mlir::Type element;             ///< bf16 or f16
  int64_t depth;                  ///< points of the sum
  int64_t vector;                 ///< neighbours along the sum that a lane has of the weight
};

struct SkinnyProductPlan {
  tgl::ParallelOp op;
  llvm::SmallVector<unsigned> rows; ///< axes that share the weight, slowest first
  int64_t numRows = 1;
  unsigned column = 0; ///< the axis of a tile's columns
  int64_t numColumns = 0;
  int64_t batches = 1; ///< points of the other axes
  llvm::SmallVector<SkinnyFactors, 1> products;
  bool isPacked = false; ///< whether a weight is computed from numbers of few bits

  bool isRow(unsigned axis) const { return llvm::is_contained(rows, axis); }
};

Matched<SkinnyProductPlan> planSkinnyProduct(tgl::ParallelOp op);

/// The most rows that a product is skinny with.
inline constexpr int64_t mostSkinnyRows = 32;

/// What a block has of the product: columns of the weight, and rows; neighbours along the sum that
/// a lane has at a time.
struct SkinnyProductShape {
  int64_t columns = 32, rows = 16, vector = 32;

  static constexpr int64_t warps = 8, lanesAlongSum = 4;
  /// Points of the sum that a block takes at a time.
  int64_t depth() const { return warps * lanesAlongSum * vector; }

  std::string name() const; ///< `32x16x1024`
  /// Of the statement.
  static constexpr llvm::StringLiteral attributeName = "skinny_tile";
  mlir::Attribute toAttribute(mlir::MLIRContext *context) const;
  static std::optional<SkinnyProductShape> of(tgl::ParallelOp op);
};

/// What names a number of columns in PipelineOptions::tensorTile: `32-columns`.
std::vector<std::string> skinnyTileNames();

/// The shape for the plan: with the columns that the list `wanted` names, else the most of those
/// with which a multiprocessor gets the fewest; nothing where there are too few for the device.
Matched<SkinnyProductShape> chooseSkinnyProductShape(const SkinnyProductPlan &plan,
                                                     const TargetInfo &target,
                                                     llvm::StringRef wanted = "");

/// Whether the strategy takes the statement on the usual device.
bool isSkinnyProduct(tgl::ParallelOp op);

} // namespace tegula

#endif // TEGULA_STRATEGIES_SKINNY_PRODUCT_PLAN_SKINNYPRODUCT_H
