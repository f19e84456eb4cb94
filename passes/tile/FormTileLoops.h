//===- FormTileLoops.h - What a block computes of a tile loop ---*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_TILE_FORMTILELOOPS_H
#define TEGULA_PASSES_TILE_FORMTILELOOPS_H

#include "strategies/few_rows/plan/FewRows.h"

namespace tegula {

/// Makes the tile.kernel of a tile loop; the statement becomes its `otherwise`.
void formTileLoop(const FewRowsPlan &plan, const FewRowsShape &shape);

} // namespace tegula

#endif // TEGULA_PASSES_TILE_FORMTILELOOPS_H
