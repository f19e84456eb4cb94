//===- SoftmaxProduct.h - Matches softmax times matrix ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_FUSE_SOFTMAXPRODUCT_H
#define TEGULA_PASSES_FUSE_SOFTMAXPRODUCT_H

#include "passes/analysis/Matched.h"
#include "passes/analysis/Nest.h"

namespace tegula {

/// The one statement that defines a temporary: it writes an element for each of its points, and
/// nothing else.
struct TempDefinition {
  tgl::TempOp temp;
  tgl::ParallelOp statement;
  tgl::WriteOp write;

  static std::optional<TempDefinition> of(mlir::Value tensor);
};

/// sum_j p[j] * v[j, d], where p is the softmax over j of scores.
struct SoftmaxProduct {
  tgl::ParallelOp product;
  tgl::ReduceOp sum;
  tgl::WriteOp result;
  mlir::Value left;   ///< factor
  mlir::Type rounded; ///< to which p is, or null
  std::optional<TempDefinition> scores;
  llvm::DenseMap<mlir::Value, tgl::ValueExpr>
      place;                  ///< of the scores' axes, in terms of the product's and the sum's
  mlir::BlockArgument column; ///< d
  llvm::SetVector<mlir::Operation *> temps; ///< that only these statements read
};

/// The statement as such a product. Nothing where it is none, where something else reads what is
/// between scores and product, or where what scores are made of changes before the product.
Matched<SoftmaxProduct> matchSoftmaxProduct(tgl::ParallelOp statement);

} // namespace tegula

#endif // TEGULA_PASSES_FUSE_SOFTMAXPRODUCT_H
