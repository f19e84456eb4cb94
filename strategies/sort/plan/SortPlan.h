//===- SortPlan.h - A sort of rows and what makes their elements -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   parallel (rows) {
//     values of a row
//     parallel (j) { values[row, j] = v; positions[row, j] = first + j }
//     tgl.sort values, positions[row]
//   }
//
// The strategy reads elements by evaluating `v`, and knows the positions. tgl-split-sorts gives a
// sort this form.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_SORT_PLAN_SORTPLAN_H
#define TEGULA_STRATEGIES_SORT_PLAN_SORTPLAN_H

#include "passes/analysis/Matched.h"

namespace tegula {

/// The writes that make the elements of sorted rows, side by side in one nest.
struct SortedElements {
  tgl::WriteOp value, position;
  tgl::ParallelOp nest;
  int64_t first = 0; ///< the position of a row's first element
  /// Of the nest: along the row, its elements in order; nothing where several axes make a row.
  std::optional<unsigned> axis;

  /// Whether they are nearly all that the nest does: it may be evaluated again and again.
  bool isCheap() const;
  /// Whether it gives the same bits wherever it is evaluated: nothing in it may be contracted.
  bool isRepeatable() const;
};
/// Nothing where a row's positions are not its elements' numbers, or others write the rows.
Matched<SortedElements> elementsOf(tgl::SortOp sort);

struct SortPlan {
  tgl::ParallelOp statement;
  tgl::SortOp sort;
  SortedElements elements;
  /// The read that gives an element as it is in memory, in fewer bits than it is sorted in; null:
  /// elements have the type of the sorted tensor.
  tgl::ReadOp source;
  int64_t rows = 0, length = 0, kept = 0; ///< kept: elements of a row that are read
  bool keepsValues = false, keepsPositions = false;

  /// The type that elements have while they are sorted.
  mlir::Type element() const;
  unsigned bits() const; ///< of that in memory
};
Matched<SortPlan> matchSort(tgl::ParallelOp statement);

/// Rows and lengths of a sort in a statement whose own form is of no interest yet.
Matched<SortPlan> planSort(tgl::SortOp sort, tgl::ParallelOp statement, SortedElements elements);

} // namespace tegula

#endif // TEGULA_STRATEGIES_SORT_PLAN_SORTPLAN_H
