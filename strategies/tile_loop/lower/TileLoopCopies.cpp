//===- TileLoopCopies.cpp - Copies of a tile loop's factors to shared memory -===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/tile_loop/lower/TileLoopCopies.h"

#include "codegen/async/Async.h"
#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

TileLoopCopies::TileLoopCopies(TileLoopBlock &block) : c(block), e(block.e), b(block.b) {}

/// Starts copying a factor's elements from `low` on along the axis that moves, 0 from `total` on.
/// `stage`: i32, bytes behind the first stage; null: 0.
void TileLoopCopies::copy(const Staged &staged, Value *stage, Value *low, Value *total) {
  bool fits = staged.moving == c.rowAxis ? !c.rowExists[0] : c.plan.extent % c.tile.columns == 0;
  Wgmma group(b, false);
  tgl::ReadOp read = staged.read;
  const Emitter::Buffer &buffer = e.buffers.find(read.getTensor())->second;
  const TileLoopBlock::SplitTensor *split =
      staged.terms > 1 ? c.splitTensorOf(read.getTensor()) : nullptr;
  const WgmmaSharedLayout &layout = staged.shared;
  // A line is 64 points of the sum, or in panels of 64 columns. A thread's copies are of the same
  // unit of many lines: where the first one goes to and comes from tells it of the others.
  unsigned perLine = layout.chunksPerLine(), lines = layout.kMajor ? layout.extent : layout.depth();
  if (c.numProducers % perLine)
    perLine = WgmmaSharedLayout::chunk;
  unsigned panels = layout.chunksPerLine() / perLine, chunks = perLine * lines;
  assert(c.numProducers % perLine == 0 && chunks % c.numProducers == 0 &&
         "copies are of whole lines");
  auto extentOf = [&](mlir::BlockArgument axis) -> int64_t {
    return tgl::knownPoints(cast<tgl::AxesOp>(axis.getOwner()->getParentOp()),
                            {axis.getArgNumber()})
        .value_or(0);
  };
  ValueExpr element = tgl::elementOffset(buffer.type, read.getSubscriptExprs());
  std::optional<int64_t> lineStep = tgl::stepAlong(element, staged.lineAxis),
                         sumStep = tgl::stepAlong(element, staged.sumAxis);
  Value *ownLine = b.CreateUDiv(c.producer, c.i32(perLine)),
        *ownChunk = b.CreateURem(c.producer, c.i32(perLine));
  Value *firstOffset = nullptr;
  std::array<Value *, WgmmaSharedLayout::chunk> firstPlaces = {};
  for (unsigned kBlock = 0; kBlock < staged.kBlocks; ++kBlock)
    for (unsigned number = 0; number < panels * chunks; number += c.numProducers) {
      unsigned panel = number / chunks, linesBefore = number % chunks / perLine,
               chunksBefore = panel * perLine;
      Value *line = b.CreateAdd(ownLine, c.i32(linesBefore)),
            *chunk = b.CreateAdd(ownChunk, c.i32(chunksBefore));
      // Positions, and those that none of the threads' is beyond.
      Value *start = c.wide(b.CreateShl(chunk, c.i32(3)));
      unsigned pastLine = linesBefore + c.numProducers / perLine,
               pastChunk = (chunksBefore + perLine) * WgmmaSharedLayout::chunk;
      Value *inSum = layout.kMajor ? start : c.wide(line),
            *inLines = layout.kMajor ? c.wide(line) : start;
      unsigned pastSum = (layout.kMajor ? pastChunk : pastLine) +
                         kBlock * WgmmaSharedLayout::lineElements,
               pastLines = layout.kMajor ? pastLine : pastChunk;
      if (kBlock)
        inSum = b.CreateAdd(inSum, c.i64(kBlock * WgmmaSharedLayout::lineElements));
      Value *exists = nullptr;
      auto place = [&](mlir::BlockArgument axis, Value *position, unsigned past) {
        bool moves = axis == staged.moving;
        Value *value = moves ? b.CreateAdd(low, position) : position;
        if (moves && !fits)
          exists = e.emitAnd(exists, b.CreateICmpSLT(value, total));
        if (!moves) {
          int64_t extent = extentOf(axis), own = c.tile.blockShare(extent);
          if (past > own)
            exists = e.emitAnd(exists, b.CreateICmpSLT(value, c.i64(own)));
          if (c.tile.isShared(extent))
            value = b.CreateAdd(value, c.lowOfRank(extent));
          if (past + own * (c.tile.clusterBlocks - 1) > extent && c.tile.isShared(extent))
            exists = e.emitAnd(exists, b.CreateICmpSLT(value, c.i64(extent)));
        }
        e.values[axis] = value;
      };
      place(staged.lineAxis, inLines, pastLines);
      place(staged.sumAxis, inSum, pastSum);
      Value *offset;
      if (firstOffset && lineStep && sumStep) {
        int64_t chunksApart = chunksBefore * WgmmaSharedLayout::chunk;
        int64_t apart = linesBefore * (layout.kMajor ? *lineStep : *sumStep) +
                        chunksApart * (layout.kMajor ? *sumStep : *lineStep) +
                        int64_t(kBlock * WgmmaSharedLayout::lineElements) * *sumStep;
        offset = b.CreateAdd(firstOffset, c.i64(apart));
      } else {
        offset = firstOffset = e.emitIndex(element);
      }
      if (exists)
        offset = b.CreateSelect(exists, offset, c.i64(0));
      // Eight lines on units are in the same order again.
      Value *&firstPlace = firstPlaces[linesBefore % WgmmaSharedLayout::chunk];
      unsigned behind = linesBefore / WgmmaSharedLayout::chunk * WgmmaSharedLayout::chunk *
                            WgmmaSharedLayout::lineBytes +
                        panel * layout.depth() * WgmmaSharedLayout::lineBytes;
      if (!firstPlace) {
        firstPlace = b.CreateSub(group.swizzledOffset(layout, line, chunk, 0), c.i32(behind));
        if (stage)
          firstPlace = b.CreateAdd(firstPlace, stage);
      }
      for (unsigned copy = 0; copy < staged.terms; ++copy) {
        Value *from = split
                          ? b.CreateInBoundsGEP(b.getInt16Ty(),
                                                c.bytesAt(c.workspace, split->termAt(copy)), offset)
                          : b.CreateInBoundsGEP(e.storageType(buffer.type.getElementType()),
                                                buffer.pointer, offset);
        unsigned distance =
            staged.base + copy * staged.termBytes() + kBlock * layout.bytes() + behind;
        group.copyChunk(
            b.CreateInBoundsGEP(b.getInt8Ty(), c.shared, b.CreateAdd(firstPlace, c.i32(distance))),
            from, exists);
      }
    }
}

/// Bytes behind the factor's base of the stage for a tile.
Value *TileLoopCopies::stageOf(const Product &product, Value *number) {
  Value *parity = b.CreateAnd(c.inAll(number), c.i32(1));
  return b.CreateMul(parity, c.i32(product.b.bytes()));
}

/// Bytes behind the left factor's base of the place for these rows.
Value *TileLoopCopies::rowStage(const Product &product) {
  return c.numRowStages == 1 ? nullptr
                             : b.CreateSelect(c.isOdd, c.i32(product.a->bytes()), c.i32(0));
}

/// Starts copying a tile, if there is one.
void TileLoopCopies::copyColumns(const Product &product, Value *number) {
  e.emitIf(b.CreateICmpSLT(number, c.numTiles),
           [&] { copy(product.b, stageOf(product, number), c.lowOfTile(number), c.tilesEnd); });
}

/// Waits until all copies that were started have arrived, and until the operands that the next
/// copies overwrite have been multiplied.
void TileLoopCopies::awaitCopies() {
  async::awaitAllCopies(b);
  async::publish(b);
  c.barrier();
}
