//===- WarpEpilogue.cpp - Epilogue of each warp, through its own shared memory ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp of a warpgroup has the sums of 16 rows by all columns of its group. Where neighbours along
// columns are neighbours in what is written, it goes on with them alone: sums pass through its own
// lines of shared memory into the order of memory, a lane has four columns of a row, and warps do
// not wait for each other (drawn for 128 columns):
//
//   lane            0           1                31
//   row 0      [ 0 .. 3]   [ 4 .. 7]  ...  [124 .. 127]   one store of 512 bytes
//   row 1      [ 0 .. 3]   [ 4 .. 7]  ...
//
// Elsewhere all threads of the block meet and share the rest of the tile (Epilogue.cpp).
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/Epilogue.h"

#include "codegen/async/Async.h"
#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include <numeric>

using namespace llvm;
using namespace tegula;

/// Columns of a lane, and rows of a warp of a warpgroup.
static constexpr unsigned laneColumns = EpiloguePlan::laneColumns,
                          warpRows = EpiloguePlan::warpRows,
                          warpThreads = EpiloguePlan::warpThreads;

void Epilogue::syncWarp() {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_bar_warp_sync, {i32(-1)});
}

void Epilogue::awaitLines(bool untilWritten) {
  b.CreateIntrinsic(b.getVoidTy(),
                    untilWritten ? Intrinsic::nvvm_cp_async_bulk_wait_group
                                 : Intrinsic::nvvm_cp_async_bulk_wait_group_read,
                    {i32(0)});
}

/// The warp's lines, which are what `write` writes, to their places; a lane for each.
void Epilogue::storeLines(tgl::WriteOp write) {
  async::publish(b);
  syncWarp();
  TileCoord corner = warpgroupCorner(b, tile, here.thread);
  Value *warp =
      b.CreateAnd(b.CreateLShr(here.thread, i32(5)), i32(Wgmma::threads / warpThreads - 1));
  Value *row = b.CreateAdd(b.CreateAdd(corner.row, b.CreateMul(warp, i32(warpRows))), here.lane);
  Value *number = b.CreateAdd(here.rows.first, wide(row)),
        *column = b.CreateAdd(here.columns.first, wide(corner.column));
  Value *exists = b.CreateICmpULT(here.lane, i32(warpRows)),
        *count = i64(warpgroupColumns(tile) / tile.joint);
  if (!here.rows.fits)
    exists = b.CreateAnd(exists, b.CreateICmpSLT(number, here.rows.total));
  if (!here.columns.fits) {
    count =
        b.CreateBinaryIntrinsic(Intrinsic::smin, count, b.CreateSub(here.columns.total, column));
    exists = b.CreateAnd(exists, b.CreateICmpSGT(count, i64(0)));
  }
  e.emitIf(exists, [&] {
    setRow(number);
    setColumn(column);
    tgl::TglTensorType type = write.getTensor().getType();
    Value *offset = e.emitIndex(tgl::elementOffset(type, write.getSubscriptExprs()));
    Value *to = b.CreateInBoundsGEP(here.accumulatorType(),
                                    e.buffers.find(write.getTensor())->second.pointer, offset);
    to = b.CreateAddrSpaceCast(to, PointerType::get(b.getContext(), 1));
    Value *bytes = b.CreateTrunc(b.CreateMul(count, i64(4)), b.getInt32Ty());
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_cp_async_bulk_shared_cta_to_global,
                      {to, here.accumulatorAddress(row, corner.column, here.accumulatorsBase(0)),
                       bytes, i64(0), b.getFalse()});
  });
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_cp_async_bulk_commit_group, {});
}

/// The sums are in the warp's lines of shared memory.
void Epilogue::emitPerWarp(unsigned first) {
  unsigned across = here.warpgroupEpilogueColumns(),
           lanesOfRow = std::gcd(warpThreads, across / laneColumns);
  unsigned rowsAtOnce = warpThreads / lanesOfRow, steps = warpRows / rowsAtOnce,
           each = std::min(8u, steps);
  TileCoord corner = warpgroupCorner(b, tile, here.thread);
  Value *warp =
      b.CreateAnd(b.CreateLShr(here.thread, i32(5)), i32(Wgmma::threads / warpThreads - 1));
  Value *firstRow = b.CreateAdd(corner.row, b.CreateMul(warp, i32(warpRows)));
  firstRow = b.CreateAdd(firstRow, b.CreateUDiv(here.lane, i32(lanesOfRow)));
  Value *own = b.CreateMul(b.CreateURem(here.lane, i32(lanesOfRow)), i32(laneColumns));
  Value *firstColumn = b.CreateAdd(b.CreateAdd(corner.column, own), i32(first));
  Value *firstPlace = b.CreateAdd(here.epilogueCorner(), own);
  mlir::Value axis = axes.getAxes()[plan.columns.back()];

  for (unsigned chunk = 0; chunk < across; chunk += lanesOfRow * laneColumns) {
    Value *column = b.CreateAdd(firstPlace, i32(chunk));
    Value *number = b.CreateAdd(here.columns.first, wide(b.CreateAdd(firstColumn, i32(chunk))));
    auto emitColumns = [&] {
      setColumn(number);
      e.withLanes(axis, laneColumns, e.values.lookup(axis), nullptr, [&] {
        e.keepNextLoopRolled = true;
        e.emitLoop(
            i64(0), i64(steps), i64(each), {},
            [&](Value *step, ArrayRef<Value *>) {
              Value *row = b.CreateAdd(
                  firstRow, b.CreateMul(b.CreateTrunc(step, b.getInt32Ty()), i32(rowsAtOnce)));
              emitVectors(row, rowsAtOnce, each, column);
              return SmallVector<Value *>();
            },
            "rest");
      });
    };
    if (here.columns.fits)
      emitColumns();
    else
      e.emitIf(b.CreateICmpSLT(number, here.columns.total), emitColumns);
  }
  if (tgl::WriteOp write = parts.lineWrite())
    storeLines(write);
}

/// `count` rows of a lane's columns, from row `first` on: what is read of all of them before any is
/// written.
void Epilogue::emitVectors(Value *first, unsigned step, unsigned count, Value *column) {
  SmallVector<mlir::Value> kept;
  for (unsigned axis : plan.rows)
    kept.push_back(axes.getAxes()[axis]);
  for (mlir::Operation *op : parts.early)
    kept.append(op->result_begin(), op->result_end());
  auto sumOf = [&](unsigned which) {
    return tgl::ReduceOp(plan.products[which].reduce).getResult();
  };
  for (unsigned which = 0; which < plan.products.size(); ++which)
    kept.push_back(sumOf(which));
  tgl::WriteOp lines = parts.lineWrite();
  struct Row {
    Value *number, *place;
    SmallVector<Value *> values; // of `kept`
  };
  SmallVector<Row> all;
  auto *vector = FixedVectorType::get(here.accumulatorType(), laneColumns);
  for (unsigned n = 0; n < count; ++n) {
    Value *row = b.CreateAdd(first, i32(n * step)),
          *number = b.CreateAdd(here.rows.first, wide(row)), *safe = number;
    if (!here.rows.fits)
      safe = b.CreateBinaryIntrinsic(Intrinsic::smin, number, b.CreateSub(here.rows.total, i64(1)));
    setRow(safe);
    for (mlir::Operation *op : parts.early)
      e.emitOp(op);
    for (unsigned which = 0; which < plan.products.size(); ++which)
      e.values[sumOf(which)] =
          which && tile.accumulated // the first has all
              ? static_cast<Value *>(Constant::getNullValue(vector))
              : b.CreateAlignedLoad(
                    vector, here.accumulatorAddress(row, column, here.accumulatorsBase(which)),
                    Align(laneColumns * 4));
    Row its{number, here.accumulatorAddress(row, column, here.accumulatorsBase(0)), {}};
    for (mlir::Value value : kept)
      its.values.push_back(e.values.lookup(value));
    all.push_back(std::move(its));
  }
  for (const Row &row : all) {
    for (auto [value, emitted] : zip_equal(kept, row.values))
      e.values[value] = emitted;
    auto emitLate = [&] {
      for (mlir::Operation *op : concat<mlir::Operation *const>(parts.values, parts.effects))
        if (op != lines)
          e.emitOp(op);
      if (lines) // in place of the sums
        b.CreateAlignedStore(e.splat(e.valueOf(lines.getValue())), row.place,
                             Align(laneColumns * 4));
    };
    if (here.rows.fits)
      emitLate();
    else
      e.emitIf(b.CreateICmpSLT(row.number, here.rows.total), emitLate);
  }
}
