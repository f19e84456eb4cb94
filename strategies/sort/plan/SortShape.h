//===- SortShape.h - How a sort of long rows is dealt out -------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   block    a block keeps a row in shared memory and sorts it there, digit by digit
//   tiles    each digit is three launches: how often it has each value in a tile, where these
//            elements go, and the elements to there
//   select   the kept elements are found by their digits, and a block sorts them
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_SORT_PLAN_SORTSHAPE_H
#define TEGULA_STRATEGIES_SORT_PLAN_SORTSHAPE_H

#include "strategies/sort/plan/SortPlan.h"
#include "target/TargetInfo.h"

namespace tegula {

struct SortShape {
  static constexpr llvm::StringLiteral attributeName = "sort_shape";
  enum Form : int64_t { Block, Tiles, Select };

  Form form = Block;
  int64_t threads = 256, each = 1; ///< of a block, and elements of a thread

  int64_t tile() const { return threads * each; }

  mlir::Attribute toAttribute(mlir::MLIRContext *context) const;
  static std::optional<SortShape> of(tgl::ParallelOp statement);
};

/// The block that sorts so many elements; nothing where its shared memory has no room for them.
std::optional<SortShape> blockFor(const SortPlan &plan, int64_t elements, const TargetInfo &target);
/// Bytes of shared memory of such a block.
int64_t sortedBytes(const SortPlan &plan, const SortShape &block);

/// Nothing where general code sorts a row in registers. `wholeRows`: a block may sort one.
Matched<SortShape> chooseSortShape(const SortPlan &plan, const TargetInfo &target, bool wholeRows);

} // namespace tegula

#endif // TEGULA_STRATEGIES_SORT_PLAN_SORTSHAPE_H
