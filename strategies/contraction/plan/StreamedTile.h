//===- StreamedTile.h - Cost model of tiles whose operands are streamed -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_PLAN_STREAMEDTILE_H
#define TEGULA_STRATEGIES_CONTRACTION_PLAN_STREAMEDTILE_H

#include "strategies/contraction/plan/TensorTile.h"

namespace tegula {

/// Clocks of a product of operands that blocks copy as they are, of 16 bits or, with few rows, f32;
/// `multiplied`: those of a step's products. Fitted to 690 tiles of 101 bf16 products on an H200,
/// the second-level cache emptied before: the tiles that it takes for the best need 1.016 times as
/// long as the best measured ones (geometric mean; 1.31 at most, 128 x 14336 x 4096). A step waits
/// for what is under way: 1330 clocks from the second-level cache, from memory up to 930 more, for
/// all stages of the ring together; and copies and memory do not hide each other wholly. A step
/// takes a block of warps 683 clocks at least, and 112 that only other blocks hide.
double streamedClocks(const TensorTile &tile, llvm::ArrayRef<ProductOperands> products,
                      int64_t rows, int64_t columns, int64_t points, int64_t batch,
                      double multiplied);

/// Lower bound of the clocks for loading the operands, for any tile.
double minStreamedClocks(llvm::ArrayRef<ProductOperands> products, int64_t rows, int64_t columns,
                         int64_t points, int64_t batch);

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_PLAN_STREAMEDTILE_H
