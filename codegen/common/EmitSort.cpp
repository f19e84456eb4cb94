//===- EmitSort.cpp - Sorting a row as LLVM IR -------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A bitonic network (Batcher 1968) in the form whose comparators all point upwards, so that it
// sorts rows of any length: partners beyond the end count as largest and are left out. Its steps
// are parallel, which serves blocks of threads and single ones alike. Positions differ and decide
// between equals, so the result is the stable one.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/EmitSort.h"

#include "codegen/common/Emitter.h"
#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

void tegula::emitSortNetwork(Emitter &e, tgl::SortOp op) {
  IRBuilder<> &b = e.b;
  const Emitter::Buffer values = e.buffers.lookup(op.getValues()),
                        positions = e.buffers.lookup(op.getPositions());
  mlir::Type element = values.type.getElementType(), position = positions.type.getElementType();
  if (e.lanes || element.isInteger(4) || position.isInteger(4))
    return e.fail(op, "a sort of packed elements, or inside vector lanes");
  SmallVector<ValueExpr> first = op.getSubscriptExprs();
  first.push_back(ValueExpr(int64_t(0)));
  Value *row = e.emitIndex(elementOffset(values.type, first));
  Value *length = e.emitSize(values.type.getDims().back().getExpr());
  if (e.shadow.clock) {
    // Every element is read and written; a network moves what it likes then.
    Value *outside =
        b.CreateNot(e.checks.emitBoundsCheck(ArrayRef(first).drop_back(), values.type));
    e.checks.report(outside, {"a row of a sort", op.getLoc()}, ArrayRef(first).drop_back(),
                    values.type);
    length = b.CreateSelect(outside, e.i64(0), length);
    e.emitSteps(length, [&](Value *n) {
      Value *offset = b.CreateAdd(row, n);
      for (mlir::Value tensor : {op.getValues(), op.getPositions()}) {
        e.shadow.checkReadAt(op, tensor, offset);
        e.shadow.checkWriteAt(op, tensor, offset);
      }
    });
  }
  auto at = [&](const Emitter::Buffer &buffer, mlir::Type type, Value *n) {
    return b.CreateInBoundsGEP(e.storageType(type), buffer.pointer, b.CreateAdd(row, n));
  };

  /// Puts the elements at low < high in order.
  auto compareAndSwap = [&](Value *low, Value *high) {
    Value *lowAt = at(values, element, low), *highAt = at(values, element, high);
    Value *lowPositionAt = at(positions, position, low),
          *highPositionAt = at(positions, position, high);
    Value *lowRaw = b.CreateLoad(e.storageType(element), lowAt);
    Value *highRaw = b.CreateLoad(e.storageType(element), highAt);
    Value *lowPosition = b.CreateLoad(e.storageType(position), lowPositionAt);
    Value *highPosition = b.CreateLoad(e.storageType(position), highPositionAt);
    Value *x = e.decode(highRaw, element), *y = e.decode(lowRaw, element);
    // Does x, now at the higher place, precede y?
    Value *before, *equal;
    if (x->getType()->isFloatingPointTy()) {
      Value *xNan = b.CreateFCmpUNO(x, x), *yNan = b.CreateFCmpUNO(y, y);
      before = op.getDescending()
                   ? b.CreateOr(b.CreateFCmpOGT(x, y), b.CreateAnd(xNan, b.CreateNot(yNan)))
                   : b.CreateOr(b.CreateFCmpOLT(x, y), b.CreateAnd(yNan, b.CreateNot(xNan)));
      equal = b.CreateOr(b.CreateFCmpOEQ(x, y), b.CreateAnd(xNan, yNan));
    } else {
      bool isBool = x->getType()->isIntegerTy(1);
      CmpInst::Predicate less = isBool ? CmpInst::ICMP_ULT : CmpInst::ICMP_SLT;
      before = op.getDescending() ? b.CreateICmp(less, y, x) : b.CreateICmp(less, x, y);
      equal = b.CreateICmpEQ(x, y);
    }
    Value *earlier = b.CreateICmpSLT(highPosition, lowPosition);
    e.emitIf(b.CreateOr(before, b.CreateAnd(equal, earlier)), [&] {
      b.CreateStore(highRaw, lowAt);
      b.CreateStore(lowRaw, highAt);
      b.CreateStore(highPosition, lowPositionAt);
      b.CreateStore(lowPosition, highPositionAt);
    });
  };
  /// One step of the network: partners differ in the bits of `distance`.
  auto step = [&](Value *distance) {
    e.emitSteps(length, [&](Value *low) {
      Value *high = b.CreateXor(low, distance);
      Value *exists = b.CreateAnd(b.CreateICmpSGT(high, low), b.CreateICmpSLT(high, length));
      e.emitIf(exists, [&] { compareAndSwap(low, high); });
    });
  };
  // Sorted runs of 1, 2, 4, ... elements; 62 doublings reach every length.
  e.emitLoop(e.i64(0), e.i64(62), e.i64(1), {}, [&](Value *doubling, ArrayRef<Value *>) {
    Value *run = b.CreateShl(e.i64(1), doubling);
    e.emitIf(b.CreateICmpSLT(run, length), [&] {
      step(b.CreateSub(b.CreateShl(run, 1),
                       e.i64(1))); // mirrored: merges two runs into a bitonic one
      e.emitLoop(e.i64(0), doubling, e.i64(1), {}, [&](Value *halving, ArrayRef<Value *>) {
        step(b.CreateLShr(run, b.CreateAdd(halving, e.i64(1))));
        return SmallVector<Value *>();
      });
    });
    return SmallVector<Value *>();
  });
}
