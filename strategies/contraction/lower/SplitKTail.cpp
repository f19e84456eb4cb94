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
#include "strategies/contraction/lower/DeviceContraction.h"

#include "ir/tgl/TglUtils.h"
#include "strategies/contraction/plan/TileReductions.h"

using namespace llvm;
using namespace tegula;

/// Nothing where no tiles are left, or too many for two blocks each.
std::optional<DeviceContraction::SplitKTail> DeviceContraction::splitKTail() const {
  if (!tile.tail || !e.options.splitKTail || !isPersistent() || usesSplitPrecision() ||
      isPrepacked() || !hasCopyProducers())
    return std::nullopt;
  if (!partialWrites(plan.op).empty()) // a reduction begins in whole tiles
    return std::nullopt;
  std::optional<int64_t> tiles = numTiles().asConstant(), blocks = persistentBlocks().asConstant();
  std::optional<int64_t> points = tgl::knownPoints(
      cast<tgl::AxesOp>(tgl::ReduceOp(plan.products.front().reduce).getOperation()));
  if (!tiles || !blocks || !points || *tiles % *blocks == 0)
    return std::nullopt;
  SplitKTail result;
  result.blocks = *blocks;
  result.whole = *tiles / *blocks;
  result.tiles = *tiles % *blocks;
  result.stages =
      divideCeil(*points, int64_t(WgmmaSharedLayout::lineBytes / bytesOf(products.front().type)));
  result.slices = std::min(*blocks / result.tiles, result.stages / TensorTile::minStagesOfSplit);
  return result.slices > 1 ? std::optional(result) : std::nullopt;
}

std::optional<DeviceContraction::RemainderTiles> DeviceContraction::remainderTiles() const {
  std::optional<SplitKTail> tail = splitKTail();
  if (!tail)
    return std::nullopt;
  TensorTile split = tile;
  split.tail = false;
  split.splits = tail->slices;
  split.raster = raster(); // so that numbers are of the same tiles
  return RemainderTiles{split, {tail->whole * tail->blocks, tail->tiles}};
}

IndexExpr DeviceContraction::splitKTailBytes() const {
  std::optional<SplitKTail> tail = splitKTail();
  return tail ? tail->tiles * tail->slices * tile.rows * tile.columns * 4 : 0;
}

/// i1: whether the block has a part.
Value *DeviceContraction::hasTailSlice(const SplitKTail &tail) {
  return b.CreateICmpULT(here.block, i32(tail.tiles * tail.slices));
}

/// How many stages part `number` (i32) has; i32.
Value *DeviceContraction::stagesOfSlice(const SplitKTail &tail, Value *number) {
  Value *isLonger = b.CreateICmpULT(number, i32(tail.stages % tail.slices));
  return b.CreateAdd(b.CreateZExt(isLonger, b.getInt32Ty()), i32(tail.stages / tail.slices));
}

/// Whole tiles and parts of the block; i64.
Value *DeviceContraction::numTilesOfBlock(const SplitKTail &tail) {
  return b.CreateAdd(b.CreateZExt(hasTailSlice(tail), b.getInt64Ty()), i64(tail.whole));
}

/// Sets the `which`-th (i64) of these.
void DeviceContraction::setTileOfBlock(const SplitKTail &tail, Value *which) {
  Value *isWhole = b.CreateICmpULT(which, i64(tail.whole));
  Value *number = b.CreateUDiv(here.block, i32(tail.tiles));
  Value *remainderTile =
      b.CreateAdd(b.CreateURem(here.block, i32(tail.tiles)), i32(tail.whole * tail.blocks));
  Value *wholeTile =
      b.CreateAdd(here.block, b.CreateMul(b.CreateTrunc(which, b.getInt32Ty()), i32(tail.blocks)));
  auto choose = [&](Value *ofWhole, Value *ofPart) {
    return wide(b.CreateSelect(isWhole, ofWhole, ofPart));
  };
  setTile(choose(wholeTile, remainderTile));
  tailSlice.emplace();
  tailSlice->first = choose(i32(0), number);
  tailSlice->step = choose(i32(1), i32(tail.slices));
  tailSlice->stages = choose(i32(tail.stages), stagesOfSlice(tail, number));
}

/// All stages of the block; i64.
Value *DeviceContraction::numStagesOfBlock(const SplitKTail &tail) {
  Value *ofPart = stagesOfSlice(tail, b.CreateUDiv(here.block, i32(tail.tiles)));
  return wide(b.CreateAdd(b.CreateSelect(hasTailSlice(tail), ofPart, i32(0)),
                          i32(tail.whole * tail.stages)));
}

/// Leaves the part's sums where emitCombine finds them, row by row: the lanes of a row fill sectors
/// of the cache.
void DeviceContraction::storeTailSlice(const SplitKTail &tail, ArrayRef<Value *> accumulators) {
  Value *number =
      b.CreateAdd(b.CreateMul(b.CreateURem(here.block, i32(tail.tiles)), i32(tail.slices)),
                  b.CreateUDiv(here.block, i32(tail.tiles)));
  Value *start = b.CreateAdd(b.CreateMul(wide(number), i64(tile.rows * tile.columns * 4)),
                             e.emitSize(prepackedBytes()));
  TileCoord first = wgmmaAccumulatorAt(b, tile, here.thread, here.lane, i32(0));
  Value *element = b.CreateAdd(b.CreateMul(first.row, i32(tile.columns)), first.column);
  Value *place = b.CreateInBoundsGEP(b.getInt8Ty(), prepackedBase,
                                     b.CreateAdd(start, wide(b.CreateShl(element, i32(2)))));
  for (unsigned number = 0; number < accumulators.size(); number += 2) {
    unsigned further = number / 2 % 2 * 8 * tile.columns + number / 4 * 8;
    storePair(accumulators[number], accumulators[number + 1],
              b.CreateConstInBoundsGEP1_32(b.getInt8Ty(), place, further * 4));
  }
}
