//===- StatementPoints.h - Statements inside of one over common axes -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_SCHEDULE_STATEMENTPOINTS_H
#define TEGULA_PASSES_SCHEDULE_STATEMENTPOINTS_H

#include "passes/schedule/IndependentAxes.h"

namespace tegula {

/// The statements in launches and loops that no other statement contains, in order.
llvm::SmallVector<tgl::ParallelOp> statementsOf(llvm::ArrayRef<mlir::Operation *> ops);

/// Puts launches and loops of one block, in order, into one statement over independent axes of all
/// their statements. Axes that are left are nests inside of it; the launches are gone.
tgl::ParallelOp putIntoPoints(llvm::ArrayRef<mlir::Operation *> ops,
                              llvm::ArrayRef<IndependentAxis> axes);

} // namespace tegula

#endif // TEGULA_PASSES_SCHEDULE_STATEMENTPOINTS_H
