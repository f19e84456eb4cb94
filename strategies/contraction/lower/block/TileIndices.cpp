//===- TileIndices.cpp - Which tile, which points of K and which element ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile is numbered along the batch, in it along stretches of rows, in them along columns. A K
// loop is numbered along its axes, in the statement's order or another (KOrder).
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/block/TileIndices.h"

#include "codegen/common/StorageTypes.h"
#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// Where the tile lies: points of the batch, in them stretches of rows, in them columns, rows
/// fastest. Points that share an image are faster still: it is in the second-level cache when the
/// next of them reads it.
void TileIndices::setTile(Value *number) {
  int64_t rasterRows = numbers.raster();
  // One for each block is less than 2^31, and of 32 bits divisions are short.
  auto *type = numbers.tileNumbersFit32Bit() ? b.getInt32Ty() : b.getInt64Ty();
  auto constant = [&](int64_t value) { return ConstantInt::get(type, value); };
  number = b.CreateTrunc(number, type);
  Value *rowTiles = b.CreateTrunc(ceilDiv(here.rows.total, i64(tile.rows)), type),
        *columnTiles =
            b.CreateTrunc(ceilDiv(here.columns.total, i64(tile.statementColumns())), type);
  Value *term = b.CreateMul(rowTiles, columnTiles);
  context.batch = i64(0);
  if (!plan.batch.empty()) {
    if (numbers.batchSharesImage()) {
      Value *points = b.CreateTrunc(here.pointsOf(axes, plan.batch), type);
      context.batch = wide(b.CreateURem(number, points));
      number = b.CreateUDiv(number, points);
    } else {
      context.batch = wide(b.CreateUDiv(number, term));
    }
    here.setNumber(axes, plan.batch, false, context.batch);
  }
  if (!plan.batch.empty() || isa<Constant>(term)) // else it is less; of a constant LLVM learns that
    number = b.CreateURem(number, term);
  if (numbers.tileNumbersFit32Bit()) // no number is larger than a stretch of so many
    columnTiles = b.CreateBinaryIntrinsic(Intrinsic::umin, columnTiles,
                                          constant((int64_t(1) << 31) / rasterRows));
  Value *stretch = b.CreateMul(columnTiles, constant(rasterRows));
  Value *firstTile = b.CreateMul(b.CreateUDiv(number, stretch), constant(rasterRows));
  Value *height = b.CreateBinaryIntrinsic(Intrinsic::umin, b.CreateSub(rowTiles, firstTile),
                                          constant(rasterRows));
  Value *within = b.CreateURem(number, stretch);
  Value *row = b.CreateAdd(firstTile, b.CreateURem(within, height));
  here.rows.first = b.CreateMul(wide(row), i64(tile.rows));
  here.columns.first =
      b.CreateMul(wide(b.CreateUDiv(within, height)), i64(tile.statementColumns()));
}

//===----------------------------------------------------------------------===//
// Points of a K loop
//===----------------------------------------------------------------------===//

TileIndices::GroupedPoint TileIndices::groupedPoint(const KOrder &order, Value *k) {
  Value *group = b.CreateUDiv(k, i64(order.groupPoints)),
        *within = b.CreateURem(k, i64(order.groupPoints));
  Value *chunk = b.CreateUDiv(within, i64(KOrder::channelVector)),
        *tap = b.CreateUDiv(chunk, i64(order.groupVectors));
  Value *run = b.CreateAdd(b.CreateMul(group, i64(order.groupVectors)),
                           b.CreateURem(chunk, i64(order.groupVectors)));
  Value *channel = b.CreateAdd(b.CreateMul(run, i64(KOrder::channelVector)),
                               b.CreateURem(within, i64(KOrder::channelVector)));
  Value *isTap = b.CreateICmpULT(tap, i64(order.taps));
  if (order.isReversed)
    tap = b.CreateBinaryIntrinsic(Intrinsic::smax, b.CreateSub(i64(order.taps - 1), tap), i64(0));
  return {channel, tap, isTap};
}

/// Sets the summed axes to point `k` (i64).
void TileIndices::setPoint(tgl::ReduceOp reduce, const KLoop &sum, bool collapses, Value *k) {
  tgl::AxesOp summed = cast<tgl::AxesOp>(reduce.getOperation());
  if (!sum.isReordered)
    return here.setNumber(summed, sum.order.axes, collapses, k);
  unsigned last = sum.order.axes.back();
  if (sum.order.groupVectors) {
    GroupedPoint point = groupedPoint(sum.order, k);
    e.values[summed.getAxes()[last]] =
        b.CreateAdd(point.channel, e.emitIndex(e.lowOf(summed, last)));
    here.setNumber(summed, ArrayRef(sum.order.axes).drop_back(), false, point.tap);
    return;
  }
  e.values[summed.getAxes()[last]] =
      b.CreateAdd(b.CreateURem(k, i64(sum.order.padded)), e.emitIndex(e.lowOf(summed, last)));
  here.setNumber(summed, ArrayRef(sum.order.axes).drop_back(), false,
                 b.CreateUDiv(k, i64(sum.order.padded)));
}

/// Whether the sum has a point `k`; null: always.
Value *TileIndices::existsAt(tgl::ReduceOp reduce, const KLoop &sum, Value *k) {
  Value *exists = sum.fits ? nullptr : b.CreateICmpSLT(k, sum.total);
  if (!sum.isReordered)
    return exists;
  auto summed = cast<tgl::AxesOp>(reduce.getOperation());
  int64_t own = *tgl::knownPoints(summed, {sum.order.axes.back()});
  if (sum.order.groupVectors) {
    GroupedPoint point = groupedPoint(sum.order, k);
    return b.CreateAnd(point.isTap, b.CreateICmpSLT(point.channel, i64(own)));
  }
  if (own == sum.order.padded)
    return exists;
  return e.emitAnd(exists, b.CreateICmpSLT(b.CreateURem(k, i64(sum.order.padded)), i64(own)));
}

/// The block's step `number` (i64) among all of the sum.
Value *TileIndices::stepInKLoop(const KLoop &sum, Value *number) {
  if (tile.sumParts() == 1)
    return context.tailSlice
               ? b.CreateAdd(b.CreateMul(number, context.tailSlice->step), context.tailSlice->first)
               : number;
  Value *together = i64(sum.together);
  Value *turn =
      b.CreateAdd(context.split, b.CreateMul(b.CreateUDiv(number, together), i64(tile.sumParts())));
  return b.CreateAdd(b.CreateMul(turn, together), b.CreateURem(number, together));
}

/// The steps of a sum, each of `depth` points, that are this block's, `together` of them in a turn.
KLoop TileIndices::makeKLoop(tgl::ReduceOp reduce, int64_t depth, const KOrder &order,
                             unsigned together) {
  tgl::AxesOp summed = cast<tgl::AxesOp>(reduce.getOperation());
  KLoop sum;
  sum.order = order;
  sum.together = together;
  bool isPadded = order.padded && tgl::knownPoints(summed, {order.axes.back()}) != order.padded;
  sum.isReordered = isPadded || order.groupVectors || !llvm::is_sorted(order.axes);
  sum.total = order.padded ? i64(order.points(summed)) : here.pointsOf(summed, order.axes);
  std::optional<int64_t> known = tgl::knownPoints(summed);
  int64_t inTurn = depth * together;
  sum.fits = !isPadded && known && *known % inTurn == 0;
  Value *turns = context.tailSlice ? context.tailSlice->stages : ceilDiv(sum.total, i64(inTurn));
  if (tile.sumParts() > 1) {
    // The first parts have one turn more where there is a rest. (With bounds (steps * split) /
    // splits one part of 33 was lost on an H200 where the dividend passed 65,535, though PTX and
    // emulator have it right.) Parts take turns: neighbours in memory are then read at about the
    // same time.
    Value *each = b.CreateUDiv(turns, i64(tile.sumParts())),
          *longer = b.CreateURem(turns, i64(tile.sumParts()));
    turns = b.CreateAdd(each, b.CreateZExt(b.CreateICmpULT(context.split, longer), b.getInt64Ty()));
  }
  sum.steps = b.CreateMul(turns, i64(together));
  return sum;
}

//===----------------------------------------------------------------------===//
// Evaluated elements
//===----------------------------------------------------------------------===//

/// The product of a side's factors at a point of the sum and a row (or column).
Value *TileIndices::valueAt(tgl::ReduceOp reduce, const KLoop &sum, const ContractionSide &side,
                            const TileDim &group, Value *k, Value *number) {
  if (side.factors.size() != 1 || !side.factors.front().getDefiningOp<tgl::ReadOp>()) {
    // Divisions in subscripts of packed words and of scales become shifts that neighbours share
    // where the optimiser knows that nothing is negative.
    auto summed = cast<tgl::AxesOp>(reduce.getOperation());
    if (numbers.numbersFit32Bit(summed, sum.order.axes))
      k = wide(b.CreateTrunc(k, b.getInt32Ty()));
    if (numbers.numbersFit32Bit(axes, group.axes))
      number = wide(b.CreateTrunc(number, b.getInt32Ty()));
  }
  setPoint(reduce, sum, side.collapsesSum, k);
  here.setNumber(axes, group.axes, side.collapsesAxes, number);
  for (mlir::Operation *op : side.slice)
    e.emitOp(op);
  Value *result = nullptr;
  for (mlir::Value factor : side.factors) {
    Value *value = e.valueOf(factor);
    result = result ? b.CreateFMul(result, value) : value;
  }
  return result;
}

/// As bits of what is multiplied, which the value is a number of.
Value *TileIndices::narrow(MmaType type, const ContractionOperand &how, Value *value) {
  if (isBytes(type))
    return StorageConverter(b).encode(value,
                                      tgl::ReadOp(how.read).getTensorType().getElementType());
  return Mma(b, type).narrow(value);
}
