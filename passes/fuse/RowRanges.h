//===- RowRanges.h - Ranges of rows, as masks of one loop -------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of a chain whose range data gives, as `start[i]:i + 1`, rows that share tiles need one loop: over
// all points that elements have, with a mask that is the row's range. Where the range leaves these
// points the program is wrong, and a launch before the loop reports it.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_FUSE_ROWRANGES_H
#define TEGULA_PASSES_FUSE_ROWRANGES_H

#include "mlir/IR/IRMapping.h"
#include "passes/fuse/RowChain.h"

namespace tegula {

/// The points that all elements have along the sum's axis, from 0 on; nothing where they differ, or
/// are not known when compiling.
std::optional<int64_t> pointsOfElements(const RowChain &chain);

/// Why a mask may not stand for the range: where a term outside of it may be something else than 0
/// times the right factor.
std::optional<Mismatch> whyNotMasked(const RowChain &chain);

/// Whether the ends of the range vary along the axis of the product.
bool rangeVariesAlong(const RowChain &chain, mlir::BlockArgument axis);

/// Where no read of elements in a loop over the range itself is sure to report ends outside of the
/// elements, a statement before the product does. A reason where it is not known which they are.
std::optional<Mismatch> reportEnds(RowChain &chain);

/// Before the product: a statement that reports ends of ranges outside of the elements, where they
/// are not proved to be inside, and keeps in memory those that data gives, as i64: the loop reads
/// them plainly and compares them as masks are. `undo` takes back all that was made.
class StoredEnds {
public:
  /// `keep`: in memory.
  StoredEnds(RowChain &chain, int64_t points, bool keep);
  void undo();

private:
  tgl::ValueExpr stored(const tgl::ValueExpr &end, llvm::StringRef name);
  tgl::ValueExpr here(const tgl::ValueExpr &end);

  RowChain &chain;
  mlir::OpBuilder builder;
  mlir::Location loc;
  llvm::SmallVector<mlir::Value> axes;
  mlir::IRMapping at; ///< to values of the statement
  tgl::ParallelOp rows;
  llvm::SmallVector<mlir::Operation *> made;
};

} // namespace tegula

#endif // TEGULA_PASSES_FUSE_ROWRANGES_H
