//===- Fragments.h - MMA fragment layouts: which thread holds which element -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Computes the fragment layouts of Mma.h and Wgmma.h for a block's tile (indices are i32), and the
// distribution of rows over threads (i64). Constant operands give constants, which is how layouts
// are drawn (DrawLayout.cpp) and tested.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_NVGPU_FRAGMENTS_H
#define TEGULA_CODEGEN_NVGPU_FRAGMENTS_H

#include "codegen/nvgpu/SharedLayout.h"
#include "strategies/contraction/plan/TensorTile.h"
#include "llvm/IR/IRBuilder.h"

namespace tegula {

/// An element of a block's tile.
struct TileCoord {
  llvm::Value *row, *column;
};

/// mma.sync: first element of the thread's warp tile.
TileCoord warpCorner(llvm::IRBuilder<> &b, const TensorTile &tile, llvm::Value *thread);
/// mma.sync: distance from a thread's first accumulator to accumulator `number`.
struct FragmentStep {
  unsigned down, right;
};
FragmentStep fragmentStep(const TensorTile &tile, unsigned number);
/// mma.sync: coordinates of accumulator `number` of a thread; accumulator number + 1 is in the next
/// column.
TileCoord mmaAccumulatorAt(llvm::IRBuilder<> &b, const TensorTile &tile, TileCoord corner,
                           llvm::Value *lane, unsigned number);

/// wgmma: columns of a warpgroup.
unsigned warpgroupColumns(const TensorTile &tile);
/// wgmma: first element of the thread's warpgroup tile.
TileCoord warpgroupCorner(llvm::IRBuilder<> &b, const TensorTile &tile, llvm::Value *thread);
/// wgmma: coordinates of accumulator `number` (i32) of a thread.
TileCoord wgmmaAccumulatorAt(llvm::IRBuilder<> &b, const TensorTile &tile, llvm::Value *thread,
                             llvm::Value *lane, llvm::Value *number);

/// Accumulators of a thread.
unsigned accumulatorsPerThread(const TensorTile &tile);

/// Index of the thread among those of the cluster; `rank`: that of its block.
llvm::Value *rowThread(llvm::IRBuilder<> &b, const RowDistribution &distribution, llvm::Value *rank,
                       llvm::Value *thread);
/// Vector of thread `number` in a round.
llvm::Value *rowVector(llvm::IRBuilder<> &b, const RowDistribution &distribution,
                       llvm::Value *round, llvm::Value *number);
/// Offset of that vector in its block's shared memory, in vectors.
llvm::Value *rowSlotOffset(llvm::IRBuilder<> &b, const RowDistribution &distribution,
                           llvm::Value *round, llvm::Value *thread);

} // namespace tegula

#endif // TEGULA_CODEGEN_NVGPU_FRAGMENTS_H
