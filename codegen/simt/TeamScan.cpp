//===- TeamScan.cpp - Scans by a team of threads ------------------------===//
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
#include "codegen/simt/TeamScan.h"

#include "codegen/common/AccessShape.h"
#include "codegen/common/EmitArith.h"
#include "codegen/simt/DeviceEmitter.h"
#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

unsigned tegula::vectorOf(const PrefixLoop &prefix) {
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

Value *tegula::combineWith(IRBuilder<> &b, mlir::Operation *op, Value *lhs, Value *rhs) {
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

Constant *tegula::identityOf(mlir::Operation *op, Type *type) {
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
static std::pair<Value *, Value *> scanTeam(DeviceEmitter &e, mlir::Operation *op, Value *own,
                                            GlobalVariable *totals) {
  IRBuilder<> &b = e.b;
  Constant *identity = identityOf(op, own->getType());
  Value *inWarp = b.CreateURem(e.thread, e.i64(e.warp));
  // Inclusive, over `count` threads of the warp.
  auto scan = [&](Value *value, unsigned count) {
    for (unsigned distance = 1; distance < count; distance *= 2) {
      Value *lower = e.shuffle(value, Intrinsic::nvvm_shfl_sync_up_i32, b.getInt32(distance), 0);
      value = b.CreateSelect(b.CreateICmpUGE(inWarp, e.i64(distance)),
                             combineWith(b, op, lower, value), value);
    }
    return value;
  };
  auto of = [&](Value *value, Value *lane) {
    return e.shuffle(value, Intrinsic::nvvm_shfl_sync_idx_i32, lane, e.warp - 1);
  };
  auto before = [&](Value *value, Value *isFirst) {
    return b.CreateSelect(isFirst, identity,
                          e.shuffle(value, Intrinsic::nvvm_shfl_sync_up_i32, b.getInt32(1), 0));
  };
  Value *sums = scan(own, e.warp);
  Value *exclusive = before(sums, b.CreateICmpEQ(inWarp, e.i64(0)));
  unsigned warps = e.shape.team / e.warp;
  if (warps == 1)
    return {exclusive, of(sums, b.getInt32(e.warp - 1))};
  Value *number = b.CreateUDiv(e.thread, e.i64(e.warp));
  auto slot = [&](Value *index) { return b.CreateInBoundsGEP(b.getInt64Ty(), totals, index); };
  e.barrier(); // the totals of the chunk before have been read
  e.emitIf(b.CreateICmpEQ(inWarp, e.i64(e.warp - 1)), [&] { b.CreateStore(sums, slot(number)); });
  e.barrier();
  Value *all = scan(b.CreateLoad(own->getType(), slot(b.CreateURem(inWarp, e.i64(warps)))), warps);
  Value *previous = b.CreateTrunc(b.CreateSub(number, e.i64(1)), b.getInt32Ty());
  Value *isFirst = b.CreateICmpEQ(number, e.i64(0));
  Value *warpsBefore =
      b.CreateSelect(isFirst, identity, of(all, b.CreateSelect(isFirst, b.getInt32(0), previous)));
  return {combineWith(b, op, warpsBefore, exclusive), of(all, b.getInt32(warps - 1))};
}

/// The loop of a thread alone, several steps at a time: what they need without what is carried is
/// loaded together.
void tegula::emitSeveralSteps(DeviceEmitter &e, const SteppedLoop &stepped, unsigned together) {
  IRBuilder<> &b = e.b;
  tgl::ForOp op = stepped.loop;
  Value *low = e.emitIndex(op.getLowExpr()), *high = e.emitIndex(op.getHighExpr());
  Value *count = b.CreateBinaryIntrinsic(Intrinsic::smax, b.CreateSub(high, low), e.i64(0));
  Value *whole = b.CreateNSWMul(b.CreateUDiv(count, e.i64(together)), e.i64(together));
  auto steps = [&](Value *from, unsigned number, ArrayRef<Value *> before) {
    SmallVector<Value *> carried(before);
    auto at = [&](unsigned step) {
      Value *place = b.CreateNSWAdd(from, e.i64(step));
      e.values[op.getLoopVar()] = op.getReverse()
                                      ? b.CreateNSWSub(b.CreateNSWSub(high, e.i64(1)), place)
                                      : b.CreateNSWAdd(low, place);
    };
    SmallVector<SmallVector<Value *>> found(number);
    for (unsigned step = 0; step < number; ++step) {
      at(step);
      for (mlir::Operation *each : stepped.before) {
        e.emitOp(each);
        for (mlir::Value result : each->getResults())
          found[step].push_back(e.values.lookup(result));
      }
    }
    for (unsigned step = 0; step < number; ++step) {
      at(step);
      unsigned next = 0;
      for (mlir::Operation *each : stepped.before)
        for (mlir::Value result : each->getResults())
          e.values[result] = found[step][next++];
      for (auto [argument, value] : zip_equal(op.getIterArgs(), carried))
        e.values[argument] = value;
      for (mlir::Operation *each : stepped.after)
        e.emitOp(each);
      for (auto [value, yielded] : zip_equal(carried, op.getYield().getValues()))
        value = e.splat(e.valueOf(yielded));
    }
    return carried;
  };
  SmallVector<Value *> carried;
  for (mlir::Value init : op.getInits())
    carried.push_back(e.splat(e.valueOf(init)));
  e.keepNextLoopRolled = true;
  carried =
      e.emitLoop(e.i64(0), whole, e.i64(together), carried,
                 [&](Value *from, ArrayRef<Value *> now) { return steps(from, together, now); });
  e.keepNextLoopRolled = true;
  carried = e.emitLoop(whole, count, e.i64(1), carried,
                       [&](Value *from, ArrayRef<Value *> now) { return steps(from, 1, now); });
  for (auto [result, value] : zip_equal(op.getResults(), carried))
    e.values[result] = value;
}

void tegula::emitTeamScan(DeviceEmitter &e, const PrefixLoop &prefix) {
  IRBuilder<> &b = e.b;
  tgl::ForOp op = prefix.loop;
  bool seen = e.exchanges(op);
  if (seen)
    e.barrier(); // earlier writes of all threads are seen, earlier reads are over
  Value *low = e.emitIndex(op.getLowExpr()), *high = e.emitIndex(op.getHighExpr());
  unsigned width = vectorOf(prefix);
  Value *count = b.CreateUDiv(
      b.CreateBinaryIntrinsic(Intrinsic::smax, b.CreateSub(high, low), e.i64(0)), e.i64(width));
  Value *init = e.valueOf(op.getInits()[0]);
  Type *type = init->getType();
  GlobalVariable *totals =
      e.shape.team > e.warp
          ? e.shared(ArrayType::get(b.getInt64Ty(), e.shape.team / e.warp), "totals")
          : nullptr;
  SmallVector<Value *> results = e.emitLoop(
      e.i64(0), count, e.i64(e.shape.team), {init}, [&](Value *chunk, ArrayRef<Value *> carried) {
        Value *number = b.CreateNSWAdd(chunk, e.thread);
        Value *exists = b.CreateICmpULT(number, count);
        number = b.CreateBinaryIntrinsic(Intrinsic::umin, number, b.CreateSub(count, e.i64(1)));
        Value *offset = b.CreateNSWMul(number, e.i64(width));
        Value *base = op.getReverse() ? b.CreateSub(b.CreateSub(high, e.i64(width)), offset)
                                      : b.CreateNSWAdd(low, offset);
        e.perThread = true;
        Value *total = nullptr;
        auto body = [&] {
          for (mlir::Operation *each : prefix.before)
            e.emitOp(each);
          Value *added = e.splat(e.valueOf(prefix.added));
          // Totals of the vector up to each of its steps.
          SmallVector<Value *> upTo(width);
          for (unsigned step = 0; step < width; ++step) {
            unsigned lane = op.getReverse() ? width - 1 - step : step;
            Value *one = e.isVector(added) ? b.CreateExtractElement(added, uint64_t(lane)) : added;
            one = b.CreateSelect(exists, one, identityOf(prefix.combine, type));
            upTo[step] = step ? combineWith(b, prefix.combine, upTo[step - 1], one) : one;
          }
          auto [before, all] = scanTeam(e, prefix.combine, upTo.back(), totals);
          before = combineWith(b, prefix.combine, carried[0], before);
          total = combineWith(b, prefix.combine, carried[0], all);
          Value *given = before;
          if (width > 1) {
            given = PoisonValue::get(FixedVectorType::get(type, width));
            for (unsigned step = 0; step < width; ++step) {
              unsigned lane = op.getReverse() ? width - 1 - step : step;
              Value *one = step ? combineWith(b, prefix.combine, before, upTo[step - 1]) : before;
              given = b.CreateInsertElement(given, one, uint64_t(lane));
            }
          }
          e.values[op.getIterArgs()[0]] = given;
          e.emitIf(exists, [&] {
            for (mlir::Operation *each : prefix.after)
              e.emitOp(each);
          });
        };
        if (width > 1) {
          e.withLanes(op.getLoopVar(), width, base, nullptr, body);
        } else {
          e.values[op.getLoopVar()] = base;
          body();
        }
        e.perThread = false;
        return SmallVector<Value *>{total};
      });
  e.values[op.getResults()[0]] = results[0];
  if (seen)
    e.barrier();
}
