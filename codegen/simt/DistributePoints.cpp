//===- DistributePoints.cpp - Distributes points of nests over threads ----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/DeviceEmitter.h"

#include "codegen/simt/RaggedLanes.h"
#include "codegen/simt/RowCache.h"
#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

Value *DeviceEmitter::readSreg(Intrinsic::ID id, unsigned limit) {
  auto *call = b.CreateIntrinsic(b.getInt32Ty(), id, {});
  call->addRangeRetAttr(ConstantRange(APInt(32, 0), APInt(32, limit)));
  return b.CreateZExt(call, b.getInt64Ty(), "", /*IsNonNeg=*/true);
}

void DeviceEmitter::barrier() {
  if (!shape.byThread() && shape.team <= warp)
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_bar_warp_sync, {b.getInt32(-1)});
  else
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_all, {b.getInt32(0)});
}

Value *DeviceEmitter::extent(tgl::AxesOp op, unsigned axis) {
  int64_t points = pointsAlong(op, axis);
  if (std::optional<int64_t> constant = (highOf(op, axis) - lowOf(op, axis)).asConstant())
    return i64(
        divideCeil(std::max<int64_t>(0, *constant) + (points > 1 ? pointTile.slack : 0), points));
  Value *difference = b.CreateSub(emitIndex(highOf(op, axis)), emitIndex(lowOf(op, axis)));
  return b.CreateBinaryIntrinsic(Intrinsic::smax, difference, i64(0));
}

/// Vectors of points along the lane axis.
Value *DeviceEmitter::countVectors(tgl::AxesOp op, const LaneChoice &lane) {
  if (lane.hasRest)
    return i64(raggedVectors(lane, *tgl::knownPoints(op, lane.axis)));
  return b.CreateUDiv(extent(op, lane.axis), i64(lane.width)); // exact: vectors are whole
}

/// Points of a box; of the lane axis, vectors.
Value *DeviceEmitter::countOf(tgl::AxesOp op, ArrayRef<unsigned> axes,
                              const std::optional<LaneChoice> &lane) {
  Value *count = i64(1);
  for (unsigned axis : axes) {
    Value *size = extent(op, axis);
    if (lane && lane->axis == axis)
      size = countVectors(op, *lane);
    count = b.CreateMul(count, size);
  }
  return count;
}

/// `body` at the point (the vector of points) with this number in the box of `axes`, the last axis
/// fastest, the lane axis faster than all.
void DeviceEmitter::setAxes(tgl::AxesOp op, ArrayRef<unsigned> given, Value *number,
                            const std::optional<LaneChoice> &lane, function_ref<void()> body) {
  SmallVector<unsigned> axes(given);
  if (lane) {
    llvm::erase(axes, lane->axis);
    axes.push_back(lane->axis);
  }
  // Divisions of 32 bits cost a fraction of those of 64.
  std::optional<int64_t> points = tgl::knownPoints(op, axes);
  bool isShort = points && *points <= std::numeric_limits<int32_t>::max() && axes.size() > 1;
  if (isShort)
    number = b.CreateTrunc(number, b.getInt32Ty(), "", /*IsNUW=*/true, /*IsNSW=*/true);
  Value *base = nullptr;
  for (unsigned axis : reverse(axes)) {
    bool isLane = lane && lane->axis == axis;
    Value *size = isLane ? countVectors(op, *lane) : extent(op, axis);
    Value *digit = number;
    if (isShort)
      size = b.CreateTrunc(size, b.getInt32Ty());
    if (axis != axes.front()) {
      digit = b.CreateURem(number, size);
      number = b.CreateUDiv(number, size);
    }
    if (isShort)
      digit = b.CreateZExt(digit, b.getInt64Ty(), "", /*IsNonNeg=*/true);
    if (isLane && lane->apart == 1)
      digit = b.CreateNSWMul(digit, i64(lane->width));
    if (isLane && lane->apart > 1) { // digit / apart * apart * width + digit % apart
      Value *within = b.CreateURem(digit, i64(lane->apart));
      digit =
          b.CreateNSWAdd(b.CreateNSWMul(b.CreateNSWSub(digit, within), i64(lane->width)), within);
    }
    if (int64_t points = pointsAlong(op, axis); points > 1)
      digit = b.CreateNSWMul(digit, i64(points));
    Value *position = b.CreateNSWAdd(digit, emitIndex(lowOf(op, axis)));
    if (isLane)
      base = position;
    else
      values[op.getAxes()[axis]] = position;
  }
  if (!lane)
    return body();
  if (lane->hasRest)
    return withRest(op, *lane, base, body);
  rows->withLanes(op, *lane, base, body);
}

/// The body for all lanes where all have a point, and with a mask where some do.
void DeviceEmitter::withRest(tgl::AxesOp op, const LaneChoice &lane, Value *base,
                             function_ref<void()> body) {
  mlir::Value axis = op.getAxes()[lane.axis];
  Value *high = emitIndex(highOf(op, lane.axis));
  Value *last = b.CreateNSWAdd(base, i64((lane.width - 1) * lane.apart));
  Value *isWhole = b.CreateICmpSLT(last, high);
  emitIf(isWhole, [&] { withLanes(axis, lane.width, base, nullptr, body, lane.apart); });
  Value *isRest = b.CreateAnd(b.CreateNot(isWhole), b.CreateICmpSLT(base, high));
  emitIf(isRest, [&] { withLanes(axis, lane.width, base, high, body, lane.apart); });
}

SmallVector<Value *> DeviceEmitter::distribute(Value *count, ArrayRef<Value *> inits,
                                               DistributedBody body, unsigned ahead) {
  auto *constant = dyn_cast<ConstantInt>(count);
  int64_t team = shape.team;
  SmallVector<Value *> carried(inits);
  if (!constant || constant->getSExtValue() > maxRounds * team) {
    Value *first = thread;
    if (int64_t step = team * ahead; constant && ahead > 1) {
      Value *whole = i64(constant->getSExtValue() / step * step);
      keepNextLoopRolled = true;
      carried =
          emitLoop(thread, whole, i64(step), carried, [&](Value *number, ArrayRef<Value *> now) {
            SmallVector<Value *> results(now);
            checks.reportTogether([&] {
              for (unsigned round = 0; round < ahead; ++round)
                results = body(b.CreateNSWAdd(number, i64(round * team)), nullptr, results);
            });
            return results;
          });
      first = b.CreateNSWAdd(thread, whole);
    }
    return emitLoop(first, count, i64(team), carried, [&](Value *number, ArrayRef<Value *> now) {
      return body(number, nullptr, now);
    });
  }
  int64_t points = constant->getSExtValue();
  for (int64_t first = 0; first < points; first += team) {
    Value *number = b.CreateNSWAdd(thread, i64(first)), *exists = nullptr;
    if (points - first < team) {
      exists = b.CreateICmpULT(number, count);
      number = b.CreateBinaryIntrinsic(Intrinsic::umin, number, i64(points - 1));
    }
    round = first / team;
    carried = body(number, exists, carried);
    round = -1;
  }
  return carried;
}
