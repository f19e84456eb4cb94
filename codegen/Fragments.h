//===- Fragments.h - Which sums of a tile a thread holds ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tables of TensorCore.h and Warpgroup.h as code, for all of a block's tile. Numbers are i32; constants give
// constants, which is how layouts are drawn (DrawLayouts.cpp) and tested.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_FRAGMENTS_H
#define TEGULA_CODEGEN_FRAGMENTS_H

#include "passes/TensorTile.h"
#include "llvm/IR/IRBuilder.h"

namespace tegula {

/// An element of a block's tile.
struct TilePlace {
  llvm::Value *row, *column;
};

/// mma.sync: the first element of the rectangle of the thread's warp.
TilePlace warpCorner(llvm::IRBuilder<> &b, const TensorTile &tile, llvm::Value *thread);
/// mma.sync: where sum `number` of a thread lies; its neighbour number + 1 is the next column's.
TilePlace fragmentSum(llvm::IRBuilder<> &b, const TensorTile &tile, TilePlace corner, llvm::Value *lane,
                      unsigned number);

/// wgmma: columns that a warpgroup multiplies.
unsigned groupColumns(const TensorTile &tile);
/// wgmma: the first element of the rectangle of the thread's warpgroup.
TilePlace groupCorner(llvm::IRBuilder<> &b, const TensorTile &tile, llvm::Value *thread);
/// wgmma: where sum `number` of a thread lies.
TilePlace groupSum(llvm::IRBuilder<> &b, const TensorTile &tile, llvm::Value *thread, llvm::Value *lane,
                   unsigned number);

/// Sums of a thread.
unsigned sumsOfThread(const TensorTile &tile);

} // namespace tegula

#endif // TEGULA_CODEGEN_FRAGMENTS_H
