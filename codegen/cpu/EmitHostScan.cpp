//===- EmitHostScan.cpp - Running sums on a processor ------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/cpu/HostEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace llvm;
using namespace tegula;

/// `total = total + v` or `total = total*v` in f32, of what a loop carries: the operation, else
/// null. (Extremes do not round, and a state of a narrower type is rounded at each step because the
/// program says so.)
static mlir::Operation *totalOf(tgl::ForOp loop, unsigned number) {
  mlir::Value carried = loop.getIterArgs()[number];
  mlir::Operation *combine = loop.getYield().getValues()[number].getDefiningOp();
  bool isTotal = carried.getType().isF32() && combine && combine->getParentOp() == loop &&
                 isa<mlir::arith::AddFOp, mlir::arith::MulFOp>(combine) &&
                 (combine->getOperand(0) == carried) != (combine->getOperand(1) == carried);
  return isTotal ? combine : nullptr;
}

/// Totals are carried in f64, so that their error does not grow with the number of steps.
void HostEmitter::emitFor(tgl::ForOp op) {
  DenseMap<mlir::Operation *, unsigned> totals;
  for (unsigned number = 0; number < op.getIterArgs().size(); ++number)
    if (mlir::Operation *combine = totalOf(op, number))
      totals.try_emplace(combine, number);
  if (totals.empty())
    return Emitter::emitFor(op);
  auto isWide = [&](unsigned number) {
    auto total = totals.find(op.getYield().getValues()[number].getDefiningOp());
    return total != totals.end() && total->second == number;
  };
  auto widen = [&](Value *value) {
    return b.CreateFPExt(value, value->getType()->getWithNewType(b.getDoubleTy()));
  };
  auto narrow = [&](Value *value) {
    return b.CreateFPTrunc(value, value->getType()->getWithNewType(b.getFloatTy()));
  };
  SmallVector<Value *> inits;
  for (auto [number, init] : enumerate(op.getInits())) {
    Value *value = splat(valueOf(init));
    inits.push_back(isWide(number) ? widen(value) : value);
  }
  Value *low = emitIndex(op.getLowExpr()), *high = emitIndex(op.getHighExpr());
  SmallVector<Value *> results = emitLoop(
      low, high, i64(1), inits,
      [&](Value *iv, ArrayRef<Value *> carried) {
        values[op.getLoopVar()] =
            op.getReverse() ? b.CreateSub(b.CreateSub(b.CreateAdd(high, low), i64(1)), iv) : iv;
        for (auto [number, argument] : enumerate(op.getIterArgs()))
          values[argument] = isWide(number) ? narrow(carried[number]) : carried[number];
        SmallVector<Value *> next(carried);
        for (mlir::Operation &nested : op.getBody().front().without_terminator()) {
          auto total = totals.find(&nested);
          if (total == totals.end()) {
            emitOp(&nested);
          } else {
            unsigned number = total->second,
                     first = nested.getOperand(0) == op.getIterArgs()[number];
            Value *operand = widen(splat(valueOf(nested.getOperand(first))));
            next[number] = isa<mlir::arith::AddFOp>(nested)
                               ? b.CreateFAdd(carried[number], operand)
                               : b.CreateFMul(carried[number], operand);
            values[nested.getResult(0)] = narrow(next[number]);
          }
          if (failed())
            return next;
        }
        for (auto [number, value] : enumerate(op.getYield().getValues()))
          if (!isWide(number))
            next[number] = splat(valueOf(value));
        return next;
      },
      "t");
  for (auto [number, result] : enumerate(op.getResults()))
    values[result] = isWide(number) ? narrow(results[number]) : results[number];
}
