//===- PersistentScheduler.cpp - Tile scheduler of persistent blocks ------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A multiprocessor has room for one block with roles. Where such a block ends with its tile nothing
// is brought while the rest of the statement is done, and nothing is multiplied until the next
// block's first operands have come. So there is one block for each multiprocessor, it takes every
// so many-th tile, and its sums have a place of their own in shared memory:
//
//   producers    for each tile of the block:  bring its operands
//   consumers    for each tile of the block:  multiply, store sums; the rest of the statement, or a
//   mark
//                                             where sums are not to be used
//                for each with a mark:        sum up with care, in the shared memory of the ring;
//                the rest
//
// Planes of packed operands go through the ring without a break. Where producers find scales
// themselves they wait for those of the tile before to have been read, with the next elements
// already on their way where a tile has no more stages than the ring.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/DeviceContraction.h"

#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace llvm;
using namespace tegula;

/// A bit for each tile of a block.
static constexpr unsigned flaggedTilesBytes = TileMemory::flaggedTilesBytes, tilesOfWord = 32;
static constexpr int64_t maxTiles = 8 * flaggedTilesBytes;

//===----------------------------------------------------------------------===//
// Numbers known to the host
//===----------------------------------------------------------------------===//

unsigned DeviceContraction::flaggedTilesBase() const {
  return here.accumulatorsBase(0) + accumulatorsBytes();
}

IndexExpr DeviceContraction::persistentBlocks() const {
  IndexExpr tiles = numTiles(), least = IndexExpr::floorDiv(tiles + (maxTiles - 1), maxTiles);
  return IndexExpr::min(tiles, IndexExpr::max(least, int64_t(e.options.target.multiprocessors)));
}

//===----------------------------------------------------------------------===//
// A block's tiles
//===----------------------------------------------------------------------===//

/// Whether tiles are known to have numbers of 32 bits. The first division of 64 bits in a function
/// takes ptxas milliseconds.
bool DeviceContraction::tileNumbersFit32Bit() const {
  std::optional<int64_t> tiles = numTiles().asConstant();
  return !isPersistent() || (tiles && isInt<32>(*tiles));
}

/// Those of which the block makes a part of the sum, too; i64.
Value *DeviceContraction::numTilesOfBlock() {
  if (std::optional<SplitKTail> tail = splitKTail())
    return numTilesOfBlock(*tail);
  if (tileNumbersFit32Bit()) { // there are no more blocks than tiles
    Value *further = b.CreateSub(i32(*numTiles().asConstant() - 1), here.block);
    Value *blocks = here.readSreg(Intrinsic::nvvm_read_ptx_sreg_nctaid_x);
    return wide(b.CreateAdd(b.CreateUDiv(further, blocks), i32(1)));
  }
  Value *tiles = b.CreateMul(ceilDiv(here.rows.total, i64(tile.rows)),
                             ceilDiv(here.columns.total, i64(tile.columns)));
  tiles = b.CreateMul(tiles, here.pointsOf(axes, plan.batch));
  return ceilDiv(b.CreateSub(tiles, wide(here.block)),
                 wide(here.readSreg(Intrinsic::nvvm_read_ptx_sreg_nctaid_x)));
}

/// The `which`-th (i64) of the block.
void DeviceContraction::setTileOfBlock(Value *which) {
  if (std::optional<SplitKTail> tail = splitKTail())
    return setTileOfBlock(*tail, which);
  Value *blocks = wide(here.readSreg(Intrinsic::nvvm_read_ptx_sreg_nctaid_x));
  setTile(b.CreateAdd(wide(here.block), b.CreateMul(which, blocks)));
}

/// Where the stages of the `which`-th tile are among all of the block's.
void DeviceContraction::setStages(WgmmaProduct &product, Value *which) {
  if (!hasCopyProducers())
    return;
  if (std::optional<SplitKTail> tail = splitKTail()) {
    product.stagesBefore = b.CreateMul(i64(tail->stages), which);
    product.stagesInAll = numStagesOfBlock(*tail);
    return;
  }
  product.stagesBefore = b.CreateMul(numStages(product), which);
  product.stagesInAll = b.CreateMul(numStages(product), numTilesOfBlock());
  if (memory.linesBytes()) // those of the tile before may still be needed
    product.scalesBefore = b.CreateMul(b.CreateAnd(b.CreateTrunc(which, b.getInt32Ty()), i32(1)),
                                       i32(tile.rows + tile.columns));
}

/// The word with the bit of the `which`-th (i64).
Value *DeviceContraction::flaggedTilesWord(Value *which) {
  Value *number = b.CreateUDiv(b.CreateTrunc(which, b.getInt32Ty()), i32(tilesOfWord));
  return here.sharedAt(b.CreateAdd(b.CreateShl(number, i32(2)), i32(flaggedTilesBase())));
}

/// `body` reckons places anew: what it would share with other tiles takes the registers that sums
/// need.
void DeviceContraction::withRecomputedIndices(function_ref<void()> body) {
  SaveAndRestore number(here.thread, here.opaqueThread());
  SaveAndRestore ofWarp(here.lane, b.CreateAnd(here.thread, i32(31)));
  SaveAndRestore its(here.corner, warpCorner(b, tile, here.thread));
  body();
}

/// Whether all tiles have the same rows (columns) of the statement.
bool DeviceContraction::hasOneTile(const Group &group) const {
  std::optional<int64_t> lines = tgl::knownPoints(axes, group.axes),
                         batches = tgl::knownPoints(axes, plan.batch);
  return lines && *lines <= group.extent && batches == 1;
}

/// Sets the block's `which`-th tile (i64); its product, of which the side that all tiles have in
/// common is not staged.
WgmmaProduct DeviceContraction::setMovingTile(Value *which) {
  setTileOfBlock(which);
  WgmmaProduct product = makeWgmmaProduct(0);
  product.a.isStaged = !hasOneTile(here.rows);
  product.b.isStaged = !product.a.isStaged || !hasOneTile(here.columns);
  return product;
}

/// Tiles of `count` stages, for which the ring has room. Each has the same place there in all
/// tiles, so what all tiles have in common, weights mostly, is stored once and stays. Of the rest
/// the first units of the next tile are loaded while consumers are at the one before: nothing else
/// hides the latency of memory where sums are short.
void DeviceContraction::produceShortTiles(unsigned count) {
  constexpr unsigned maxAhead = 4; // units, each eight registers
  Value *lastTile = b.CreateSub(numTilesOfBlock(), i64(1));
  WgmmaProduct resident = setMovingTile(i64(0));
  resident.a.isStaged = !resident.a.isStaged;
  resident.b.isStaged = !resident.b.isStaged;
  if (chunksOfStage(resident))
    withRecomputedIndices(
        [&] { storeShortTile(resident, count, loadNext(resident, i64(0)), [](unsigned) {}); });

  auto loadAhead = [&](Value *which) {
    WgmmaProduct product = setMovingTile(which);
    SmallVector<Value *> chunks;
    for (unsigned number = 0; number < count && chunks.size() + chunksOfStage(product) <= maxAhead;
         ++number)
      chunks.append(loadNext(product, i64(number)));
    return chunks;
  };
  SmallVector<Value *> first;
  withRecomputedIndices([&] { first = loadAhead(i64(0)); });
  e.keepNextLoopRolled = true;
  e.emitLoop(
      i64(0), numTilesOfBlock(), i64(1), first,
      [&](Value *which, ArrayRef<Value *> current) {
        SmallVector<Value *> chunks(current), next;
        WgmmaProduct product = setMovingTile(which);
        withRecomputedIndices([&] {
          if (chunks.empty())
            chunks = loadNext(product, i64(0));
          e.emitIf(b.CreateICmpNE(which, i64(0)), [&] { waitAt(i32(SharedIsFree)); });
          produceShortTile(product, count, chunks);
          Value *following = b.CreateAdd(which, i64(1)); // the last again where there is none
          next = loadAhead(b.CreateBinaryIntrinsic(Intrinsic::smin, following, lastTile));
        });
        return next;
      },
      "tile");
}

void DeviceContraction::producePersistentTiles() {
  if (unsigned count = hasCopyProducers() ? 0 : shortTileStages(makeWgmmaProduct(0)))
    return produceShortTiles(count);
  e.keepNextLoopRolled = true;
  e.emitLoop(
      i64(0), numTilesOfBlock(), i64(1), hasCopyProducers() ? noCopies() : SmallVector<Value *>(),
      [&](Value *which, ArrayRef<Value *> copies) {
        SmallVector<Value *> next;
        setTileOfBlock(which);
        if (!hasCopyProducers())
          e.emitIf(b.CreateICmpNE(which, i64(0)), [&] { waitAt(i32(SharedIsFree)); });
        WgmmaProduct product = makeWgmmaProduct(0);
        setStages(product, which);
        withRecomputedIndices([&] {
          if (hasCopyProducers())
            next = produceCopies(product, copies);
          else
            produce(product);
        });
        return next;
      },
      "tile");
  tailSlice.reset();
  if (!hasCopyProducers())
    return;
  WgmmaProduct product = makeWgmmaProduct(0);
  setStages(product, i64(0));
  endCopies(product, product.stagesInAll);
}

void DeviceContraction::emitPersistentTiles() {
  startWarpSpecialization();
  Epilogue epilogue(here);
  Value *numTiles = numTilesOfBlock();
  bool byWarps = usesWarpEpilogue(epilogue);
  SaveAndRestore flagging(flagsPerThread,
                          byWarps && memory.linesBytes()); // else scales lie where sums do
  bool inBulk = byWarps && epilogue.storesInBulk();
  auto synchronize = [&] { byWarps ? epilogue.syncWarp() : barrier(); };
  auto freeAccumulators = [&] { // the rest of the tile before is done
    if (inBulk)
      epilogue.awaitLines(/*untilWritten=*/false);
    synchronize();
  };
  auto emitEpilogue = [&](unsigned first = 0) {
    withRecomputedIndices([&] { byWarps ? epilogue.emitPerWarp(first) : epilogue.emit(); });
  };
  if (usesSplitPrecision())
    e.emitIf(b.CreateICmpULT(here.thread, i32(flaggedTilesBytes / 4)), [&] {
      Value *word = b.CreateAdd(b.CreateShl(here.thread, i32(2)), i32(flaggedTilesBase()));
      b.CreateAlignedStore(i32(0), here.sharedAt(word), Align(4));
    });

  // Whether the sums are to be used.
  auto emitFast = [&](Value *which) -> Value * {
    WgmmaProduct product = makeWgmmaProduct(0);
    note(product);
    setStages(product, which);
    AccuracyFlags flags;
    Value *isAccurate = nullptr;
    withRecomputedIndices([&] {
      Accumulators accumulators = consume(product, flags);
      if (!isPrepacked())
        e.emitIf(b.CreateICmpSLT(b.CreateAdd(which, i64(1)), numTiles),
                 [&] { releaseProducers(); });
      isAccurate = b.CreateNot(flags.isInaccurate);
      auto store = [&] {
        if (flagsPerThread)
          freeAccumulators();
        withRecomputedIndices(
            [&] { storeWgmmaAccumulators(accumulators, here.accumulatorsBase(0)); });
        withRecomputedIndices([&] { recomputeFlagged(product, flags, here.accumulatorsBase(0)); });
      };
      flagsPerThread ? store() : e.emitIf(isAccurate, store);
    });
    Value *marks = flagsPerThread
                       ? flags.isInaccurate
                       : b.CreateAnd(flags.isInaccurate, b.CreateICmpEQ(here.thread, i32(0)));
    e.emitIf(marks, [&] {
      Value *bit =
          b.CreateShl(i32(1), b.CreateURem(b.CreateTrunc(which, b.getInt32Ty()), i32(tilesOfWord)));
      b.CreateAtomicRMW(AtomicRMWInst::Or, flaggedTilesWord(which), bit, Align(4),
                        AtomicOrdering::Monotonic, b.getContext().getOrInsertSyncScopeID("block"));
    });
    return isAccurate;
  };
  auto isTileFlagged = [&](Value *which) {
    Value *word = b.CreateAlignedLoad(b.getInt32Ty(), flaggedTilesWord(which), Align(4));
    Value *bit =
        b.CreateLShr(word, b.CreateURem(b.CreateTrunc(which, b.getInt32Ty()), i32(tilesOfWord)));
    return b.CreateTrunc(bit, b.getInt1Ty());
  };
  auto emitExact = [&] {
    Product product = makeMmaProduct(0);
    Accumulators accumulators = mmaMainloop(product, Path::Exact);
    storeAccumulators(accumulators, here.accumulatorsBase(0));
    if (!epilogue.recomputesNonFinite())
      return;
    barrier();
    epilogue.recomputeNonFinite();
  };

  if (!usesSplitPrecision()) {
    auto restOf = [&](ArrayRef<Value *> accumulators) {
      if (byWarps && epilogue.fitsRegisterEpilogue())
        return withRecomputedIndices([&] { epilogue.emitInRegisters(accumulators); });
      for (unsigned first = 0; first < warpgroupColumns(tile);
           first += here.warpgroupEpilogueColumns()) {
        freeAccumulators();
        withRecomputedIndices([&] {
          storeWgmmaAccumulators(accumulators.slice(first / 2, here.warpgroupEpilogueColumns() / 2),
                                 here.accumulatorsBase(0));
        });
        synchronize();
        if (epilogue.recomputesNonFinite()) { // by all threads then, and for all columns
          withRecomputedIndices([&] { epilogue.recomputeNonFinite(); });
          barrier();
        }
        emitEpilogue(first);
      }
    };
    std::optional<SplitKTail> tail = splitKTail();
    e.keepNextLoopRolled = true;
    e.emitLoop(
        i64(0), numTiles, i64(1), {},
        [&](Value *which, ArrayRef<Value *>) {
          setTileOfBlock(which);
          WgmmaProduct product = makeWgmmaProduct(0);
          note(product);
          setStages(product, which);
          AccuracyFlags flags;
          Accumulators accumulators;
          withRecomputedIndices([&] { accumulators = consume(product, flags); });
          if (!tail) {
            restOf(accumulators);
            return SmallVector<Value *>();
          }
          Value *isWhole = b.CreateICmpULT(which, i64(tail->whole));
          e.emitIf(isWhole, [&] { restOf(accumulators); });
          e.emitIf(b.CreateNot(isWhole),
                   [&] { withRecomputedIndices([&] { storeTailSlice(*tail, accumulators); }); });
          return SmallVector<Value *>();
        },
        "tile");
    tailSlice.reset();
    if (inBulk)
      epilogue.awaitLines(/*untilWritten=*/false);
    return;
  }

  // All tiles, then all again for those with a mark. Carried: whether any has one.
  e.keepNextLoopRolled = true;
  e.emitLoop(
      i64(0), b.CreateShl(numTiles, i64(1)), i64(1), {b.getFalse()},
      [&](Value *number, ArrayRef<Value *> carried) -> SmallVector<Value *> {
        Value *isFirst = b.CreateICmpSLT(number, numTiles);
        Value *which = b.CreateSelect(isFirst, number, b.CreateSub(number, numTiles));
        Value *anyFlagged = carried.front();
        if (flagsPerThread) // until all tiles have been summed up each thread knows its own marks
          anyFlagged = e.emitIfElse(
              b.CreateICmpEQ(number, numTiles), [&] { return isAny(anyFlagged); }, anyFlagged);
        Value *isRecomputed = b.CreateAnd(b.CreateNot(isFirst), anyFlagged);
        // The rest of the tile before is done, and its mark set.
        auto endTile = [&] {
          if (inBulk) // before a line is written again, or scales where it was
            epilogue.awaitLines(/*untilWritten=*/flagsPerThread);
          barrier();
        };
        flagsPerThread ? e.emitIf(isRecomputed, endTile) : endTile();
        isRecomputed =
            e.emitIfElse(isRecomputed, [&] { return isTileFlagged(which); }, b.getFalse());
        auto emitFastOrExact = [&] {
          setTileOfBlock(which);
          Value *isAccurate = e.emitIfElse(isFirst, [&] { return emitFast(which); }, b.getTrue());
          e.emitIf(isRecomputed, [&] {
            withRecomputedIndices(emitExact);
            if (byWarps)
              barrier();
          });
          synchronize();
          flagsPerThread ? emitEpilogue() : e.emitIf(isAccurate, [&] { emitEpilogue(); });
          return isAccurate;
        };
        Value *isAccurate =
            e.emitIfElse(b.CreateOr(isFirst, isRecomputed), emitFastOrExact, b.getTrue());
        return {b.CreateOr(anyFlagged, b.CreateNot(isAccurate))};
      },
      "tile");
  if (inBulk)
    epilogue.awaitLines(/*untilWritten=*/false);
}
