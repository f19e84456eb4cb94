//===- StreamedTile.h - What a tile of streamed operands takes ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_STREAMEDTILE_H
#define TEGULA_PASSES_STREAMEDTILE_H

#include "passes/TensorTile.h"

namespace tegula {

/// Clocks of a product of operands that blocks copy as they are, of 16 bits or, with few rows, f32, which with few rows or a
/// long sum waits for memory; `multiplied`: those of a step's products. Fitted to 60 tiles of 13 products on an H200, the second-level cache
/// emptied before: a multiprocessor has 13.8 bytes a clock from memory, and 25 from that cache where the operand is larger
/// than what it holds of it near by. A step takes a block of warps 150 clocks that only other blocks hide, and 850 at least; with
/// the usual ring copies of two steps are under way, which does not hide memory's latency. In blocks with a multiprocessor each a
/// step takes what its bytes take, 41 a clock at most (20 tiles of ten products of 512 to 4096 points, 0d99a16).
double streamedClocks(const TensorTile &tile, llvm::ArrayRef<ProductOperands> products, int64_t rows, int64_t columns,
                      int64_t points, int64_t batch, double multiplied, double startUp);

} // namespace tegula

#endif // TEGULA_PASSES_STREAMEDTILE_H
