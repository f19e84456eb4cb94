//===- TailTiles.cpp - The tiles that are left over ---------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks that stay end at different times where tiles are no multiple of them: of 288 tiles 24 of 132 blocks have a third, and
// the others have nothing to do. Where so few are left, all blocks have part in them:
//
//   a block       its whole tiles; then part p of a left tile's sum, stages p, p + parts, p + 2 parts, ..., whose sums it leaves
//                 in the workspace
//   one launch    for the left tiles: adds up parts in order and does the rest (SplitSums.cpp), as where all sums are split
//
// What a tile's parts need at a time are neighbours in memory, and tiles beside each other need the same.
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceContraction.h"

#include "ir/TglUtils.h"
#include "passes/TileParts.h"

using namespace llvm;
using namespace tegula;

/// Nothing where no tiles are left, or too many for two blocks each.
std::optional<DeviceContraction::Tail> DeviceContraction::tail() const {
  if (!tile.tail || !e.options.tailTiles || !isPersistent() || isSplit() || isPacked() || !hasCopiers())
    return std::nullopt;
  if (!partWrites(plan.op).empty()) // a reduction begins in whole tiles
    return std::nullopt;
  std::optional<int64_t> tiles = numTiles().asConstant(), blocks = persistentBlocks().asConstant();
  std::optional<int64_t> points = tgl::knownPoints(cast<tgl::AxesOp>(tgl::ReduceOp(plan.products.front().reduce).getOperation()));
  if (!tiles || !blocks || !points || *tiles % *blocks == 0)
    return std::nullopt;
  Tail result;
  result.blocks = *blocks;
  result.whole = *tiles / *blocks;
  result.tiles = *tiles % *blocks;
  result.stages = divideCeil(*points, int64_t(PlaneTile::lineBytes / bytesOf(products.front().type)));
  result.parts = std::min(*blocks / result.tiles, result.stages / TensorTile::fewestStages);
  return result.parts > 1 ? std::optional(result) : std::nullopt;
}

std::optional<DeviceContraction::LeftTiles> DeviceContraction::leftTiles() const {
  std::optional<Tail> left = tail();
  if (!left)
    return std::nullopt;
  TensorTile split = tile;
  split.tail = false;
  split.splits = left->parts;
  split.raster = raster(); // so that numbers are of the same tiles
  return LeftTiles{split, {left->whole * left->blocks, left->tiles}};
}

IndexExpr DeviceContraction::tailBytes() const {
  std::optional<Tail> left = tail();
  return left ? left->tiles * left->parts * tile.rows * tile.columns * 4 : 0;
}

/// i1: whether the block has a part.
Value *DeviceContraction::hasPart(const Tail &left) { return b.CreateICmpULT(here.block, i32(left.tiles * left.parts)); }

/// How many stages part `number` (i32) has; i32.
Value *DeviceContraction::stagesOfPart(const Tail &left, Value *number) {
  Value *isLonger = b.CreateICmpULT(number, i32(left.stages % left.parts));
  return b.CreateAdd(b.CreateZExt(isLonger, b.getInt32Ty()), i32(left.stages / left.parts));
}

/// Whole tiles and parts of the block; i64.
Value *DeviceContraction::numOwnTiles(const Tail &left) {
  return b.CreateAdd(b.CreateZExt(hasPart(left), b.getInt64Ty()), i64(left.whole));
}

/// Sets the `which`-th (i64) of these.
void DeviceContraction::setOwnTile(const Tail &left, Value *which) {
  Value *isWhole = b.CreateICmpULT(which, i64(left.whole));
  Value *number = b.CreateUDiv(here.block, i32(left.tiles));
  Value *leftTile = b.CreateAdd(b.CreateURem(here.block, i32(left.tiles)), i32(left.whole * left.blocks));
  Value *wholeTile = b.CreateAdd(here.block, b.CreateMul(b.CreateTrunc(which, b.getInt32Ty()), i32(left.blocks)));
  auto choose = [&](Value *ofWhole, Value *ofPart) { return wide(b.CreateSelect(isWhole, ofWhole, ofPart)); };
  setTile(choose(wholeTile, leftTile));
  ownPart.emplace();
  ownPart->first = choose(i32(0), number);
  ownPart->step = choose(i32(1), i32(left.parts));
  ownPart->stages = choose(i32(left.stages), stagesOfPart(left, number));
}

/// All stages of the block; i64.
Value *DeviceContraction::numOwnStages(const Tail &left) {
  Value *ofPart = stagesOfPart(left, b.CreateUDiv(here.block, i32(left.tiles)));
  return wide(b.CreateAdd(b.CreateSelect(hasPart(left), ofPart, i32(0)), i32(left.whole * left.stages)));
}

/// Leaves the part's sums where emitCombine finds them, row by row: the lanes of a row fill sectors of the cache.
void DeviceContraction::leavePart(const Tail &left, ArrayRef<Value *> sums) {
  Value *number = b.CreateAdd(b.CreateMul(b.CreateURem(here.block, i32(left.tiles)), i32(left.parts)),
                              b.CreateUDiv(here.block, i32(left.tiles)));
  Value *start = b.CreateAdd(b.CreateMul(wide(number), i64(tile.rows * tile.columns * 4)), e.emitSize(packedBytes()));
  TilePlace first = groupSum(b, tile, here.thread, here.lane, i32(0));
  Value *element = b.CreateAdd(b.CreateMul(first.row, i32(tile.columns)), first.column);
  Value *place = b.CreateInBoundsGEP(b.getInt8Ty(), packed, b.CreateAdd(start, wide(b.CreateShl(element, i32(2)))));
  for (unsigned number = 0; number < sums.size(); number += 2) {
    unsigned further = number / 2 % 2 * 8 * tile.columns + number / 4 * 8;
    storePair(sums[number], sums[number + 1], b.CreateConstInBoundsGEP1_32(b.getInt8Ty(), place, further * 4));
  }
}
