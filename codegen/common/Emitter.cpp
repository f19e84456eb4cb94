//===- Emitter.cpp - Walks the operations of a region -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/common/Emitter.h"

#include "codegen/common/Accesses.h"
#include "codegen/common/EmitArith.h"
#include "codegen/common/EmitSort.h"
#include "ir/tgl/TglUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

void Emitter::emitBlock(mlir::Block &block) {
  for (mlir::Operation &op : block) {
    if (isa<tgl::YieldOp>(op))
      continue;
    emitOp(&op);
    if (failed())
      return;
  }
}

bool Emitter::isEmpty(mlir::Operation *op) {
  auto none = [](const ValueExpr &low, const ValueExpr &high) {
    std::optional<int64_t> extent = (high - low).asConstant();
    return extent && *extent <= 0;
  };
  if (auto loop = dyn_cast<tgl::ForOp>(op))
    return none(loop.getLowExpr(), loop.getHighExpr());
  if (auto tiles = dyn_cast<tgl::TilesOp>(op))
    return none(tiles.getLowExpr(), tiles.getHighExpr());
  if (auto axes = dyn_cast<tgl::AxesOp>(op))
    return any_of(getAxisRanges(axes),
                  [&](const tgl::AxisRange &range) { return none(range.lo, range.hi); });
  return false;
}

/// What never runs is not emitted: a size of 0 that is known takes axes out of subscripts.
bool Emitter::skipEmpty(mlir::Operation *op) {
  if (!isEmpty(op))
    return false;
  if (auto reduce = dyn_cast<tgl::ReduceOp>(op))
    values[reduce.getResult()] = resultOf(*this, reduce, initialAccumulator(*this, reduce));
  else if (auto loop = dyn_cast<tgl::ForOp>(op))
    for (auto [result, init] : zip_equal(loop.getResults(), loop.getInits()))
      values[result] = valueOf(init);
  else if (auto tiles = dyn_cast<tgl::TilesOp>(op))
    for (auto [result, init] : zip_equal(tiles.getResults(), tiles.getInits()))
      values[result] = valueOf(init);
  return true;
}

void Emitter::emitOp(mlir::Operation *op) {
  if (skipEmpty(op))
    return;
  TypeSwitch<mlir::Operation *>(op)
      .Case<tgl::ReadOp>([&](tgl::ReadOp read) { emitRead(*this, read); })
      .Case<tgl::WriteOp>([&](tgl::WriteOp write) { emitWrite(*this, write); })
      .Case<tgl::ParallelOp>([&](tgl::ParallelOp parallel) { emitParallel(parallel); })
      .Case<tgl::ReduceOp>([&](tgl::ReduceOp reduce) { emitReduce(reduce); })
      .Case<tgl::ForOp>([&](tgl::ForOp loop) { emitFor(loop); })
      .Case<tgl::TilesOp>([&](tgl::TilesOp tiles) { emitTiles(tiles); })
      .Case<tgl::SortOp>([&](tgl::SortOp sort) { emitSort(sort); })
      .Case<tgl::TempOp>([&](tgl::TempOp temp) { emitTemp(temp); })
      .Default([&](mlir::Operation *other) { emitArith(*this, other); });
}

/// The loop with what it carries; `place` says what its variables are where LLVM's has this value.
template <typename Loop>
void Emitter::emitCarried(Loop op, Value *low, Value *high, Value *step, const char *name,
                          function_ref<void(Value *iv)> place) {
  SmallVector<Value *> inits;
  for (mlir::Value init : op.getInits())
    inits.push_back(splat(valueOf(init)));
  SmallVector<Value *> results = emitLoop(
      low, high, step, inits,
      [&](Value *iv, ArrayRef<Value *> carried) {
        place(iv);
        for (auto [argument, value] : zip_equal(op.getIterArgs(), carried))
          values[argument] = value;
        emitBlock(op.getBody().front());
        SmallVector<Value *> next;
        for (mlir::Value value : op.getYield().getValues())
          next.push_back(splat(valueOf(value)));
        return next;
      },
      name);
  for (auto [result, value] : zip_equal(op.getResults(), results))
    values[result] = value;
}

void Emitter::emitFor(tgl::ForOp op) {
  Value *low = emitIndex(op.getLowExpr()), *high = emitIndex(op.getHighExpr());
  emitCarried(op, low, high, i64(1), "t", [&](Value *iv) {
    // Downwards: high - 1 - (iv - low).
    values[op.getLoopVar()] =
        op.getReverse() ? b.CreateSub(b.CreateSub(b.CreateAdd(high, low), i64(1)), iv) : iv;
  });
}

void Emitter::emitTiles(tgl::TilesOp op) {
  if (!op.getSize())
    return fail(op, "a tile loop without a size");
  Value *low = emitIndex(op.getLowExpr()), *high = emitIndex(op.getHighExpr());
  Value *step = i64(*op.getSize());
  emitCarried(op, low, high, step, "tile", [&](Value *iv) {
    values[op.getTileLow()] = iv;
    values[op.getTileHigh()] =
        b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateAdd(iv, step), high);
  });
}

void Emitter::emitSteps(Value *count, function_ref<void(Value *)> body) {
  emitLoop(i64(0), count, i64(1), {}, [&](Value *n, ArrayRef<Value *>) {
    body(n);
    return SmallVector<Value *>();
  });
}

void Emitter::emitSort(tgl::SortOp op) { emitSortNetwork(*this, op); }
