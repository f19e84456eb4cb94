//===- GroupedProduct.h - Matches grouped matrix products -------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In `sum(x[n, k] * w[e[n], k, m] for k)` each row n has a matrix of its own, one of a few: those
// with the same number e[n], its *key*, are a group, and a group's rows times its matrix are a
// matrix product.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_PLAN_GROUPEDPRODUCT_H
#define TEGULA_STRATEGIES_CONTRACTION_PLAN_GROUPEDPRODUCT_H

#include "ir/tgl/TglUtils.h"

namespace tegula {

struct GroupedProduct {
  tgl::ReadOp chosen;  ///< the operand whose matrix the key chooses
  mlir::Value key;     ///< of type index, from data
  tgl::AxisSet rows;   ///< that the key varies along; axes of the statement, or of the sum
  int64_t numRows = 1; ///< points of these
  int64_t groups = 0;  ///< values that a key can have
};

/// Nothing where the sum is none, and where it is not worth putting rows in the order of their
/// groups: sizes are not known, groups have few rows, or the sums are little work. `summed`: of a
/// sum over some of the rows, such as those of the several matrices that a row has.
std::optional<GroupedProduct> matchGroupedProduct(tgl::ReduceOp reduce, bool summed = false);

/// Makes sums over matrices that a row has into a statement of their own, before this one, and what
/// the statement adds up into a sum of these: y[n] = sum(g[n, j] * x[n, k] * w[e[n, j], k] for j,
/// k) becomes part[n, j] = sum(x[n, k] * w[e[n, j], k] for k), y[n] = sum(g[n, j] * part[n, j] for
/// j). Returns how many.
unsigned splitGroupedSums(tgl::ParallelOp statement);

/// Whether the values are computed alike, from the same elements where memory is the same.
bool computedAlike(mlir::Value first, mlir::Value second);

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_PLAN_GROUPEDPRODUCT_H
