//===- Fragments.h - What of a tile or row is a thread's ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tables of TensorCore.h and Warpgroup.h as code, for all of a block's tile (numbers are i32), and rows that are
// dealt out (i64). Constants give constants, which is how layouts are drawn (DrawLayout.cpp) and tested.
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
/// mma.sync: how far sum `number` of a thread lies from its first.
struct FragmentStep {
  unsigned down, right;
};
FragmentStep fragmentStep(const TensorTile &tile, unsigned number);
/// mma.sync: where sum `number` of a thread lies; its neighbour number + 1 is the next column's.
TilePlace fragmentSum(llvm::IRBuilder<> &b, const TensorTile &tile, TilePlace corner, llvm::Value *lane,
                      unsigned number);

/// wgmma: columns that a warpgroup multiplies.
unsigned groupColumns(const TensorTile &tile);
/// wgmma: the first element of the rectangle of the thread's warpgroup.
TilePlace groupCorner(llvm::IRBuilder<> &b, const TensorTile &tile, llvm::Value *thread);
/// wgmma: where sum `number` (i32) of a thread lies.
TilePlace groupSum(llvm::IRBuilder<> &b, const TensorTile &tile, llvm::Value *thread, llvm::Value *lane,
                   llvm::Value *number);

/// Sums of a thread.
unsigned sumsOfThread(const TensorTile &tile);

/// A row's vectors are dealt out in rounds to all threads of a block, or of a cluster of blocks that keeps it.
struct RowDeal {
  int64_t threads;      ///< of a block
  unsigned cluster = 1; ///< blocks
  int64_t each() const { return threads * cluster; } ///< vectors of a round
};
/// The thread's number among those of all blocks; `rank`: its block's in the cluster.
llvm::Value *rowThread(llvm::IRBuilder<> &b, const RowDeal &deal, llvm::Value *rank, llvm::Value *thread);
/// The vector of a thread, so numbered, in a round.
llvm::Value *rowVector(llvm::IRBuilder<> &b, const RowDeal &deal, llvm::Value *round, llvm::Value *number);
/// Where its block keeps that, in vectors.
llvm::Value *rowPlace(llvm::IRBuilder<> &b, const RowDeal &deal, llvm::Value *round, llvm::Value *thread);

} // namespace tegula

#endif // TEGULA_CODEGEN_FRAGMENTS_H
