//===- Fragments.cpp - MMA fragment layouts: which thread holds which element ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/nvgpu/Fragments.h"

#include "codegen/nvgpu/Wgmma.h"

using namespace llvm;

namespace tegula {

TileCoord warpCorner(IRBuilder<> &b, const TensorTile &tile, Value *thread) {
  Value *warp = b.CreateLShr(thread, b.getInt32(5)), *across = b.getInt32(tile.warpColumns);
  return {b.CreateMul(b.CreateUDiv(warp, across), b.getInt32(tile.rows / tile.warpRows)),
          b.CreateMul(b.CreateURem(warp, across), b.getInt32(tile.columns / tile.warpColumns))};
}

FragmentStep fragmentStep(const TensorTile &tile, unsigned number) {
  unsigned fragment = number / 4, inRow = tile.columns / tile.warpColumns / 8;
  return {fragment / inRow * 16 + number % 4 / 2 * 8, fragment % inRow * 8 + number % 2};
}

TileCoord mmaAccumulatorAt(IRBuilder<> &b, const TensorTile &tile, TileCoord corner, Value *lane,
                           unsigned number) {
  Value *row = b.CreateAdd(corner.row, b.CreateLShr(lane, b.getInt32(2)));
  Value *column =
      b.CreateAdd(corner.column, b.CreateShl(b.CreateAnd(lane, b.getInt32(3)), b.getInt32(1)));
  FragmentStep step = fragmentStep(tile, number);
  return {b.CreateAdd(row, b.getInt32(step.down)), b.CreateAdd(column, b.getInt32(step.right))};
}

/// Warpgroups side by side.
static unsigned groupsAcross(const TensorTile &tile) {
  return tile.threads() / Wgmma::threads / (tile.rows / Wgmma::rows);
}

unsigned warpgroupColumns(const TensorTile &tile) { return tile.columns / groupsAcross(tile); }

TileCoord warpgroupCorner(IRBuilder<> &b, const TensorTile &tile, Value *thread) {
  Value *group = b.CreateLShr(thread, b.getInt32(7)), *across = b.getInt32(groupsAcross(tile));
  return {b.CreateMul(b.CreateUDiv(group, across), b.getInt32(Wgmma::rows)),
          b.CreateMul(b.CreateURem(group, across), b.getInt32(warpgroupColumns(tile)))};
}

TileCoord wgmmaAccumulatorAt(IRBuilder<> &b, const TensorTile &tile, Value *thread, Value *lane,
                             Value *number) {
  TileCoord corner = warpgroupCorner(b, tile, thread);
  Value *warp = b.CreateAnd(b.CreateLShr(thread, b.getInt32(5)), b.getInt32(3));
  Value *row = b.CreateAdd(b.CreateShl(warp, b.getInt32(4)), b.CreateLShr(lane, b.getInt32(2)));
  row = b.CreateAdd(corner.row, row);
  Value *column =
      b.CreateAdd(corner.column, b.CreateShl(b.CreateAnd(lane, b.getInt32(3)), b.getInt32(1)));
  // Four accumulators are two neighbours in a row and the two that lie eight rows below.
  Value *down = b.CreateShl(b.CreateAnd(number, b.getInt32(2)), b.getInt32(2));
  Value *right = b.CreateOr(b.CreateShl(b.CreateAnd(number, b.getInt32(~3)), b.getInt32(1)),
                            b.CreateAnd(number, b.getInt32(1)));
  return {b.CreateAdd(row, down), b.CreateAdd(column, right)};
}

unsigned accumulatorsPerThread(const TensorTile &tile) {
  return tile.rows * tile.columns / tile.threads();
}

Value *rowThread(IRBuilder<> &b, const RowDistribution &distribution, Value *rank, Value *thread) {
  return distribution.cluster > 1
             ? b.CreateNSWAdd(b.CreateNSWMul(rank, b.getInt64(distribution.threads)), thread)
             : thread;
}

Value *rowVector(IRBuilder<> &b, const RowDistribution &distribution, Value *round, Value *number) {
  return b.CreateNSWAdd(b.CreateNSWMul(round, b.getInt64(distribution.each())), number);
}

Value *rowSlotOffset(IRBuilder<> &b, const RowDistribution &distribution, Value *round,
                     Value *thread) {
  return b.CreateNSWAdd(b.CreateNSWMul(round, b.getInt64(distribution.threads)), thread);
}

} // namespace tegula
