//===- PersistentTiles.cpp - Blocks that go on with another tile -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A multiprocessor has room for one block with roles. Where such a block ends with its tile nothing is brought
// while the rest of the statement is done, and nothing is multiplied until the next block's first operands have
// come. So there is one block for each multiprocessor, it takes every so many-th tile, and its sums have a place
// of their own in shared memory:
//
//   producers    for each tile of the block:  bring its operands
//   consumers    for each tile of the block:  multiply, store sums; the rest of the statement, or a mark
//                                             where sums are not to be used
//                for each with a mark:        sum up with care, in the shared memory of the ring; the rest
//
// Planes of packed operands go through the ring without a break. Where producers find scales themselves they wait
// for those of the tile before to have been read, with the next elements already on their way where a tile has no more
// stages than the ring.
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceContraction.h"

#include "ir/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace llvm;
using namespace tegula;

/// A bit for each tile of a block.
static constexpr unsigned maskBytes = TileMemory::maskBytes, tilesOfWord = 32;
static constexpr int64_t mostTiles = 8 * maskBytes;

//===----------------------------------------------------------------------===//
// Numbers known to the host
//===----------------------------------------------------------------------===//

unsigned DeviceContraction::maskBase() const { return here.sumsBase(0) + sumsBytes(); }

IndexExpr DeviceContraction::persistentBlocks() const {
  IndexExpr tiles = numTiles(), least = IndexExpr::floorDiv(tiles + (mostTiles - 1), mostTiles);
  return IndexExpr::min(tiles, IndexExpr::max(least, int64_t(e.options.multiprocessors)));
}

//===----------------------------------------------------------------------===//
// A block's tiles
//===----------------------------------------------------------------------===//

/// Whether tiles are known to have numbers of 32 bits. The first division of 64 bits in a function takes ptxas milliseconds.
bool DeviceContraction::hasShortTileNumbers() const {
  std::optional<int64_t> tiles = numTiles().asConstant();
  return !isPersistent() || (tiles && isInt<32>(*tiles));
}

/// Those of which the block makes a part of the sum, too; i64.
Value *DeviceContraction::numOwnTiles() {
  if (std::optional<Tail> left = tail())
    return numOwnTiles(*left);
  if (hasShortTileNumbers()) { // there are no more blocks than tiles
    Value *further = b.CreateSub(i32(*numTiles().asConstant() - 1), here.block);
    Value *blocks = here.special(Intrinsic::nvvm_read_ptx_sreg_nctaid_x);
    return wide(b.CreateAdd(b.CreateUDiv(further, blocks), i32(1)));
  }
  Value *tiles = b.CreateMul(ceilDiv(here.rows.total, i64(tile.rows)), ceilDiv(here.columns.total, i64(tile.columns)));
  tiles = b.CreateMul(tiles, here.pointsOf(axes, plan.batch));
  return ceilDiv(b.CreateSub(tiles, wide(here.block)), wide(here.special(Intrinsic::nvvm_read_ptx_sreg_nctaid_x)));
}

/// The `which`-th (i64) of the block.
void DeviceContraction::setOwnTile(Value *which) {
  if (std::optional<Tail> left = tail())
    return setOwnTile(*left, which);
  Value *blocks = wide(here.special(Intrinsic::nvvm_read_ptx_sreg_nctaid_x));
  setTile(b.CreateAdd(wide(here.block), b.CreateMul(which, blocks)));
}

/// Where the stages of the `which`-th tile are among all of the block's.
void DeviceContraction::setStages(PlaneProduct &product, Value *which) {
  if (!hasCopiers())
    return;
  if (std::optional<Tail> left = tail()) {
    product.stagesBefore = b.CreateMul(i64(left->stages), which);
    product.stagesEver = numOwnStages(*left);
    return;
  }
  product.stagesBefore = b.CreateMul(numStages(product), which);
  product.stagesEver = b.CreateMul(numStages(product), numOwnTiles());
  if (memory.linesBytes()) // those of the tile before may still be needed
    product.scalesBefore = b.CreateMul(b.CreateAnd(b.CreateTrunc(which, b.getInt32Ty()), i32(1)), i32(tile.rows + tile.columns));
}

/// The word with the bit of the `which`-th (i64).
Value *DeviceContraction::maskWord(Value *which) {
  Value *number = b.CreateUDiv(b.CreateTrunc(which, b.getInt32Ty()), i32(tilesOfWord));
  return here.sharedAt(b.CreateAdd(b.CreateShl(number, i32(2)), i32(maskBase())));
}

/// `body` reckons places anew: what it would share with other tiles takes the registers that sums need.
void DeviceContraction::forItself(function_ref<void()> body) {
  SaveAndRestore number(here.thread, here.opaqueThread());
  SaveAndRestore ofWarp(here.lane, b.CreateAnd(here.thread, i32(31)));
  SaveAndRestore its(here.corner, warpCorner(b, tile, here.thread));
  body();
}

/// Whether all tiles have the same rows (columns) of the statement.
bool DeviceContraction::hasOneTile(const Group &group) const {
  std::optional<int64_t> lines = tgl::knownPoints(axes, group.axes), batches = tgl::knownPoints(axes, plan.batch);
  return lines && *lines <= group.extent && batches == 1;
}

/// Sets the block's `which`-th tile (i64); its product, of which the side that all tiles have in common is not staged.
PlaneProduct DeviceContraction::setMovingTile(Value *which) {
  setOwnTile(which);
  PlaneProduct product = makePlaneProduct(0);
  product.row.isStaged = !hasOneTile(here.rows);
  product.column.isStaged = !product.row.isStaged || !hasOneTile(here.columns);
  return product;
}

/// Tiles of `count` stages, for which the ring has room. Each has the same place there in all tiles, so what all tiles
/// have in common, weights mostly, is stored once and stays. Of the rest the first units of the next tile are loaded
/// while consumers are at the one before: nothing else hides the latency of memory where sums are short.
void DeviceContraction::produceShortTiles(unsigned count) {
  constexpr unsigned mostAhead = 4; // units, each eight registers
  Value *lastTile = b.CreateSub(numOwnTiles(), i64(1));
  PlaneProduct resident = setMovingTile(i64(0));
  resident.row.isStaged = !resident.row.isStaged;
  resident.column.isStaged = !resident.column.isStaged;
  if (unitsOfStage(resident))
    forItself([&] { storeFew(resident, count, loadNext(resident, i64(0)), [](unsigned) {}); });

  auto loadAhead = [&](Value *which) {
    PlaneProduct product = setMovingTile(which);
    SmallVector<Value *> units;
    for (unsigned number = 0; number < count && units.size() + unitsOfStage(product) <= mostAhead; ++number)
      units.append(loadNext(product, i64(number)));
    return units;
  };
  SmallVector<Value *> first;
  forItself([&] { first = loadAhead(i64(0)); });
  e.nextLoopStays = true;
  e.emitLoop(
      i64(0), numOwnTiles(), i64(1), first,
      [&](Value *which, ArrayRef<Value *> current) {
        SmallVector<Value *> units(current), next;
        PlaneProduct product = setMovingTile(which);
        forItself([&] {
          if (units.empty())
            units = loadNext(product, i64(0));
          e.emitIf(b.CreateICmpNE(which, i64(0)), [&] { waitAt(i32(Again)); });
          produceFew(product, count, units);
          Value *following = b.CreateAdd(which, i64(1)); // the last again where there is none
          next = loadAhead(b.CreateBinaryIntrinsic(Intrinsic::smin, following, lastTile));
        });
        return next;
      },
      "tile");
}

void DeviceContraction::produceOwnTiles() {
  if (unsigned count = hasCopiers() ? 0 : fewStages(makePlaneProduct(0)))
    return produceShortTiles(count);
  e.nextLoopStays = true;
  e.emitLoop(
      i64(0), numOwnTiles(), i64(1), hasCopiers() ? noCopies() : SmallVector<Value *>(),
      [&](Value *which, ArrayRef<Value *> copies) {
        SmallVector<Value *> next;
        setOwnTile(which);
        if (!hasCopiers())
          e.emitIf(b.CreateICmpNE(which, i64(0)), [&] { waitAt(i32(Again)); });
        PlaneProduct product = makePlaneProduct(0);
        setStages(product, which);
        forItself([&] {
          if (hasCopiers())
            next = produceCopies(product, copies);
          else
            produce(product);
        });
        return next;
      },
      "tile");
  ownPart.reset();
  if (!hasCopiers())
    return;
  PlaneProduct product = makePlaneProduct(0);
  setStages(product, i64(0));
  endCopies(product, product.stagesEver);
}

void DeviceContraction::emitOwnTiles() {
  startRoles();
  TileRest rest(here);
  Value *numTiles = numOwnTiles();
  bool byWarps = restsByWarps(rest);
  SaveAndRestore alone(marksAlone, byWarps && memory.linesBytes()); // else scales lie where sums do
  bool inBulk = byWarps && rest.storesInBulk();
  auto meet = [&] { byWarps ? rest.meetInWarp() : barrier(); };
  auto freeSums = [&] { // the rest of the tile before is done
    if (inBulk)
      rest.awaitLines(/*untilWritten=*/false);
    meet();
  };
  auto emitOwnRest = [&](unsigned first = 0) { forItself([&] { byWarps ? rest.emitByWarp(first) : rest.emit(); }); };
  if (isSplit())
    e.emitIf(b.CreateICmpULT(here.thread, i32(maskBytes / 4)), [&] {
      Value *word = b.CreateAdd(b.CreateShl(here.thread, i32(2)), i32(maskBase()));
      b.CreateAlignedStore(i32(0), here.sharedAt(word), Align(4));
    });

  // Whether the sums are to be used.
  auto sumUpFast = [&](Value *which) -> Value * {
    PlaneProduct product = makePlaneProduct(0);
    note(product);
    setStages(product, which);
    Doubts doubts;
    Value *isSafe = nullptr;
    forItself([&] {
      Sums sums = consume(product, doubts);
      if (!isPacked())
        e.emitIf(b.CreateICmpSLT(b.CreateAdd(which, i64(1)), numTiles), [&] { letProducersGoOn(); });
      isSafe = b.CreateNot(doubts.isUnsafe);
      auto store = [&] {
        if (marksAlone)
          freeSums();
        forItself([&] { storeGroupSums(sums, here.sumsBase(0)); });
        forItself([&] { mendLoneSums(product, doubts, here.sumsBase(0)); });
      };
      marksAlone ? store() : e.emitIf(isSafe, store);
    });
    Value *marks = marksAlone ? doubts.isUnsafe : b.CreateAnd(doubts.isUnsafe, b.CreateICmpEQ(here.thread, i32(0)));
    e.emitIf(marks, [&] {
      Value *bit = b.CreateShl(i32(1), b.CreateURem(b.CreateTrunc(which, b.getInt32Ty()), i32(tilesOfWord)));
      b.CreateAtomicRMW(AtomicRMWInst::Or, maskWord(which), bit, Align(4), AtomicOrdering::Monotonic,
                        b.getContext().getOrInsertSyncScopeID("block"));
    });
    return isSafe;
  };
  auto isMarked = [&](Value *which) {
    Value *word = b.CreateAlignedLoad(b.getInt32Ty(), maskWord(which), Align(4));
    Value *bit = b.CreateLShr(word, b.CreateURem(b.CreateTrunc(which, b.getInt32Ty()), i32(tilesOfWord)));
    return b.CreateTrunc(bit, b.getInt1Ty());
  };
  auto sumUpCarefully = [&] {
    Product product = makeProduct(0);
    Sums sums = sumUp(product, Code::Careful);
    storeSums(sums, here.sumsBase(0));
    if (!rest.mends())
      return;
    barrier();
    rest.mendSums();
  };

  if (!isSplit()) {
    auto restOf = [&](ArrayRef<Value *> sums) {
      if (byWarps && rest.fitsPairs())
        return forItself([&] { rest.emitOfPairs(sums); });
      for (unsigned first = 0; first < groupColumns(tile); first += here.placedColumns()) {
        freeSums();
        forItself([&] { storeGroupSums(sums.slice(first / 2, here.placedColumns() / 2), here.sumsBase(0)); });
        meet();
        if (rest.mends()) { // by all threads then, and for all columns
          forItself([&] { rest.mendSums(); });
          barrier();
        }
        emitOwnRest(first);
      }
    };
    std::optional<Tail> left = tail();
    e.nextLoopStays = true;
    e.emitLoop(
        i64(0), numTiles, i64(1), {},
        [&](Value *which, ArrayRef<Value *>) {
          setOwnTile(which);
          PlaneProduct product = makePlaneProduct(0);
          note(product);
          setStages(product, which);
          Doubts doubts;
          Sums sums;
          forItself([&] { sums = consume(product, doubts); });
          if (!left) {
            restOf(sums);
            return SmallVector<Value *>();
          }
          Value *isWhole = b.CreateICmpULT(which, i64(left->whole));
          e.emitIf(isWhole, [&] { restOf(sums); });
          e.emitIf(b.CreateNot(isWhole), [&] { forItself([&] { leavePart(*left, sums); }); });
          return SmallVector<Value *>();
        },
        "tile");
    ownPart.reset();
    if (inBulk)
      rest.awaitLines(/*untilWritten=*/false);
    return;
  }

  // All tiles, then all again for those with a mark. Carried: whether any has one.
  e.nextLoopStays = true;
  e.emitLoop(
      i64(0), b.CreateShl(numTiles, i64(1)), i64(1), {b.getFalse()},
      [&](Value *number, ArrayRef<Value *> carried) -> SmallVector<Value *> {
        Value *isFirst = b.CreateICmpSLT(number, numTiles);
        Value *which = b.CreateSelect(isFirst, number, b.CreateSub(number, numTiles));
        Value *anyMarked = carried.front();
        if (marksAlone) // until all tiles have been summed up each thread knows its own marks
          anyMarked = e.emitIfElse(b.CreateICmpEQ(number, numTiles), [&] { return isAny(anyMarked); }, anyMarked);
        Value *isAgain = b.CreateAnd(b.CreateNot(isFirst), anyMarked);
        // The rest of the tile before is done, and its mark set.
        auto endTile = [&] {
          if (inBulk) // before a line is written again, or scales where it was
            rest.awaitLines(/*untilWritten=*/marksAlone);
          barrier();
        };
        marksAlone ? e.emitIf(isAgain, endTile) : endTile();
        isAgain = e.emitIfElse(isAgain, [&] { return isMarked(which); }, b.getFalse());
        auto sumUpTile = [&] {
          setOwnTile(which);
          Value *isSafe = e.emitIfElse(isFirst, [&] { return sumUpFast(which); }, b.getTrue());
          e.emitIf(isAgain, [&] {
            forItself(sumUpCarefully);
            if (byWarps)
              barrier();
          });
          meet();
          marksAlone ? emitOwnRest() : e.emitIf(isSafe, [&] { emitOwnRest(); });
          return isSafe;
        };
        Value *isSafe = e.emitIfElse(b.CreateOr(isFirst, isAgain), sumUpTile, b.getTrue());
        return {b.CreateOr(anyMarked, b.CreateNot(isSafe))};
      },
      "tile");
  if (inBulk)
    rest.awaitLines(/*untilWritten=*/false);
}
