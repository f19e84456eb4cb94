//===- DeviceReduce.cpp - Reductions by a team ----------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceEmitter.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

void DeviceEmitter::emitReduce(tgl::ReduceOp op) {
  if (alone)
    return Emitter::emitReduce(op);
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  SmallVector<unsigned> box, rest;
  splitAxes(axes, box, rest);
  alone = true;
  std::optional<LaneChoice> lane = chooseLanes(axes);
  if (lane && !is_contained(box, lane->axis))
    lane.reset();
  Accumulator start = initialAccumulator(op);
  if (lane)
    for (Value *&element : start)
      element = b.CreateVectorSplat(lane->width, element);
  Accumulator partial = deal(
      countOf(axes, box, lane), start, [&](Value *number, Value *exists, ArrayRef<Value *> carried) {
        Accumulator before(carried.begin(), carried.end()), after;
        setAxes(axes, box, number, lane, [&] {
          after = emitSerialReduce(op, rest, before, [&](Accumulator inner) {
            return emitReducePoint(op, std::move(inner));
          });
        });
        if (exists)
          for (auto [value, kept] : zip_equal(after, before))
            value = b.CreateSelect(exists, value, kept);
        return SmallVector<Value *>(after);
      });
  alone = false;
  if (lane)
    partial = combineLanes(op, partial, lane->width);
  values[op.getResult()] = combineTeam(op, std::move(partial)).back();
}

/// The value of another thread of the warp, by one of the shuffles of 32 bits.
Value *DeviceEmitter::shuffle(Value *value, Intrinsic::ID id, Value *lane, unsigned clamp) {
  Type *type = value->getType();
  unsigned bits = type->getPrimitiveSizeInBits();
  auto word = [&](Value *one) {
    return b.CreateIntrinsic(b.getInt32Ty(), id, {b.getInt32(-1), one, lane, b.getInt32(clamp)});
  };
  if (bits == 64) {
    Value *whole = b.CreateBitCast(value, b.getInt64Ty());
    Value *low = word(b.CreateTrunc(whole, b.getInt32Ty()));
    Value *high = word(b.CreateTrunc(b.CreateLShr(whole, 32), b.getInt32Ty()));
    whole = b.CreateOr(b.CreateZExt(low, b.getInt64Ty()), b.CreateShl(b.CreateZExt(high, b.getInt64Ty()), 32));
    return b.CreateBitCast(whole, type);
  }
  if (bits == 32)
    return b.CreateBitCast(word(b.CreateBitCast(value, b.getInt32Ty())), type);
  assert(type->isIntegerTy() && "accumulators are i1, or have 32 or 64 bits");
  return b.CreateTrunc(word(b.CreateZExt(value, b.getInt32Ty())), type);
}

/// Neighbouring threads, then pairs of them, and so on: all get the result.
Emitter::Accumulator DeviceEmitter::combineWarp(tgl::ReduceOp op, Accumulator accumulator,
                                                unsigned threads) {
  for (unsigned distance = 1; distance < threads; distance *= 2) {
    Accumulator other;
    for (Value *element : accumulator)
      other.push_back(shuffle(element, Intrinsic::nvvm_shfl_sync_bfly_i32, b.getInt32(distance), warp - 1));
    accumulator = combine(op, accumulator, other);
  }
  return accumulator;
}

Emitter::Accumulator DeviceEmitter::combineTeam(tgl::ReduceOp op, Accumulator accumulator) {
  accumulator = combineWarp(op, std::move(accumulator), std::min(shape.team, warp));
  unsigned warps = shape.team / warp;
  if (warps <= 1)
    return accumulator;
  // Slots of a reduction that a loop runs again are still being read.
  for (mlir::Operation *around = op->getParentOp(); around != statement; around = around->getParentOp())
    if (isa<tgl::ForOp, tgl::TilesOp>(around)) {
      meet();
      break;
    }
  SmallVector<std::pair<GlobalVariable *, Type *>> slots;
  Value *number = b.CreateUDiv(thread, i64(warp)), *inWarp = b.CreateURem(thread, i64(warp));
  auto slot = [&](GlobalVariable *array, Value *index) {
    return b.CreateInBoundsGEP(b.getInt64Ty(), array, index);
  };
  for (Value *element : accumulator)
    slots.push_back({shared(ArrayType::get(b.getInt64Ty(), warps), "exchange"),
                     element->getType()->isIntegerTy(1) ? b.getInt8Ty() : element->getType()});
  emitIf(b.CreateICmpEQ(inWarp, i64(0)), [&] {
    for (auto [element, place] : zip_equal(accumulator, slots))
      b.CreateStore(element->getType()->isIntegerTy(1) ? b.CreateZExt(element, b.getInt8Ty()) : element,
                    slot(place.first, number));
  });
  meet();
  Value *mine = b.CreateURem(inWarp, i64(warps));
  for (auto [element, place] : zip_equal(accumulator, slots)) {
    bool isBit = element->getType()->isIntegerTy(1);
    element = b.CreateLoad(place.second, slot(place.first, mine));
    if (isBit)
      element = b.CreateTrunc(element, b.getInt1Ty());
  }
  return combineWarp(op, std::move(accumulator), warps);
}
