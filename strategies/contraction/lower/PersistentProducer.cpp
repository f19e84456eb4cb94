//===- PersistentProducer.cpp - What producer warps of a persistent bloc ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Prepacked operands go through the ring without a break. Where producers find scales themselves
// they wait for those of the tile before to have been read, with the next elements already on their
// way where a tile has no more stages than the ring.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/PersistentProducer.h"

#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;

/// Whether all tiles have the same rows (columns) of the statement.
bool PersistentProducer::hasOneTile(const TileDim &group) const {
  std::optional<int64_t> lines = tgl::knownPoints(axes, group.axes),
                         batches = tgl::knownPoints(axes, plan.batch);
  return lines && *lines <= group.extent && batches == 1;
}

/// Sets the block's `which`-th tile (i64); its product, of which the side that all tiles have in
/// common is not staged.
WgmmaProduct PersistentProducer::setMovingTile(Value *which) {
  scheduler.setTileOfBlock(which);
  WgmmaProduct product = wgmmaLoads.makeWgmmaProduct(0);
  product.a.isStaged = !hasOneTile(here.rows);
  product.b.isStaged = !product.a.isStaged || !hasOneTile(here.columns);
  return product;
}

/// Tiles of `count` stages, for which the ring has room. Each has the same place there in all
/// tiles, so what all tiles have in common, weights mostly, is stored once and stays. Of the rest
/// the first units of the next tile are loaded while consumers are at the one before: nothing else
/// hides the latency of memory where sums are short.
void PersistentProducer::produceShortTiles(unsigned count) {
  constexpr unsigned maxAhead = 4; // units, each eight registers
  Value *lastTile = b.CreateSub(scheduler.numTilesOfBlock(), i64(1));
  WgmmaProduct resident = setMovingTile(i64(0));
  resident.a.isStaged = !resident.a.isStaged;
  resident.b.isStaged = !resident.b.isStaged;
  if (wgmmaLoads.chunksOfStage(resident))
    withRecomputedIndices([&] {
      producer.storeShortTile(resident, count, wgmmaLoads.loadNext(resident, i64(0)),
                              [](unsigned) {});
    });

  auto loadAhead = [&](Value *which) {
    WgmmaProduct product = setMovingTile(which);
    SmallVector<Value *> chunks;
    for (unsigned number = 0;
         number < count && chunks.size() + wgmmaLoads.chunksOfStage(product) <= maxAhead; ++number)
      chunks.append(wgmmaLoads.loadNext(product, i64(number)));
    return chunks;
  };
  SmallVector<Value *> first;
  withRecomputedIndices([&] { first = loadAhead(i64(0)); });
  e.keepNextLoopRolled = true;
  e.emitLoop(
      i64(0), scheduler.numTilesOfBlock(), i64(1), first,
      [&](Value *which, ArrayRef<Value *> current) {
        SmallVector<Value *> chunks(current), next;
        WgmmaProduct product = setMovingTile(which);
        withRecomputedIndices([&] {
          if (chunks.empty())
            chunks = wgmmaLoads.loadNext(product, i64(0));
          e.emitIf(b.CreateICmpNE(which, i64(0)), [&] { stageRings.waitAt(i32(SharedIsFree)); });
          producer.produceShortTile(product, count, chunks);
          Value *following = b.CreateAdd(which, i64(1)); // the last again where there is none
          next = loadAhead(b.CreateBinaryIntrinsic(Intrinsic::smin, following, lastTile));
        });
        return next;
      },
      "tile");
}

void PersistentProducer::producePersistentTiles() {
  if (unsigned count = numbers.hasCopyProducers()
                           ? 0
                           : stageRings.shortTileStages(wgmmaLoads.makeWgmmaProduct(0)))
    return produceShortTiles(count);
  e.keepNextLoopRolled = true;
  e.emitLoop(
      i64(0), scheduler.numTilesOfBlock(), i64(1),
      numbers.hasCopyProducers() ? producer.noCopies() : SmallVector<Value *>(),
      [&](Value *which, ArrayRef<Value *> copies) {
        SmallVector<Value *> next;
        scheduler.setTileOfBlock(which);
        if (!numbers.hasCopyProducers())
          e.emitIf(b.CreateICmpNE(which, i64(0)), [&] { stageRings.waitAt(i32(SharedIsFree)); });
        WgmmaProduct product = wgmmaLoads.makeWgmmaProduct(0);
        scheduler.setStages(product, which);
        withRecomputedIndices([&] {
          if (numbers.hasCopyProducers())
            next = producer.produceCopies(product, copies);
          else
            producer.produce(product);
        });
        return next;
      },
      "tile");
  context.tailSlice.reset();
  if (!numbers.hasCopyProducers())
    return;
  WgmmaProduct product = wgmmaLoads.makeWgmmaProduct(0);
  scheduler.setStages(product, i64(0));
  producer.endCopies(product, product.stagesInAll);
}
