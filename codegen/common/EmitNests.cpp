//===- EmitNests.cpp - Axes of nests as LLVM IR -----------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/common/Emitter.h"

#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

ValueExpr Emitter::lowOf(tgl::AxesOp op, unsigned axis) { return getAxisRange(op, axis).lo; }
ValueExpr Emitter::highOf(tgl::AxesOp op, unsigned axis) { return getAxisRange(op, axis).hi; }

Value *Emitter::emitLow(tgl::AxesOp op, unsigned axis) {
  return axisSlice && axisSlice->axis == op.getAxes()[axis] ? axisSlice->low
                                                            : emitIndex(lowOf(op, axis));
}

Value *Emitter::emitHigh(tgl::AxesOp op, unsigned axis) {
  return axisSlice && axisSlice->axis == op.getAxes()[axis] ? axisSlice->high
                                                            : emitIndex(highOf(op, axis));
}

void Emitter::emitNest(tgl::AxesOp op, ArrayRef<unsigned> axes, function_ref<void()> body) {
  if (axes.empty())
    return body();
  unsigned axis = axes.front();
  emitLoop(emitIndex(lowOf(op, axis)), emitIndex(highOf(op, axis)), i64(1), {},
           [&](Value *iv, ArrayRef<Value *>) {
             values[op.getAxes()[axis]] = iv;
             emitNest(op, axes.drop_front(), body);
             return SmallVector<Value *>();
           });
}

void Emitter::emitParallel(tgl::ParallelOp op) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  SmallVector<unsigned> order = to_vector(seq<unsigned>(0, op.getAxes().size()));
  shadow.beginPoints();
  if (std::optional<LaneChoice> choice = chooseLanes(axes)) {
    llvm::erase(order, choice->axis);
    emitNest(axes, order, [&] { emitLaneParallel(op, *choice); });
  } else {
    emitNest(axes, order, [&] {
      shadow.beginPoint();
      emitBlock(op.getBody().front());
    });
  }
  shadow.endPoints();
  afterParallel();
}

void Emitter::emitLaneParallel(tgl::ParallelOp op, const LaneChoice &choice) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  emitLaneRange(op, choice, emitIndex(lowOf(axes, choice.axis)),
                emitIndex(highOf(axes, choice.axis)));
}

void Emitter::emitLaneRange(tgl::ParallelOp op, const LaneChoice &choice, Value *low, Value *high) {
  mlir::Value axis = op.getAxes()[choice.axis];
  // Vectors side by side, then single ones, the last of which may have lanes that do not exist.
  unsigned width = choice.width * choice.vectors;
  Value *full = emitFullEnd(low, high, width);
  emitLoop(low, full, i64(width), {}, [&](Value *iv, ArrayRef<Value *>) {
    withLanes(axis, width, iv, nullptr, [&] { emitBlock(op.getBody().front()); });
    return SmallVector<Value *>();
  });
  emitLoop(full, high, i64(choice.width), {}, [&](Value *iv, ArrayRef<Value *>) {
    withLanes(axis, choice.width, iv, high, [&] { emitBlock(op.getBody().front()); });
    return SmallVector<Value *>();
  });
}

/// low plus the largest multiple of `step` in high - low (low where the range is empty).
Value *Emitter::emitFullEnd(Value *low, Value *high, unsigned step) {
  assert(isPowerOf2_32(step) && "vector widths and unroll factors are powers of two");
  Value *extent = b.CreateBinaryIntrinsic(Intrinsic::smax, b.CreateSub(high, low), i64(0));
  return b.CreateAdd(low, b.CreateAnd(extent, i64(-int64_t(step))));
}

std::optional<LaneChoice> Emitter::chooseLanes(tgl::AxesOp op) {
  if (options.vectorBytes == 0 || lanes || op.getAxes().empty())
    return std::nullopt;
  return laneChoices.choose(op, options.vectorBytes, options.wholeVectors);
}
