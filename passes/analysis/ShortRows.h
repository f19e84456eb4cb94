//===- ShortRows.h - Nests that reduce a short row at each point -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Scales of groups of a row: `parallel (g) { a = reduce (j in 128) x[i, 128*g + j]; ... }`. Parts
// of a warp take a point each (codegen/simt/TeamParts.h), so such a nest may stand inside of
// another.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_ANALYSIS_SHORTROWS_H
#define TEGULA_PASSES_ANALYSIS_SHORTROWS_H

#include "ir/tgl/Tgl.h"

namespace tegula {

/// Whether each point of the nest reduces a row of 32 to 512 elements that are neighbours in
/// memory, or of 16 from which a nest makes values, and has otherwise scalars and nests of known
/// extents that are no longer, which hold no others, and temporaries that have an element for each
/// point of these. The nest's own bounds do not count.
bool reducesShortRows(tgl::ParallelOp nest);

/// Points of the longest nest directly inside, where all extents are known; else 0.
int64_t longestInside(tgl::ParallelOp nest);

} // namespace tegula

#endif // TEGULA_PASSES_ANALYSIS_SHORTROWS_H
