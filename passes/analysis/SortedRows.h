//===- SortedRows.h - What of sorted rows is read ---------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_ANALYSIS_SORTEDROWS_H
#define TEGULA_PASSES_ANALYSIS_SORTEDROWS_H

#include "ir/tgl/Tgl.h"
#include <optional>

namespace tegula {

/// How many elements of sorted rows are read at most, where every read of the temporaries walks
/// along them from the front to a size.
std::optional<IndexExpr> elementsRead(tgl::SortOp op);

} // namespace tegula

#endif // TEGULA_PASSES_ANALYSIS_SORTEDROWS_H
