//===- EmitHostScan.cpp - Running sums on a processor ------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/HostEmitter.h"
#include "passes/PrefixLoop.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace llvm;
using namespace tegula;

void HostEmitter::emitFor(tgl::ForOp op) {
  std::optional<PrefixLoop> prefix = matchPrefixLoop(op);
  if (!prefix || !isa<mlir::arith::AddFOp>(prefix->combine) || !prefix->added.getType().isF32())
    return Emitter::emitFor(op);
  Value *init = splat(valueOf(op.getInits()[0]));
  Type *narrow = init->getType(), *wide = narrow->getWithNewType(b.getDoubleTy());
  Value *low = emitIndex(op.getLowExpr()), *high = emitIndex(op.getHighExpr());
  SmallVector<Value *> totals = emitLoop(
      low, high, i64(1), {b.CreateFPExt(init, wide)},
      [&](Value *iv, ArrayRef<Value *> carried) {
        values[op.getLoopVar()] = op.getReverse() ? b.CreateSub(b.CreateSub(b.CreateAdd(high, low), i64(1)), iv) : iv;
        values[op.getIterArgs()[0]] = b.CreateFPTrunc(carried[0], narrow);
        Value *next = carried[0];
        for (mlir::Operation &nested : op.getBody().front().without_terminator()) {
          if (&nested == prefix->combine) {
            next = b.CreateFAdd(next, b.CreateFPExt(splat(valueOf(prefix->added)), wide));
            values[nested.getResult(0)] = b.CreateFPTrunc(next, narrow);
          } else {
            emitOp(&nested);
          }
          if (failed())
            break;
        }
        return SmallVector<Value *>{next};
      },
      "t");
  values[op.getResults()[0]] = b.CreateFPTrunc(totals[0], narrow);
}
