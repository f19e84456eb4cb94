//===- SplitK.cpp - Split-K and its cluster reduction ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Few tiles with long sums leave most multiprocessors idle, so several blocks take parts of a
// tile's sums:
//
//   a cluster   of up to eight, where as many find room as there are: each sends the others its
//   sums of their rows, into their
//               shared memory, adds up what it gets in the order of the parts, and does the rest of
//               the statement for its rows
//   others      leave their sums in the workspace; a second function adds them up in order, with as
//   many blocks as there is
//               work for, and does the rest
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/SplitK.h"

#include "codegen/async/Async.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

/// Each thread's elements of the tile's rows that are this block's, neighbouring threads along
/// columns.
void SplitK::forThreadElements(
    function_ref<void(unsigned number, Value *row, Value *column)> body) {
  for (unsigned number = 0; number < here.epilogueRows * tile.columns / numbers.threads();
       ++number) {
    Value *element = b.CreateAdd(here.thread, i32(number * numbers.threads()));
    body(number, b.CreateUDiv(element, i32(tile.columns)),
         b.CreateURem(element, i32(tile.columns)));
  }
}

/// The sum of this thread's element `number` of those from `first` (i64) on, of one product and one
/// block of those that share the tile.
Value *SplitK::partialAddress(Value *blockNumber, unsigned product, Value *first, unsigned number) {
  Value *start = b.CreateMul(blockNumber, i64(numbers.blockWorkspaceBytes()));
  Value *base = b.CreateInBoundsGEP(b.getInt8Ty(), context.workspace,
                                    b.CreateAdd(start, e.emitSize(numbers.prepackedBytes())));
  base = b.CreateInBoundsGEP(b.getFloatTy(), base, b.CreateAdd(wide(here.thread), first));
  return b.CreateInBoundsGEP(b.getFloatTy(), base,
                             i64(product * tile.rows * tile.columns + number * numbers.threads()));
}

//===----------------------------------------------------------------------===//
// Blocks with parts of a sum
//===----------------------------------------------------------------------===//

/// Sets the block's tile and its part of the sum. Parts take turns, so neighbouring parts of a tile
/// read neighbours in memory. Where tiles are few it is worth more that what two of them have in
/// common is read at the same time.
void SplitK::setSplit() {
  std::optional<int64_t> tiles = numbers.numTiles().asConstant();
  Value *tileNumber;
  if (!numbers.usesClusterReduce() && tiles && *tiles <= TensorTile::maxTilesByPart) {
    tileNumber = wide(b.CreateURem(here.block, i32(*tiles)));
    context.split = wide(b.CreateUDiv(here.block, i32(*tiles)));
  } else {
    tileNumber = wide(b.CreateUDiv(here.block, i32(tile.splits)));
    context.split = wide(b.CreateURem(here.block, i32(tile.splits)));
  }
  context.partialIndex = b.CreateAdd(b.CreateMul(tileNumber, i64(tile.splits)), context.split);
  if (numbers.usesClusterReduce())
    b.GetInsertBlock()->getParent()->addFnAttr("nvvm.cluster_dim", std::to_string(tile.splits));
  indices.setTile(tileNumber);
}

/// By those who multiply.
void SplitK::startClusterReduce() {
  Value *barrier = here.sharedAt(i32(memory.receivedBarrier())),
        *isFirst = b.CreateICmpEQ(here.thread, i32(0));
  e.emitIf(isFirst, [&] { async::initCounts(b, barrier); });
  // Without a branch between them the first is an instruction of the whole warp, which races with
  // the second as far as compute-sanitizer knows.
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_bar_warp_sync, {i32(-1)});
  e.emitIf(isFirst, [&] { async::expect(b, barrier, i32(memory.receivedBytes())); });
  if (memory.hasReceiveBuffer())
    async::arriveAtCluster(b);
}

void SplitK::clusterReduce() {
  if (memory.hasReceiveBuffer()) {
    barrier();
    async::awaitCluster(b); // others have begun
  } else {
    async::syncCluster(b); // nobody's products read what lies where sums go
  }
  sendPartials();
  async::awaitPhase(b, here.sharedAt(i32(memory.receivedBarrier())), i32(0), /*ofCluster=*/true);
  reducePartials();
}

/// Four neighbours of a share at a time; `element` (i32): the first one's number.
void SplitK::forFoursOfPartials(
    function_ref<void(unsigned product, Value *row, Value *column, Value *element)> body) {
  constexpr unsigned count = 4;
  unsigned fours = memory.clusterReduceRows() * tile.columns / count;
  for (unsigned which = 0; which < products.size(); ++which)
    for (unsigned first = 0; first < fours; first += numbers.threads()) {
      Value *number = b.CreateAdd(here.thread, i32(first));
      auto emit = [&] {
        Value *element = b.CreateMul(number, i32(count));
        body(which, b.CreateUDiv(element, i32(tile.columns)),
             b.CreateURem(element, i32(tile.columns)), element);
      };
      first + numbers.threads() <= fours ? emit()
                                         : e.emitIf(b.CreateICmpULT(number, i32(fours)), emit);
    }
}

/// Where a block has what the one `slot` + 1 places after it in the cluster sends (i32).
Value *SplitK::receivedAddress(unsigned product, Value *slot, Value *element) {
  unsigned share = memory.clusterReduceRows() * tile.columns;
  Value *first =
      b.CreateMul(b.CreateAdd(b.CreateMul(slot, i32(products.size())), i32(product)), i32(share));
  return here.sharedAt(
      b.CreateAdd(b.CreateShl(b.CreateAdd(first, element), i32(2)), i32(memory.receivedBase())));
}

/// Each block begins with the one after it: none gets from all at once.
void SplitK::sendPartials() {
  constexpr unsigned clusterSpace = 7, count = 4;
  auto *vector = FixedVectorType::get(b.getFloatTy(), count);
  Value *own = b.CreateTrunc(context.split, b.getInt32Ty());
  for (int64_t after = 1; after < tile.splits; ++after) {
    Value *other = b.CreateURem(b.CreateAdd(own, i32(after)), i32(tile.splits));
    Value *firstRow = b.CreateMul(other, i32(memory.clusterReduceRows()));
    auto inOther = [&](Value *place) {
      return b.CreateIntrinsic(PointerType::get(b.getContext(), clusterSpace),
                               Intrinsic::nvvm_mapa_shared_cluster, {place, other});
    };
    Value *barrier = inOther(here.sharedAt(i32(memory.receivedBarrier())));
    forFoursOfPartials([&](unsigned product, Value *row, Value *column, Value *element) {
      Value *accumulators =
          b.CreateAlignedLoad(vector,
                              here.accumulatorAddress(b.CreateAdd(row, firstRow), column,
                                                      here.accumulatorsBase(product)),
                              Align(16));
      SmallVector<Value *> floats;
      for (unsigned n = 0; n < count; ++n)
        floats.push_back(b.CreateExtractElement(accumulators, n));
      async::storeToCluster(
          b, inOther(receivedAddress(product, i32(tile.splits - 1 - after), element)), floats,
          barrier);
    });
  }
}

/// In the order of the parts, whoever has which.
void SplitK::reducePartials() {
  auto *vector = FixedVectorType::get(here.accumulatorType(), 4);
  Value *own = b.CreateTrunc(context.split, b.getInt32Ty());
  here.selectRows(memory.clusterReduceRows(),
                  b.CreateMul(context.split, i64(memory.clusterReduceRows())));
  forFoursOfPartials([&](unsigned product, Value *row, Value *column, Value *element) {
    Value *ownPlace = here.accumulatorAddress(row, column, here.accumulatorsBase(product)),
          *accumulators = nullptr;
    for (int64_t slice = 0; slice < tile.splits; ++slice) {
      Value *slot = b.CreateURem(b.CreateSub(i32(slice + tile.splits - 1), own), i32(tile.splits));
      Value *place = b.CreateSelect(b.CreateICmpEQ(own, i32(slice)), ownPlace,
                                    receivedAddress(product, slot, element));
      Value *its = b.CreateAlignedLoad(vector, place, Align(16));
      accumulators = accumulators ? addAccumulators(accumulators, its) : its;
    }
    b.CreateAlignedStore(accumulators, ownPlace, Align(16));
  });
}

/// Leaves the block's sums in the workspace, four neighbours at a time.
void SplitK::storePartials() {
  constexpr unsigned count = 4;
  auto *type = FixedVectorType::get(here.accumulatorType(), count);
  for (unsigned which = 0; which < products.size(); ++which)
    for (unsigned number = 0; number < tile.rows * tile.columns / numbers.threads();
         number += count) {
      Value *first =
          b.CreateAdd(b.CreateMul(here.thread, i32(count)), i32(number * numbers.threads()));
      Value *row = b.CreateUDiv(first, i32(tile.columns)),
            *column = b.CreateURem(first, i32(tile.columns));
      Value *accumulators = b.CreateAlignedLoad(
          type, here.accumulatorAddress(row, column, here.accumulatorsBase(which)), Align(16));
      Value *further =
          wide(b.CreateMul(here.thread, i32(count - 1))); // than an element for each thread
      b.CreateAlignedStore(accumulators,
                           partialAddress(context.partialIndex, which, further, number), Align(16));
    }
}

//===----------------------------------------------------------------------===//
// The second function
//===----------------------------------------------------------------------===//

void SplitK::emitCombine() {
  here.begin();
  Value *tileNumber = wide(b.CreateUDiv(here.block, i32(numbers.combineBlocks())));
  indices.setTile(numbers.range ? b.CreateAdd(tileNumber, i64(numbers.range->first)) : tileNumber);
  Epilogue epilogue(here);
  epilogue.returnIfUnused();
  if (numbers.isWarpSpecialized())
    roles.runProducers([] {}); // who has no product to stage has nothing to do
  unsigned numRows = numbers.combineRows();
  Value *firstRow =
      b.CreateMul(wide(b.CreateURem(here.block, i32(numbers.combineBlocks()))), i64(numRows));
  Value *firstElement = b.CreateMul(firstRow, i64(tile.columns));
  here.selectSlice(numRows, firstRow);
  // Loads of several parts are under way at a time, about as many each time; they are added up in
  // order all the same.
  constexpr unsigned loadsAtOnce = 32;
  unsigned own = here.epilogueRows * tile.columns / numbers.threads(),
           most = std::max(1u, loadsAtOnce / own);
  int64_t ahead = divideCeil(tile.splits, divideCeil(tile.splits, int64_t(most)));
  for (unsigned which = 0; which < products.size(); ++which) {
    auto addSlices = [&](Value *slice, unsigned count, ArrayRef<Value *> current) {
      SmallVector<Value *> loaded;
      for (unsigned n = 0; n < count; ++n) {
        Value *from =
            b.CreateAdd(b.CreateMul(tileNumber, i64(tile.splits)), b.CreateAdd(slice, i64(n)));
        for (unsigned element = 0; element < own; ++element) {
          Value *place = partialAddress(from, which, firstElement, element);
          loaded.push_back(b.CreateAlignedLoad(here.accumulatorType(), place, Align(4)));
        }
      }
      Accumulators accumulators(current);
      for (auto [n, value] : enumerate(loaded))
        accumulators[n % own] = addAccumulators(accumulators[n % own], value);
      return accumulators;
    };
    int64_t whole = tile.splits / ahead * ahead;
    SmallVector<Value *> zeros(own, zeroAccumulator());
    Accumulators accumulators = e.emitLoop(
        i64(0), i64(whole), i64(ahead), zeros,
        [&](Value *slice, ArrayRef<Value *> current) { return addSlices(slice, ahead, current); },
        "part");
    accumulators = addSlices(i64(whole), tile.splits - whole, accumulators);
    forThreadElements([&](unsigned element, Value *row, Value *column) {
      b.CreateAlignedStore(accumulators[element],
                           here.accumulatorAddress(row, column, here.accumulatorsBase(which)),
                           Align(4));
    });
  }
  barrier();
  if (epilogue.recomputesNonFinite())
    epilogue.recomputeNonFinite();
  epilogue.emit();
}
