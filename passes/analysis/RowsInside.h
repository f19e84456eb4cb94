//===- RowsInside.h - Rows that a nest would have inside --------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What joins a nest over rows, on a machine where a block keeps a row (passes/fuse). `rest` are
// the axes of a statement that it does not share with the nest.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_ANALYSIS_ROWSINSIDE_H
#define TEGULA_PASSES_ANALYSIS_ROWSINSIDE_H

#include "passes/analysis/Nest.h"

namespace tegula {

/// Whether a nest over the shared axes would have sums inside each of its points, one for each
/// point of the axes that are left, through which single threads of a block would go: along memory,
/// or long ones where there are few. As a statement of its own each has a team of threads. (A few
/// long rows a block takes by the team, and groups of one row by parts of its warps, as long as
/// registers keep the row for nests beside them.)
bool hasSumsInside(tgl::ParallelOp statement, llvm::ArrayRef<mlir::Value> rest);

/// Whether a pointwise statement computes values at the elements of rows that a nest over the
/// shared axes goes through in any case, one at each of its points: it reads nothing large beside
/// them.
bool isBesideRows(tgl::ParallelOp statement, llvm::ArrayRef<mlir::Value> rest,
                  tgl::ParallelOp nest);

} // namespace tegula

#endif // TEGULA_PASSES_ANALYSIS_ROWSINSIDE_H
