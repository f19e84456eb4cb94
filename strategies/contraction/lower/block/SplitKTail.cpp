//===- SplitKTail.cpp - Split-K of the last partial wave ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks that stay end at different times where tiles are no multiple of them: of 288 tiles 24 of
// 132 blocks have a third, and the others have nothing to do. Where so few are left, all blocks
// have part in them:
//
//   a block       its whole tiles; then part p of a left tile's sum, stages p, p + parts, p + 2
//   parts, ..., whose sums it leaves
//                 in the workspace
//   one launch    for the left tiles: adds up parts in order and does the rest (SplitK.cpp), as
//   where all sums are split
//
// What a tile's parts need at a time are neighbours in memory, and tiles beside each other need the
// same.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/block/SplitKTail.h"

using namespace llvm;
using namespace tegula;

/// i1: whether the block has a part.
Value *TailScheduler::hasTailSlice(const SplitKTail &tail) {
  return b.CreateICmpULT(here.block, i32(tail.tiles * tail.slices));
}

/// How many stages part `number` (i32) has; i32.
Value *TailScheduler::stagesOfSlice(const SplitKTail &tail, Value *number) {
  Value *isLonger = b.CreateICmpULT(number, i32(tail.stages % tail.slices));
  return b.CreateAdd(b.CreateZExt(isLonger, b.getInt32Ty()), i32(tail.stages / tail.slices));
}

/// Whole tiles and parts of the block; i64.
Value *TailScheduler::numTilesOfBlock(const SplitKTail &tail) {
  return b.CreateAdd(b.CreateZExt(hasTailSlice(tail), b.getInt64Ty()), i64(tail.whole));
}

/// Sets the `which`-th (i64) of these.
void TailScheduler::setTileOfBlock(const SplitKTail &tail, Value *which) {
  Value *isWhole = b.CreateICmpULT(which, i64(tail.whole));
  Value *number = b.CreateUDiv(here.block, i32(tail.tiles));
  Value *remainderTile =
      b.CreateAdd(b.CreateURem(here.block, i32(tail.tiles)), i32(tail.whole * tail.blocks));
  Value *wholeTile =
      b.CreateAdd(here.block, b.CreateMul(b.CreateTrunc(which, b.getInt32Ty()), i32(tail.blocks)));
  auto choose = [&](Value *ofWhole, Value *ofPart) {
    return wide(b.CreateSelect(isWhole, ofWhole, ofPart));
  };
  indices.setTile(choose(wholeTile, remainderTile));
  context.tailSlice.emplace();
  context.tailSlice->first = choose(i32(0), number);
  context.tailSlice->step = choose(i32(1), i32(tail.slices));
  context.tailSlice->stages = choose(i32(tail.stages), stagesOfSlice(tail, number));
}

/// All stages of the block; i64.
Value *TailScheduler::numStagesOfBlock(const SplitKTail &tail) {
  Value *ofPart = stagesOfSlice(tail, b.CreateUDiv(here.block, i32(tail.tiles)));
  return wide(b.CreateAdd(b.CreateSelect(hasTailSlice(tail), ofPart, i32(0)),
                          i32(tail.whole * tail.stages)));
}

/// Leaves the part's sums where emitCombine finds them, row by row: the lanes of a row fill sectors
/// of the cache.
void TailScheduler::storeTailSlice(const SplitKTail &tail, ArrayRef<Value *> accumulators) {
  Value *number =
      b.CreateAdd(b.CreateMul(b.CreateURem(here.block, i32(tail.tiles)), i32(tail.slices)),
                  b.CreateUDiv(here.block, i32(tail.tiles)));
  Value *start = b.CreateAdd(b.CreateMul(wide(number), i64(tile.rows * tile.columns * 4)),
                             e.emitSize(numbers.prepackedBytes()));
  TileCoord first = wgmmaAccumulatorAt(b, tile, here.thread, here.lane, i32(0));
  Value *element = b.CreateAdd(b.CreateMul(first.row, i32(tile.columns)), first.column);
  Value *place = b.CreateInBoundsGEP(b.getInt8Ty(), context.workspace,
                                     b.CreateAdd(start, wide(b.CreateShl(element, i32(2)))));
  for (unsigned number = 0; number < accumulators.size(); number += 2) {
    unsigned further = number / 2 % 2 * 8 * tile.columns + number / 4 * 8;
    storePair(accumulators[number], accumulators[number + 1],
              b.CreateConstInBoundsGEP1_32(b.getInt8Ty(), place, further * 4));
  }
}
