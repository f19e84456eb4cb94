//===- ProductReduction.h - Reductions over a product's columns -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `y[i] = max(q[j] - sum(a[i, k]*b[j, k] for k) for j)`: a nest whose points reduce, along the
// columns of a product, values that are computed from it. The product is not materialised. A block
// computes rows of it, column tile by column tile, and takes each into the state of the reduction.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_PRODUCT_REDUCTION_PLAN_PRODUCTREDUCTION_H
#define TEGULA_STRATEGIES_PRODUCT_REDUCTION_PLAN_PRODUCTREDUCTION_H

#include "passes/analysis/Matched.h"
#include "target/TargetInfo.h"

namespace tegula {

/// A reduction over the columns of a product, and the factors of the product.
struct ReducedProduct {
  tgl::ReduceOp reduce;  ///< over columns
  tgl::ReduceOp product; ///< inside: the sum of products
  tgl::ReadOp a, b;      ///< a varies with the row, b with the column
};

/// Whether the products of two reductions, of one statement or of two, are equal over the same
/// columns, where pairs of these axes are one.
bool isOneProduct(tgl::ParallelOp first, const ReducedProduct &one, tgl::ParallelOp second,
                  const ReducedProduct &other,
                  llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> axes);

struct ProductReductionPlan {
  tgl::ParallelOp op;
  unsigned rows; ///< the axis of the rows; the others number blocks
  std::vector<ReducedProduct> reductions;

  /// Products that differ: reductions of one share its tiles (tile-merge-loops).
  unsigned distinctProducts() const;
  bool hasF32() const; ///< whether some product is of f32
  /// Whether warpgroups can multiply: factors of 16 bits whose neighbours along the sum are
  /// neighbours in memory.
  bool fitsWarpgroups() const;
  /// Whether there is one product, whose factors TMA can copy: lines that do not overlap, a
  /// known multiple of 16 bytes apart.
  bool fitsBoxes() const;
};

Matched<ProductReductionPlan> planProductReduction(tgl::ParallelOp op);

/// Rows and columns of the product that a block has at a time, and the step along K.
struct ProductReductionShape {
  int64_t rows = 128, columns = 64, depth = 64;

  std::string name() const; ///< `128x64x64`
  /// Whether it is one for warpgroups, where they can multiply.
  bool isForWarpgroups() const { return columns > 128; }
  /// Of the statement.
  static constexpr llvm::StringLiteral attributeName = "product_tile";
  mlir::Attribute toAttribute(mlir::MLIRContext *context) const;
  /// What the strategy chose for the statement; nothing where it chose nothing.
  static std::optional<ProductReductionShape> of(tgl::ParallelOp op);
};

/// The names of all shapes.
std::vector<std::string> productTileNames();

/// The shape for the statement: the first that the list `wanted` names
/// (PipelineOptions::tensorTile), else, where its rows are not known to be too few for the device,
/// the usual one.
Matched<ProductReductionShape> chooseProductReductionShape(const ProductReductionPlan &plan,
                                                           const TargetInfo &target,
                                                           llvm::StringRef wanted = "");

/// Whether there is a shape, as above, of which tiles are faster than a product that is stored and
/// read again.
bool beatsStoredProduct(const ProductReductionPlan &plan, const TargetInfo &target,
                        llvm::StringRef wanted);

/// Steps of a block for which warps with roles pay (tile-specialize-warps): its descriptors take
/// about a microsecond.
inline constexpr int64_t minStepsOfRoles = 32;

/// Columns of a piece, where pieces are to be points of their own, so that blocks of warpgroups
/// keep all multiprocessors busy, and the rows that are multiplied at a time stay in L2: all, where
/// one piece is best. Nothing: the statement is not for warpgroups, or of unknown sizes.
std::optional<int64_t> chooseColumnsOfPiece(const ProductReductionPlan &plan,
                                            const ProductReductionShape &shape,
                                            const TargetInfo &target);

} // namespace tegula

#endif // TEGULA_STRATEGIES_PRODUCT_REDUCTION_PLAN_PRODUCTREDUCTION_H
