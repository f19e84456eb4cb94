//===- SeparateProducts.h - Products beside the one of a loop --*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_FUSE_SEPARATEPRODUCTS_H
#define TEGULA_PASSES_FUSE_SEPARATEPRODUCTS_H

#include "passes/fuse/RowChain.h"

namespace tegula {

/// Sums of products that a statement adds to its own, such as what came before a chunk to what is
/// in it. A loop over tiles has no products behind it: they become statements before it.
class SeparateProducts {
public:
  /// The sum of products that a loop may have, of several in the statement: one with a factor that
  /// a statement before has made, of scalars or products. Null where there is none.
  static tgl::ReduceOp ofLoop(tgl::ParallelOp statement);

  /// Makes statements of all sums but `kept`; none where one cannot stand alone.
  SeparateProducts(tgl::ParallelOp statement, tgl::ReduceOp kept);

  bool any() const { return !all.empty(); }
  /// Whether results of the sums are sooner written and read than the chain's elements are, which
  /// the loop makes again where they are the same for several rows.
  bool areWorthIt(const RowChain &chain) const;
  /// The sums are parts of the statement again.
  void undo();

private:
  struct Separate {
    tgl::ReadOp read; ///< of its results, in its place
    tgl::ParallelOp statement;
    tgl::TempOp temp;
    llvm::SmallVector<mlir::Value> axes; ///< of the first statement, as this one has them
  };
  llvm::SmallVector<Separate> all;
};

} // namespace tegula

#endif // TEGULA_PASSES_FUSE_SEPARATEPRODUCTS_H
