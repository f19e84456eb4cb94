//===- RegisterEpilogue.cpp - Epilogue in registers -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lane has sums of two neighbouring columns. Where a statement writes numbers of 16 bits the pair
// is one word, so the rest is done where sums are, in registers, and words, half as many bytes as
// sums, pass through the warp's lines of shared memory into the order of memory:
//
//   lane     0  1  2  3            of row 0, eight columns; 4 to 7 of row 1, ...      -> 16 rows of
//   64 columns lane     0 ... 7  8 ... 15     of row 0, 64 columns; of row 1, ...                ->
//   stores of 16 bytes a lane
//
// The words of a lane are rounded without a look at nan, which has a code of its own.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/Epilogue.h"

#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

/// Rows of a warp of a warpgroup, and columns that pass through its lines at a time.
static constexpr unsigned warpRows = EpiloguePlan::warpRows,
                          warpThreads = EpiloguePlan::warpThreads,
                          lineColumns = EpiloguePlan::lineColumns;
/// Columns and rows of the sums that lanes have of one number, and columns that a lane stores.
static constexpr unsigned blockColumns = 8, blockRows = 8,
                          storedColumns = EpiloguePlan::storedColumns;
static constexpr unsigned linePitch = EpiloguePlan::linePitch;

/// The words of pairs of numbers. The instruction for bf16 makes 0x7fff of a nan, which is the
/// largest half of a word that it makes; only then all are made as others have them.
SmallVector<Value *> Epilogue::wordsOf(ArrayRef<Value *> pairs, mlir::Type element) {
  auto encodeAll = [&] {
    SmallVector<Value *> words;
    for (Value *pair : pairs)
      words.push_back(b.CreateBitCast(e.encode(pair, element), b.getInt32Ty()));
    return words;
  };
  if (!element.isBF16() || !e.options.target.hasPackedBF16Convert)
    return encodeAll();
  constexpr unsigned madeOfNan = 0x7fff;
  SmallVector<Value *> words;
  Value *largest = nullptr;
  for (Value *pair : pairs) {
    Value *low = b.CreateExtractElement(pair, uint64_t(0)), *high = b.CreateExtractElement(pair, 1);
    words.push_back(b.CreateBitCast(b.CreateIntrinsic(Intrinsic::nvvm_ff2bf16x2_rn, {high, low}),
                                    b.getInt32Ty()));
    Value *halves = b.CreateBitCast(words.back(), FixedVectorType::get(b.getInt16Ty(), 2));
    largest = largest ? b.CreateBinaryIntrinsic(Intrinsic::smax, largest, halves) : halves;
  }
  auto isNan = [&](uint64_t half) {
    return b.CreateICmpEQ(b.CreateExtractElement(largest, half), b.getInt16(madeOfNan));
  };
  return e.emitIfElse(b.CreateOr(isNan(0), isNan(1)), encodeAll, words);
}

/// Two neighbours of a row of what is written. `sums`: the first is number `first`, of each product
/// that shares the tile.
Value *Epilogue::pairOf(tgl::WriteOp write, ArrayRef<Value *> sums, unsigned first) {
  mlir::Value axis = axes.getAxes()[plan.columns.back()];
  Value *result = nullptr, *number = e.values.lookup(axis);
  unsigned ofProduct = sums.size() / tile.joint;
  e.withLanes(axis, 2, number, nullptr, [&] {
    for (auto [which, product] : enumerate(plan.products)) {
      auto *type = FixedVectorType::get(here.accumulatorType(), 2);
      bool isInFirst = which && tile.accumulated;
      Value *pair =
          isInFirst ? static_cast<Value *>(Constant::getNullValue(type)) : PoisonValue::get(type);
      for (unsigned n = isInFirst ? 2 : 0; n < 2; ++n)
        pair = b.CreateInsertElement(pair, sums[which * ofProduct + first + n], uint64_t(n));
      e.values[tgl::ReduceOp(product.reduce).getResult()] = pair;
    }
    for (mlir::Operation *op :
         concat<mlir::Operation *const>(parts.early, parts.values, parts.effects))
      if (op != write)
        e.emitOp(op);
    result = e.splat(e.valueOf(write.getValue()));
  });
  e.values[axis] = number;
  return result;
}

/// Eight columns of each of the warp's lines to their places.
void Epilogue::storeWords(tgl::WriteOp write, Value *lines, unsigned firstColumn) {
  constexpr unsigned lanesOfRow = lineColumns / storedColumns,
                     rowsAtOnce = warpThreads / lanesOfRow;
  TileCoord corner = warpgroupCorner(b, tile, here.thread);
  Value *warp =
      b.CreateAnd(b.CreateLShr(here.thread, i32(5)), i32(Wgmma::threads / warpThreads - 1));
  Value *inWarp = b.CreateUDiv(here.lane, i32(lanesOfRow)),
        *chunk = b.CreateURem(here.lane, i32(lanesOfRow));
  Value *row = b.CreateAdd(b.CreateAdd(corner.row, b.CreateMul(warp, i32(warpRows))), inWarp);
  Value *column = b.CreateAdd(b.CreateAdd(corner.column, b.CreateMul(chunk, i32(storedColumns))),
                              i32(firstColumn));
  Value *from = b.CreateAdd(b.CreateAdd(lines, b.CreateMul(inWarp, i32(linePitch))),
                            b.CreateMul(chunk, i32(16)));
  Value *columnNumber = b.CreateAdd(here.columns.first, wide(column)),
        *rowNumber = b.CreateAdd(here.rows.first, wide(row));
  tgl::TglTensorType type = write.getTensor().getType();
  auto *chunkType = FixedVectorType::get(b.getInt32Ty(), 4);
  Type *elementType = b.getInt16Ty();
  auto store = [&] {
    setColumn(columnNumber);
    SmallVector<Value *> chunks;
    for (unsigned first = 0; first < warpRows; first += rowsAtOnce)
      chunks.push_back(b.CreateAlignedLoad(
          chunkType, here.sharedAt(b.CreateAdd(from, i32(first * linePitch))), Align(16)));
    for (auto [n, chunk] : enumerate(chunks)) {
      Value *number = b.CreateAdd(rowNumber, i64(n * rowsAtOnce));
      auto storeRow = [&, chunk = chunk] {
        setRow(number);
        Value *offset = e.emitIndex(tgl::elementOffset(type, write.getSubscriptExprs()));
        Value *to = b.CreateInBoundsGEP(elementType,
                                        e.buffers.find(write.getTensor())->second.pointer, offset);
        b.CreateAlignedStore(chunk, to, Align(16));
      };
      here.rows.fits ? storeRow() : e.emitIf(b.CreateICmpSLT(number, here.rows.total), storeRow);
    }
  };
  here.columns.fits ? store() : e.emitIf(b.CreateICmpSLT(columnNumber, here.columns.total), store);
}

/// The rest of a tile from the sums in registers.
void Epilogue::emitInRegisters(ArrayRef<Value *> accumulators) {
  tgl::WriteOp write = parts.registerWrite();
  TileCoord first = wgmmaAccumulatorAt(b, tile, here.thread, here.lane, b.getInt32(0));
  Value *lines =
      b.CreateAdd(b.CreateMul(b.CreateLShr(here.thread, i32(5)), i32(warpRows * linePitch)),
                  i32(here.accumulatorsBase(0)));
  Value *ownLine = b.CreateMul(b.CreateLShr(here.lane, i32(2)), i32(linePitch));
  Value *own = b.CreateAdd(ownLine, b.CreateShl(b.CreateAnd(here.lane, i32(3)), i32(2)));
  own = b.CreateAdd(lines, own);
  auto numberIn = [&](const TileDim &group, Value *inTile, unsigned neighbours) {
    Value *number = b.CreateAdd(group.first, wide(inTile));
    return group.fits ? number
                      : b.CreateBinaryIntrinsic(Intrinsic::smin, number,
                                                b.CreateSub(group.total, i64(neighbours)));
  };
  for (unsigned start = 0; start < warpgroupColumns(tile) / tile.joint; start += lineColumns) {
    SmallVector<Value *> pairs;
    for (unsigned block = 0; block < lineColumns / blockColumns; ++block) {
      Value *column = b.CreateAdd(first.column, i32(start + block * blockColumns));
      setColumn(numberIn(here.columns, column, 2));
      for (unsigned half = 0; half < warpRows / blockRows; ++half) {
        setRow(numberIn(here.rows, b.CreateAdd(first.row, i32(half * blockRows)), 1));
        unsigned number = (start / blockColumns + block) * 4 + half * 2;
        pairs.push_back(pairOf(write, accumulators, number));
      }
    }
    SmallVector<Value *> words = wordsOf(pairs, write.getTensor().getType().getElementType());
    syncWarp(); // the lines before have been read
    for (auto [n, word] : enumerate(words)) {
      unsigned place = n % 2 * blockRows * linePitch + n / 2 * blockColumns * 2;
      b.CreateAlignedStore(word, here.sharedAt(b.CreateAdd(own, i32(place))), Align(4));
    }
    syncWarp();
    storeWords(write, lines, start);
  }
}
