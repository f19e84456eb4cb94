//===- Producer.cpp - What producer warps do for a tile -----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stages through registers are scaled and split on their way; the loads of the next are under way
// meanwhile. Stages that are copied are several under way at a time.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/load/Producer.h"

using namespace llvm;
using namespace tegula;

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

/// `body` for lines of which this thread is the one to know the scale.
void Producer::forThreadLines(const WgmmaProduct &product, function_ref<void(Value *line)> body) {
  for (const WgmmaOperand *operand : {&product.a, &product.b})
    for (unsigned first = 0; operand->isStaged && first < operand->shared.extent;
         first += numbers.threads()) {
      auto emitLine = [&] { body(b.CreateAdd(here.thread, i32(operand->firstLine + first))); };
      if (first + numbers.threads() <= operand->shared.extent)
        emitLine();
      else
        e.emitIf(b.CreateICmpULT(here.thread, i32(operand->shared.extent - first)), emitLine);
    }
}

/// From the units of the first step, for each its scale.
SmallVector<Value *> Producer::findScales(const WgmmaProduct &product, ArrayRef<Value *> chunks) {
  // Until one over the scale is known, the least of units' largest values is in its place.
  auto largestAt = [&](Value *line) {
    return precision.lineScaleAddress(SplitPrecision::LineValue::Maximum, line);
  };
  auto leastAt = [&](Value *line) {
    return precision.lineScaleAddress(SplitPrecision::LineValue::InverseScale, line);
  };
  auto load = [&](Value *place) { return b.CreateAlignedLoad(b.getInt32Ty(), place, Align(4)); };
  SmallVector<Value *> lines, scales;
  for (const WgmmaOperand *operand : {&product.a, &product.b})
    for (unsigned index = 0; operand->isStaged && index < operand->count; ++index)
      lines.push_back(b.CreateAdd(wgmmaLoads.lineOf(wgmmaLoads.chunkOf(*operand, index)),
                                  i32(operand->firstLine)));
  forThreadLines(product, [&](Value *line) {
    b.CreateAlignedStore(i32(0), largestAt(line), Align(4));
    b.CreateAlignedStore(i32(-1), leastAt(line), Align(4));
  });
  barrier();
  for (auto [line, chunk] : zip_equal(lines, chunks))
    precision.noteLargest(largestAt(line), leastAt(line), precision.largestOf(chunk));
  barrier();
  forThreadLines(product, [&](Value *line) {
    b.CreateAlignedStore(precision.inverseScale(load(largestAt(line)), load(leastAt(line))),
                         leastAt(line), Align(4));
  });
  for (Value *line : lines)
    scales.push_back(precision.scaleOf(load(largestAt(line)), /*isInverse=*/false));
  return scales;
}

//===----------------------------------------------------------------------===//
// Stages through registers
//===----------------------------------------------------------------------===//

void Producer::produce(const WgmmaProduct &product) {
  SmallVector<Value *> first = wgmmaLoads.loadNext(product, i64(0));
  if (unsigned few = stageRings.shortTileStages(product))
    return produceShortTile(product, few, first);
  SmallVector<Value *> scales = findScales(product, first);
  e.emitLoop(
      i64(0), numStages(product), i64(1), first, // the units of the step
      [&](Value *number, ArrayRef<Value *> chunks) {
        Value *inTile = b.CreateTrunc(number, b.getInt32Ty());
        async::acquire(b, context.rings[product.number], inTile);
        wgmmaLoads.storeChunks(product, chunks, scales,
                               stageRings.stageAddress(product, stageRings.inRing(inTile)));
        async::commit(b, context.rings[product.number], inTile);
        return wgmmaLoads.loadNext(product, b.CreateAdd(number, i64(1)));
      },
      "step");
}

/// Finds scales and stores a tile's `count` stages, for which the ring has room: no load is made
/// for nothing. `loaded`: units of the first ones, which are there; those of the others are loaded
/// one stage ahead. (Two stages' loads are not under way at a time: the registers for that are not
/// there.)
void Producer::storeShortTile(const WgmmaProduct &product, unsigned count, ArrayRef<Value *> loaded,
                              function_ref<void(unsigned number)> afterStage) {
  unsigned numChunks = wgmmaLoads.chunksOfStage(product);
  SmallVector<Value *> scales = findScales(product, loaded.take_front(numChunks));
  SmallVector<Value *> later;
  auto isLoaded = [&](unsigned number) { return (number + 1) * numChunks <= loaded.size(); };
  for (unsigned number = 0; number < count; ++number) {
    ArrayRef<Value *> chunks =
        isLoaded(number) ? loaded.slice(number * numChunks, numChunks) : ArrayRef(later);
    wgmmaLoads.storeChunks(product, chunks, scales, stageRings.stageAddress(product, i32(number)));
    afterStage(number);
    if (number + 1 < count && !isLoaded(number + 1))
      later = wgmmaLoads.loadNext(product, i64(number + 1));
  }
}

void Producer::produceShortTile(const WgmmaProduct &product, unsigned count,
                                ArrayRef<Value *> loaded) {
  storeShortTile(product, count, loaded, [&](unsigned number) {
    async::commit(b, context.rings[product.number], i32(number));
  });
}

//===----------------------------------------------------------------------===//
// Stages that are copied
//===----------------------------------------------------------------------===//

/// What is under way of a block's copies before the first tile, as produceCopies takes it.
SmallVector<Value *> Producer::noCopies() {
  return SmallVector<Value *>(numbers.usesBulkLoads() ? 0 : numbers.copiesAhead(),
                              async::noCopies(b));
}

/// Starts the copies of a tile's stages, in the order of all that go through the ring. Consumers
/// are told of a stage `copiesAhead` stages later, so that so many are under way; of the block's
/// last ones by endCopies. `before`: those under way before, of the first stage first; what comes
/// back is the same after the tile.
SmallVector<Value *> Producer::produceCopies(const WgmmaProduct &product,
                                             ArrayRef<Value *> before) {
  if (numbers.usesBulkLoads()) {
    bulkLoads.produceBulkLoads(product);
    return {};
  }
  unsigned ahead = numbers.copiesAhead();
  return e.emitLoop(
      i64(0), numStages(product), i64(1), before,
      [&](Value *number, ArrayRef<Value *> underWay) {
        SmallVector<Value *> copies(underWay);
        Value *inBlock = b.CreateTrunc(stageNumber(product, number), b.getInt32Ty());
        Value *stage = stageRings.inRing(inBlock);
        async::acquire(b, context.rings[product.number], inBlock);
        if (numbers.isPrepacked())
          prepackedLoads.copyPrepacked(product, number, stageRings.stageAddress(product, stage));
        else
          wgmmaLoads.copyChunks(product, indices.stepInKLoop(product.kLoop, number),
                                stageRings.stageAddress(product, stage));
        copies.push_back(async::commitCopies(b));
        e.emitIf(b.CreateICmpUGE(inBlock, i32(ahead)), [&] {
          async::awaitCopies(b, copies.front());
          async::commit(b, context.rings[product.number], b.CreateSub(inBlock, i32(ahead)));
        });
        copies.erase(copies.begin());
        return copies;
      },
      "stage");
}

/// Tells consumers of the last stages of the block, which has `total` (i64) of this product.
void Producer::endCopies(const WgmmaProduct &product, Value *total) {
  if (numbers.usesBulkLoads()) // barriers know
    return;
  async::awaitAllCopies(b);
  Value *stages = b.CreateTrunc(total, b.getInt32Ty());
  for (unsigned before = numbers.copiesAhead(); before > 0; --before)
    e.emitIf(b.CreateICmpUGE(stages, i32(before)), [&] {
      async::commit(b, context.rings[product.number], b.CreateSub(stages, i32(before)));
    });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void Producer::produceAll() {
  for (unsigned number = 0; number < products.size(); ++number) {
    if (number)
      stageRings.waitAt(i32(SharedIsFree));
    WgmmaProduct product = wgmmaLoads.makeWgmmaProduct(number);
    if (!numbers.hasCopyProducers()) {
      produce(product);
      continue;
    }
    produceCopies(product, noCopies());
    endCopies(product, numStages(product));
  }
}
