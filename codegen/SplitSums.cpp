//===- SplitSums.cpp - Sums that several blocks make together --------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Few tiles with long sums leave most multiprocessors idle, so several blocks take parts of a tile's sums and leave them in
// the workspace. A second function adds them up in order, with as many blocks as there is work for, and does the rest of
// the statement.
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceContraction.h"

#include "ir/TglUtils.h"

using namespace llvm;
using namespace tegula;

/// What a block leaves of its sums.
unsigned DeviceContraction::blockWorkspaceBytes() const {
  return tile.splits > 1 ? tile.rows * tile.columns * 4 * products.size() : 0;
}

/// Of a tile, added up by one block: few enough for all multiprocessors to take part, if threads have an element each.
unsigned DeviceContraction::combineRows() const {
  unsigned least = std::max<unsigned>(TileRest::interleavedRows(plan), threads() / tile.columns), own = 16;
  std::optional<int64_t> tiles = numTiles().asConstant();
  while (tiles && own > least && *tiles * (tile.rows / own) < 2 * int64_t(e.options.multiprocessors))
    own /= 2;
  return own;
}

/// Each thread's elements of the tile's rows that are this block's, neighbouring threads along columns.
void DeviceContraction::forOwnElements(function_ref<void(unsigned number, Value *row, Value *column)> body) {
  for (unsigned number = 0; number < here.restRows * tile.columns / threads(); ++number) {
    Value *element = b.CreateAdd(here.thread, i32(number * threads()));
    body(number, b.CreateUDiv(element, i32(tile.columns)), b.CreateURem(element, i32(tile.columns)));
  }
}

/// The sum of this thread's element `number` of those from `first` (i64) on, of one product and one block of those
/// that share the tile.
Value *DeviceContraction::partialSum(Value *workspace, Value *blockNumber, unsigned product, Value *first,
                                     unsigned number) {
  Value *start = b.CreateMul(blockNumber, i64(blockWorkspaceBytes()));
  Value *base = b.CreateInBoundsGEP(b.getInt8Ty(), workspace, b.CreateAdd(start, e.emitSize(packedBytes())));
  base = b.CreateInBoundsGEP(b.getFloatTy(), base, b.CreateAdd(wide(here.thread), first));
  return b.CreateInBoundsGEP(b.getFloatTy(), base,
                             i64(product * tile.rows * tile.columns + number * threads()));
}

void DeviceContraction::emitCombine(Value *workspace) {
  here.begin();
  Value *tileNumber = wide(b.CreateUDiv(here.block, i32(combineBlocks())));
  setTile(tileNumber);
  TileRest rest(here);
  rest.endIfUnused();
  if (hasRoles())
    splitOff([] {}); // who has no product to stage has nothing to do
  unsigned numRows = combineRows();
  Value *firstRow = b.CreateMul(wide(b.CreateURem(here.block, i32(combineBlocks()))), i64(numRows));
  Value *firstElement = b.CreateMul(firstRow, i64(tile.columns));
  here.takePart(numRows, firstRow);
  // Loads of several parts are under way at a time, about as many each time; they are added up in order all the same.
  constexpr unsigned loadsAtOnce = 32;
  unsigned own = here.restRows * tile.columns / threads(), most = std::max(1u, loadsAtOnce / own);
  int64_t ahead = divideCeil(tile.splits, divideCeil(tile.splits, int64_t(most)));
  for (unsigned which = 0; which < products.size(); ++which) {
    auto addParts = [&](Value *part, unsigned count, ArrayRef<Value *> current) {
      SmallVector<Value *> loaded;
      for (unsigned n = 0; n < count; ++n) {
        Value *from = b.CreateAdd(b.CreateMul(tileNumber, i64(tile.splits)), b.CreateAdd(part, i64(n)));
        for (unsigned element = 0; element < own; ++element) {
          Value *place = partialSum(workspace, from, which, firstElement, element);
          loaded.push_back(b.CreateAlignedLoad(here.sumType(), place, Align(4)));
        }
      }
      Sums sums(current);
      for (auto [n, value] : enumerate(loaded))
        sums[n % own] = addSums(sums[n % own], value);
      return sums;
    };
    int64_t whole = tile.splits / ahead * ahead;
    SmallVector<Value *> zeros(own, zeroSum());
    Sums sums = e.emitLoop(
        i64(0), i64(whole), i64(ahead), zeros,
        [&](Value *part, ArrayRef<Value *> current) { return addParts(part, ahead, current); }, "part");
    sums = addParts(i64(whole), tile.splits - whole, sums);
    forOwnElements([&](unsigned element, Value *row, Value *column) {
      b.CreateAlignedStore(sums[element], here.sumPlace(row, column, here.sumsBase(which)), Align(4));
    });
  }
  barrier();
  if (rest.mends())
    rest.mendSums();
  rest.emit();
}
