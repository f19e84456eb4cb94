//===- PersistentScheduler.cpp - The tile scheduler of persistent blocks ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A multiprocessor has room for one block with roles. Where such a block ends with its tile nothing
// is loaded while the epilogue runs, and nothing is multiplied until the next block's first
// operands have come. So there is one block for each multiprocessor, it takes every so many-th
// tile, and its accumulators have shared memory of their own:
//
//   producers    for each tile of the block: load its operands (PersistentProducer.cpp)
//   consumers    for each tile of the block: multiply, store accumulators, run the epilogue, or
//   flag
//                a tile whose accumulators are inaccurate; then recompute each flagged tile, in the
//                shared memory of the ring (PersistentConsumer.cpp)
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/block/PersistentScheduler.h"

#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

/// Those of which the block makes a part of the sum, too; i64.
Value *TileScheduler::numTilesOfBlock() {
  if (std::optional<SplitKTail> tail = numbers.splitKTail())
    return tailScheduler.numTilesOfBlock(*tail);
  if (numbers.tileNumbersFit32Bit()) { // there are no more blocks than tiles
    Value *further = b.CreateSub(i32(*numbers.numTiles().asConstant() - 1), here.block);
    Value *blocks = here.readSreg(Intrinsic::nvvm_read_ptx_sreg_nctaid_x);
    return wide(b.CreateAdd(b.CreateUDiv(further, blocks), i32(1)));
  }
  Value *tiles = b.CreateMul(ceilDiv(here.rows.total, i64(tile.rows)),
                             ceilDiv(here.columns.total, i64(tile.statementColumns())));
  tiles = b.CreateMul(tiles, here.pointsOf(axes, plan.batch));
  return ceilDiv(b.CreateSub(tiles, wide(here.block)),
                 wide(here.readSreg(Intrinsic::nvvm_read_ptx_sreg_nctaid_x)));
}

/// The `which`-th (i64) of the block.
void TileScheduler::setTileOfBlock(Value *which) {
  if (std::optional<SplitKTail> tail = numbers.splitKTail())
    return tailScheduler.setTileOfBlock(*tail, which);
  Value *blocks = wide(here.readSreg(Intrinsic::nvvm_read_ptx_sreg_nctaid_x));
  indices.setTile(b.CreateAdd(wide(here.block), b.CreateMul(which, blocks)));
}

/// Where the stages of the `which`-th tile are among all of the block's.
void TileScheduler::setStages(WgmmaProduct &product, Value *which) {
  if (!numbers.hasCopyProducers())
    return;
  if (std::optional<SplitKTail> tail = numbers.splitKTail()) {
    product.stagesBefore = b.CreateMul(i64(tail->stages), which);
    product.stagesInAll = tailScheduler.numStagesOfBlock(*tail);
    return;
  }
  product.stagesBefore = b.CreateMul(numStages(product), which);
  product.stagesInAll = b.CreateMul(numStages(product), numTilesOfBlock());
  if (memory.linesBytes()) // those of the tile before may still be needed
    product.scalesBefore = b.CreateMul(b.CreateAnd(b.CreateTrunc(which, b.getInt32Ty()), i32(1)),
                                       i32(tile.rows + tile.columns));
}
