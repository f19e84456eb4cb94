//===- DeviceScan.cpp - Scans by a team of threads ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `for t iter (c) { ...v...; n = c + v; ...c, n...; yield n }` runs in chunks of as many vectors as
// the team has threads: each thread adds up its own vector, the team scans the sums, by shuffles in
// a warp and through shared memory between warps, and each thread then knows the total before its
// vector. (Blelloch, "Prefix sums and their applications", 1990; here two levels of it.)
//
//===----------------------------------------------------------------------===//
#include "codegen/common/AccessShape.h"
#include "codegen/common/EmitArith.h"
#include "codegen/simt/DeviceEmitter.h"
#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

unsigned DeviceEmitter::vectorOf(const PrefixLoop &prefix) {
  constexpr unsigned width = DeviceEmitter::accessBytes / 4;
  tgl::ForOp loop = prefix.loop;
  std::optional<int64_t> count = (loop.getHighExpr() - loop.getLowExpr()).asConstant();
  bool whole = count && *count % width == 0;
  auto fits = [&](tgl::TglTensorType type, ArrayRef<ValueExpr> subscripts, bool isWrite) {
    std::optional<int64_t> step = stepAlong(tgl::elementOffset(type, subscripts), loop.getLoopVar(),
                                            [](mlir::Value) { return false; });
    whole &=
        step && (*step == 1 || (*step == 0 && !isWrite)) && !type.getElementType().isInteger(4);
  };
  loop.getBody().walk([&](tgl::ReadOp read) {
    fits(read.getTensorType(), read.getSubscriptExprs(), false);
    whole &= !read.getFill() && !read.getGuard() && read.getExactExprs().empty();
  });
  loop.getBody().walk([&](tgl::WriteOp write) {
    fits(write.getTensorType(), write.getSubscriptExprs(), true);
    whole &= !write.getCombine() && !write.getGuard();
  });
  return whole ? width : 1;
}

Value *DeviceEmitter::combineWith(mlir::Operation *op, Value *lhs, Value *rhs) {
  if (isa<mlir::arith::AddFOp>(op))
    return b.CreateFAdd(lhs, rhs);
  if (isa<mlir::arith::MulFOp>(op))
    return b.CreateFMul(lhs, rhs);
  if (isa<mlir::arith::AddIOp>(op))
    return b.CreateAdd(lhs, rhs);
  if (isa<mlir::arith::MulIOp>(op))
    return b.CreateMul(lhs, rhs);
  if (isa<mlir::arith::MaximumFOp>(op))
    return emitExtreme(b, Intrinsic::maximum, lhs, rhs);
  if (isa<mlir::arith::MinimumFOp>(op))
    return emitExtreme(b, Intrinsic::minimum, lhs, rhs);
  return b.CreateBinaryIntrinsic(isa<mlir::arith::MaxSIOp>(op) ? Intrinsic::smax : Intrinsic::smin,
                                 lhs, rhs);
}

Constant *DeviceEmitter::identityOf(mlir::Operation *op, Type *type) {
  if (isa<mlir::arith::AddFOp>(op))
    return ConstantFP::getNegativeZero(type);
  if (isa<mlir::arith::MulFOp>(op))
    return ConstantFP::get(type, 1);
  if (isa<mlir::arith::MaximumFOp, mlir::arith::MinimumFOp>(op))
    return ConstantFP::getInfinity(type, isa<mlir::arith::MaximumFOp>(op));
  if (isa<mlir::arith::AddIOp>(op))
    return ConstantInt::get(type, 0);
  if (isa<mlir::arith::MulIOp>(op))
    return ConstantInt::get(type, 1);
  unsigned bits = type->getScalarSizeInBits();
  return ConstantInt::get(type, isa<mlir::arith::MaxSIOp>(op) ? APInt::getSignedMinValue(bits)
                                                              : APInt::getSignedMaxValue(bits));
}

/// The totals of the threads before this one in the team, and of the whole team.
std::pair<Value *, Value *> DeviceEmitter::scanTeam(mlir::Operation *op, Value *own,
                                                    GlobalVariable *totals) {
  Constant *identity = identityOf(op, own->getType());
  Value *inWarp = b.CreateURem(thread, i64(warp));
  // Inclusive, over `count` threads of the warp.
  auto scan = [&](Value *value, unsigned count) {
    for (unsigned distance = 1; distance < count; distance *= 2) {
      Value *lower = shuffle(value, Intrinsic::nvvm_shfl_sync_up_i32, b.getInt32(distance), 0);
      value = b.CreateSelect(b.CreateICmpUGE(inWarp, i64(distance)), combineWith(op, lower, value),
                             value);
    }
    return value;
  };
  auto of = [&](Value *value, Value *lane) {
    return shuffle(value, Intrinsic::nvvm_shfl_sync_idx_i32, lane, warp - 1);
  };
  auto before = [&](Value *value, Value *isFirst) {
    return b.CreateSelect(isFirst, identity,
                          shuffle(value, Intrinsic::nvvm_shfl_sync_up_i32, b.getInt32(1), 0));
  };
  Value *sums = scan(own, warp);
  Value *exclusive = before(sums, b.CreateICmpEQ(inWarp, i64(0)));
  unsigned warps = shape.team / warp;
  if (warps == 1)
    return {exclusive, of(sums, b.getInt32(warp - 1))};
  Value *number = b.CreateUDiv(thread, i64(warp));
  auto slot = [&](Value *index) { return b.CreateInBoundsGEP(b.getInt64Ty(), totals, index); };
  barrier(); // the totals of the chunk before have been read
  emitIf(b.CreateICmpEQ(inWarp, i64(warp - 1)), [&] { b.CreateStore(sums, slot(number)); });
  barrier();
  Value *all = scan(b.CreateLoad(own->getType(), slot(b.CreateURem(inWarp, i64(warps)))), warps);
  Value *previous = b.CreateTrunc(b.CreateSub(number, i64(1)), b.getInt32Ty());
  Value *isFirst = b.CreateICmpEQ(number, i64(0));
  Value *warpsBefore =
      b.CreateSelect(isFirst, identity, of(all, b.CreateSelect(isFirst, b.getInt32(0), previous)));
  return {combineWith(op, warpsBefore, exclusive), of(all, b.getInt32(warps - 1))};
}

/// The loop of a thread alone, several steps at a time: what they need without what is carried is
/// loaded together.
void DeviceEmitter::emitSeveralSteps(const SteppedLoop &stepped, unsigned together) {
  tgl::ForOp op = stepped.loop;
  Value *low = emitIndex(op.getLowExpr()), *high = emitIndex(op.getHighExpr());
  Value *count = b.CreateBinaryIntrinsic(Intrinsic::smax, b.CreateSub(high, low), i64(0));
  Value *whole = b.CreateNSWMul(b.CreateUDiv(count, i64(together)), i64(together));
  auto steps = [&](Value *from, unsigned number, ArrayRef<Value *> before) {
    SmallVector<Value *> carried(before);
    auto at = [&](unsigned step) {
      Value *place = b.CreateNSWAdd(from, i64(step));
      values[op.getLoopVar()] = op.getReverse()
                                    ? b.CreateNSWSub(b.CreateNSWSub(high, i64(1)), place)
                                    : b.CreateNSWAdd(low, place);
    };
    SmallVector<SmallVector<Value *>> found(number);
    for (unsigned step = 0; step < number; ++step) {
      at(step);
      for (mlir::Operation *each : stepped.before) {
        emitOp(each);
        for (mlir::Value result : each->getResults())
          found[step].push_back(values.lookup(result));
      }
    }
    for (unsigned step = 0; step < number; ++step) {
      at(step);
      unsigned next = 0;
      for (mlir::Operation *each : stepped.before)
        for (mlir::Value result : each->getResults())
          values[result] = found[step][next++];
      for (auto [argument, value] : zip_equal(op.getIterArgs(), carried))
        values[argument] = value;
      for (mlir::Operation *each : stepped.after)
        emitOp(each);
      for (auto [value, yielded] : zip_equal(carried, op.getYield().getValues()))
        value = splat(valueOf(yielded));
    }
    return carried;
  };
  SmallVector<Value *> carried;
  for (mlir::Value init : op.getInits())
    carried.push_back(splat(valueOf(init)));
  keepNextLoopRolled = true;
  carried =
      emitLoop(i64(0), whole, i64(together), carried,
               [&](Value *from, ArrayRef<Value *> now) { return steps(from, together, now); });
  keepNextLoopRolled = true;
  carried = emitLoop(whole, count, i64(1), carried,
                     [&](Value *from, ArrayRef<Value *> now) { return steps(from, 1, now); });
  for (auto [result, value] : zip_equal(op.getResults(), carried))
    values[result] = value;
}

void DeviceEmitter::emitFor(tgl::ForOp op) {
  if (perThread) {
    // Elementary functions are a dozen instructions each: copies of them would only fill the
    // instruction cache.
    constexpr unsigned together = 8, maxOperations = 32;
    std::optional<SteppedLoop> stepped = matchSteppedLoop(op);
    unsigned operations = 0;
    bool loads = false;
    for (mlir::Operation &each : op.getBody().front())
      operations += isa<mlir::math::MathDialect>(each.getDialect()) ? 16 : 1;
    for (mlir::Operation *each : stepped ? stepped->before : SmallVector<mlir::Operation *>())
      loads |= isa<tgl::ReadOp>(each);
    return loads && operations <= maxOperations
               ? emitSeveralSteps(*stepped, lanes ? together / 2 : together)
               : Emitter::emitFor(op);
  }
  std::optional<PrefixLoop> prefix = matchPrefixLoop(op);
  if (!prefix)
    return Emitter::emitFor(op);
  bool seen = exchanges(op);
  if (seen)
    barrier(); // earlier writes of all threads are seen, earlier reads are over
  Value *low = emitIndex(op.getLowExpr()), *high = emitIndex(op.getHighExpr());
  unsigned width = vectorOf(*prefix);
  Value *count = b.CreateUDiv(
      b.CreateBinaryIntrinsic(Intrinsic::smax, b.CreateSub(high, low), i64(0)), i64(width));
  Value *init = valueOf(op.getInits()[0]);
  Type *type = init->getType();
  GlobalVariable *totals = shape.team > warp
                               ? shared(ArrayType::get(b.getInt64Ty(), shape.team / warp), "totals")
                               : nullptr;
  SmallVector<Value *> results = emitLoop(
      i64(0), count, i64(shape.team), {init}, [&](Value *chunk, ArrayRef<Value *> carried) {
        Value *number = b.CreateNSWAdd(chunk, thread);
        Value *exists = b.CreateICmpULT(number, count);
        number = b.CreateBinaryIntrinsic(Intrinsic::umin, number, b.CreateSub(count, i64(1)));
        Value *offset = b.CreateNSWMul(number, i64(width));
        Value *base = op.getReverse() ? b.CreateSub(b.CreateSub(high, i64(width)), offset)
                                      : b.CreateNSWAdd(low, offset);
        perThread = true;
        Value *total = nullptr;
        auto body = [&] {
          for (mlir::Operation *each : prefix->before)
            emitOp(each);
          Value *added = splat(valueOf(prefix->added));
          // Totals of the vector up to each of its steps.
          SmallVector<Value *> upTo(width);
          for (unsigned step = 0; step < width; ++step) {
            unsigned lane = op.getReverse() ? width - 1 - step : step;
            Value *one = isVector(added) ? b.CreateExtractElement(added, uint64_t(lane)) : added;
            one = b.CreateSelect(exists, one, identityOf(prefix->combine, type));
            upTo[step] = step ? combineWith(prefix->combine, upTo[step - 1], one) : one;
          }
          auto [before, all] = scanTeam(prefix->combine, upTo.back(), totals);
          before = combineWith(prefix->combine, carried[0], before);
          total = combineWith(prefix->combine, carried[0], all);
          Value *given = before;
          if (width > 1) {
            given = PoisonValue::get(FixedVectorType::get(type, width));
            for (unsigned step = 0; step < width; ++step) {
              unsigned lane = op.getReverse() ? width - 1 - step : step;
              Value *one = step ? combineWith(prefix->combine, before, upTo[step - 1]) : before;
              given = b.CreateInsertElement(given, one, uint64_t(lane));
            }
          }
          values[op.getIterArgs()[0]] = given;
          emitIf(exists, [&] {
            for (mlir::Operation *each : prefix->after)
              emitOp(each);
          });
        };
        if (width > 1) {
          withLanes(op.getLoopVar(), width, base, nullptr, body);
        } else {
          values[op.getLoopVar()] = base;
          body();
        }
        perThread = false;
        return SmallVector<Value *>{total};
      });
  values[op.getResults()[0]] = results[0];
  if (seen)
    barrier();
}
