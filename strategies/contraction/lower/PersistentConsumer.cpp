//===- PersistentConsumer.cpp - What consumer warps of a persistent bloc ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Consumers multiply a tile of the block, store its accumulators and run its epilogue. Tiles of
// split precision that are inaccurate are flagged, a bit each in shared memory, and recomputed
// after all others.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/PersistentConsumer.h"

using namespace llvm;
using namespace tegula;

/// A bit for each tile of a block.
static constexpr unsigned flaggedTilesBytes = TileMemory::flaggedTilesBytes, tilesOfWord = 32;

PersistentConsumer::PersistentConsumer(ContractionContext &context)
    : ContractionCode(context), scheduler(context), tailScheduler(context), wgmmaLoads(context),
      stageRings(context), consumer(context), warpgroups(context), mma(context), accuracy(context),
      epilogue(here), byWarps(numbers.usesWarpEpilogue()),
      flagsPerThread(byWarps && memory.linesBytes()), inBulk(byWarps && epilogue.storesInBulk()) {}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

unsigned PersistentConsumer::flaggedTilesBase() const {
  return here.accumulatorsBase(0) + memory.jointAccumulatorsBytes();
}

/// The word with the bit of the `which`-th (i64).
Value *PersistentConsumer::flaggedTilesWord(Value *which) {
  Value *number = b.CreateUDiv(b.CreateTrunc(which, b.getInt32Ty()), i32(tilesOfWord));
  return here.sharedAt(b.CreateAdd(b.CreateShl(number, i32(2)), i32(flaggedTilesBase())));
}

void PersistentConsumer::clearFlags() {
  e.emitIf(b.CreateICmpULT(here.thread, i32(flaggedTilesBytes / 4)), [&] {
    Value *word = b.CreateAdd(b.CreateShl(here.thread, i32(2)), i32(flaggedTilesBase()));
    b.CreateAlignedStore(i32(0), here.sharedAt(word), Align(4));
  });
}

/// Flags the `which`-th tile where its accumulators are inaccurate.
void PersistentConsumer::flagTile(Value *which, Value *isInaccurate) {
  Value *isFlagged = flagsPerThread
                         ? isInaccurate
                         : b.CreateAnd(isInaccurate, b.CreateICmpEQ(here.thread, i32(0)));
  e.emitIf(isFlagged, [&] {
    Value *bit =
        b.CreateShl(i32(1), b.CreateURem(b.CreateTrunc(which, b.getInt32Ty()), i32(tilesOfWord)));
    b.CreateAtomicRMW(AtomicRMWInst::Or, flaggedTilesWord(which), bit, Align(4),
                      AtomicOrdering::Monotonic, b.getContext().getOrInsertSyncScopeID("block"));
  });
}

Value *PersistentConsumer::isTileFlagged(Value *which) {
  Value *word = b.CreateAlignedLoad(b.getInt32Ty(), flaggedTilesWord(which), Align(4));
  Value *bit =
      b.CreateLShr(word, b.CreateURem(b.CreateTrunc(which, b.getInt32Ty()), i32(tilesOfWord)));
  return b.CreateTrunc(bit, b.getInt1Ty());
}

//===----------------------------------------------------------------------===//
// The epilogue of a tile
//===----------------------------------------------------------------------===//

void PersistentConsumer::synchronize() { byWarps ? epilogue.syncWarp() : barrier(); }

/// The epilogue of the tile before is done.
void PersistentConsumer::freeAccumulators() {
  if (inBulk)
    epilogue.awaitLines(/*untilWritten=*/false);
  synchronize();
}

/// The epilogue for the columns that are in shared memory, from column `first` of the warpgroup on.
void PersistentConsumer::emitEpilogue(unsigned first) {
  withRecomputedIndices([&] { byWarps ? epilogue.emitPerWarp(first) : epilogue.emit(); });
}

/// Accumulators that are always accurate, part by part where shared memory has no room for all.
void PersistentConsumer::finishTile(ArrayRef<Value *> accumulators) {
  if (byWarps && epilogue.fitsRegisterEpilogue())
    return withRecomputedIndices([&] { epilogue.emitInRegisters(accumulators); });
  unsigned ofProduct = accumulators.size() / tile.joint,
           ofPass = here.warpgroupEpilogueColumns() / 2;
  for (unsigned first = 0; first < ofProduct; first += ofPass) {
    freeAccumulators();
    withRecomputedIndices([&] {
      for (unsigned product = 0; product < tile.joint; ++product)
        warpgroups.storeWgmmaAccumulators(accumulators.slice(product * ofProduct + first, ofPass),
                                          here.accumulatorsBase(product));
    });
    synchronize();
    if (epilogue.recomputesNonFinite()) { // by all threads then, and for all columns
      withRecomputedIndices([&] { epilogue.recomputeNonFinite(); });
      barrier();
    }
    emitEpilogue(2 * first);
  }
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void PersistentConsumer::emit() {
  Value *numTiles = scheduler.numTilesOfBlock();
  if (numbers.usesSplitPrecision()) {
    clearFlags();
    emitCheckedTiles(numTiles);
  } else {
    emitTiles(numTiles);
  }
  if (inBulk)
    epilogue.awaitLines(/*untilWritten=*/false);
}

/// Tiles whose accumulators are always accurate.
void PersistentConsumer::emitTiles(Value *numTiles) {
  std::optional<SplitKTail> tail = numbers.splitKTail();
  e.keepNextLoopRolled = true;
  e.emitLoop(
      i64(0), numTiles, i64(1), {},
      [&](Value *which, ArrayRef<Value *>) {
        scheduler.setTileOfBlock(which);
        WgmmaProduct product = wgmmaLoads.makeWgmmaProduct(0);
        context.note(product);
        scheduler.setStages(product, which);
        AccuracyFlags flags;
        Accumulators accumulators;
        withRecomputedIndices([&] { accumulators = consumer.consume(product, flags); });
        if (!tail) {
          finishTile(accumulators);
          return SmallVector<Value *>();
        }
        Value *isWhole = b.CreateICmpULT(which, i64(tail->whole));
        e.emitIf(isWhole, [&] { finishTile(accumulators); });
        e.emitIf(b.CreateNot(isWhole), [&] {
          withRecomputedIndices([&] { tailScheduler.storeTailSlice(*tail, accumulators); });
        });
        return SmallVector<Value *>();
      },
      "tile");
  context.tailSlice.reset();
}

/// The fast path of the `which`-th tile; whether its accumulators are accurate.
Value *PersistentConsumer::emitFast(Value *which, Value *numTiles) {
  WgmmaProduct product = wgmmaLoads.makeWgmmaProduct(0);
  context.note(product);
  scheduler.setStages(product, which);
  AccuracyFlags flags;
  Value *isAccurate = nullptr;
  withRecomputedIndices([&] {
    Accumulators accumulators = consumer.consume(product, flags, flagsPerThread);
    if (!numbers.isPrepacked())
      e.emitIf(b.CreateICmpSLT(b.CreateAdd(which, i64(1)), numTiles),
               [&] { stageRings.releaseProducers(); });
    isAccurate = b.CreateNot(flags.isInaccurate);
    auto store = [&] {
      if (flagsPerThread)
        freeAccumulators();
      withRecomputedIndices(
          [&] { warpgroups.storeWgmmaAccumulators(accumulators, here.accumulatorsBase(0)); });
      withRecomputedIndices(
          [&] { accuracy.recomputeFlagged(product, flags, here.accumulatorsBase(0)); });
    };
    flagsPerThread ? store() : e.emitIf(isAccurate, store);
  });
  flagTile(which, flags.isInaccurate);
  return isAccurate;
}

void PersistentConsumer::emitExact() {
  MmaProduct product = mma.makeMmaProduct(0);
  Accumulators accumulators = mma.mmaMainloop(product, Path::Exact);
  mma.storeAccumulators(accumulators, here.accumulatorsBase(0));
  if (!epilogue.recomputesNonFinite())
    return;
  barrier();
  epilogue.recomputeNonFinite();
}

/// The `which`-th tile: the fast path where it is the first time, the exact one where the tile was
/// flagged. Whether the accumulators are accurate.
Value *PersistentConsumer::emitFastOrExact(Value *which, Value *numTiles, Value *isFirst,
                                           Value *isRecomputed) {
  scheduler.setTileOfBlock(which);
  Value *isAccurate = e.emitIfElse(isFirst, [&] { return emitFast(which, numTiles); }, b.getTrue());
  e.emitIf(isRecomputed, [&] {
    withRecomputedIndices([&] { emitExact(); });
    if (byWarps)
      barrier();
  });
  synchronize();
  flagsPerThread ? emitEpilogue() : e.emitIf(isAccurate, [&] { emitEpilogue(); });
  return isAccurate;
}

/// All tiles, then all again for those that are flagged. Carried: whether any is.
void PersistentConsumer::emitCheckedTiles(Value *numTiles) {
  e.keepNextLoopRolled = true;
  e.emitLoop(
      i64(0), b.CreateShl(numTiles, i64(1)), i64(1), {b.getFalse()},
      [&](Value *number, ArrayRef<Value *> carried) -> SmallVector<Value *> {
        Value *isFirst = b.CreateICmpSLT(number, numTiles);
        Value *which = b.CreateSelect(isFirst, number, b.CreateSub(number, numTiles));
        Value *anyFlagged = carried.front();
        if (flagsPerThread) // until all tiles have been summed up each thread knows its own flags
          anyFlagged = e.emitIfElse(
              b.CreateICmpEQ(number, numTiles), [&] { return accuracy.isAny(anyFlagged); },
              anyFlagged);
        Value *isRecomputed = b.CreateAnd(b.CreateNot(isFirst), anyFlagged);
        // The epilogue of the tile before is done, and its flag set.
        auto endTile = [&] {
          if (inBulk) // before a line is written again, or scales where it was
            epilogue.awaitLines(/*untilWritten=*/flagsPerThread);
          barrier();
        };
        flagsPerThread ? e.emitIf(isRecomputed, endTile) : endTile();
        isRecomputed =
            e.emitIfElse(isRecomputed, [&] { return isTileFlagged(which); }, b.getFalse());
        Value *isAccurate = e.emitIfElse(
            b.CreateOr(isFirst, isRecomputed),
            [&] { return emitFastOrExact(which, numTiles, isFirst, isRecomputed); }, b.getTrue());
        return {b.CreateOr(anyFlagged, b.CreateNot(isAccurate))};
      },
      "tile");
}
