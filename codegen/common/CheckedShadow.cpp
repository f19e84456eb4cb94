//===- CheckedShadow.cpp - Shadow memory that checks definitions (checked mode) ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In checked mode every element of what a kernel writes has a stamp: 0 as long as nothing has
// defined it, else the time of its last write and its kind (ir/tgl/WriteAttributes.h): sums meet
// sums and maxima maxima, `any` meets what stored the same bits. Time is a clock that every point
// of a `parallel` advances, so that the points between the beginning of a running `parallel` and
// its present point are the other points of it: what they wrote, this point may not read or write.
// The rules are those of the interpreter (ir/interpreter); checked code runs on one thread, in
// order.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/CheckedShadow.h"

#include "codegen/common/ScalarEmitter.h"
#include "ir/tgl/TglUtils.h"
#include "ir/tgl/WriteAttributes.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

CheckedShadow::CheckedShadow(ScalarEmitter &e, RuntimeChecks &checks)
    : e(e), b(e.b), checks(checks) {}

Value *CheckedShadow::tick() {
  Value *now = b.CreateAdd(b.CreateLoad(b.getInt64Ty(), clock), e.i64(1));
  b.CreateStore(now, clock);
  return now;
}

void CheckedShadow::beginPoints() {
  if (clock)
    levels.push_back({tick(), nullptr});
}

void CheckedShadow::beginPoint() {
  if (clock)
    levels.back().point = tick();
}

void CheckedShadow::endPoints() {
  if (!clock)
    return;
  levels.pop_back();
  tick(); // what comes after is later than the last point
}

/// Whether a write at this time was by another point of a `parallel` around.
Value *CheckedShadow::isByAnotherPoint(Value *when) {
  Value *result = b.getFalse();
  for (const Level &level : levels)
    result = b.CreateOr(result, b.CreateAnd(b.CreateICmpSGE(when, level.begin),
                                            b.CreateICmpSLT(when, level.point)));
  return result;
}

/// The part of `mask` (null: true) for which the element may be read.
Value *CheckedShadow::checkRead(mlir::Operation *op, mlir::Value tensor,
                                ArrayRef<ValueExpr> subscripts, Value *mask) {
  const ScalarEmitter::Buffer &buffer = e.buffers.find(tensor)->second;
  if (!clock || !buffer.shadow)
    return mask;
  Value *offset = e.emitIndex(tgl::elementOffset(buffer.type, subscripts));
  return e.emitIfElse(
      mask ? mask : b.getTrue(), [&] { return checkReadAt(op, tensor, offset); }, b.getFalse());
}

Value *CheckedShadow::checkReadAt(mlir::Operation *op, mlir::Value tensor, Value *offset) {
  const ScalarEmitter::Buffer &buffer = e.buffers.find(tensor)->second;
  assert(buffer.shadow && "what a kernel writes has stamps");
  Value *stamp = b.CreateLoad(b.getInt64Ty(), b.CreateGEP(b.getInt64Ty(), buffer.shadow, offset));
  Value *isUndefined = b.CreateICmpEQ(stamp, e.i64(0));
  checks.reportElement(isUndefined, op, tensor, offset, "is read before anything has defined it");
  Value *when = b.CreateLShr(stamp, tgl::stampKindBits);
  checks.reportElement(isByAnotherPoint(when), op, tensor, offset,
                       "is read by one point of a parallel and written by another");
  return b.CreateNot(isUndefined);
}

/// The part of `mask` for which the element may be written; leaves the write's stamp. `raw`: what
/// `any` stores.
Value *CheckedShadow::checkWrite(mlir::Operation *op, mlir::Value tensor,
                                 ArrayRef<ValueExpr> subscripts, Value *mask, Value *raw) {
  const ScalarEmitter::Buffer &buffer = e.buffers.find(tensor)->second;
  if (!clock || !buffer.shadow)
    return mask;
  Value *offset = e.emitIndex(tgl::elementOffset(buffer.type, subscripts));
  return e.emitIfElse(
      mask ? mask : b.getTrue(),
      [&] {
        Value *differs = b.getTrue();
        auto write = cast<tgl::WriteOp>(op);
        if (write.getCombine() == tgl::ReduceKind::Any) {
          Value *before = e.loadRaw(buffer, subscripts, nullptr);
          Type *bits = b.getIntNTy(before->getType()->getScalarSizeInBits());
          differs = b.CreateICmpNE(b.CreateBitCast(before, bits), b.CreateBitCast(raw, bits));
        }
        return checkWriteAt(op, tensor, offset, write.getCombine(), differs);
      },
      b.getFalse());
}

/// `differs`: whether what is there has other bits than what `any` stores.
Value *CheckedShadow::checkWriteAt(mlir::Operation *op, mlir::Value tensor, Value *offset,
                                   std::optional<tgl::ReduceKind> combine, Value *differs) {
  const ScalarEmitter::Buffer &buffer = e.buffers.find(tensor)->second;
  Value *address = b.CreateGEP(b.getInt64Ty(), buffer.shadow, offset);
  Value *stamp = b.CreateLoad(b.getInt64Ty(), address);
  Value *isDefined = b.CreateICmpNE(stamp, e.i64(0));
  Value *when = b.CreateLShr(stamp, tgl::stampKindBits);
  Value *meets = b.CreateAnd(isDefined, isByAnotherPoint(when));
  bool needsElement = combine && combine != tgl::ReduceKind::Any;
  if (needsElement)
    checks.reportElement(b.CreateNot(isDefined), op, tensor, offset,
                         "is added to before anything has defined it");
  Value *now = b.CreateLoad(b.getInt64Ty(), clock);
  Value *kind = e.i64(tgl::writeKind(combine));
  Value *isOther = b.CreateICmpNE(b.CreateAnd(stamp, (1 << tgl::stampKindBits) - 1), kind);
  std::string what = "is written by two points of a parallel";
  if (combine) { // writes of one kind meet
    if (combine == tgl::ReduceKind::Any)
      isOther = b.CreateOr(isOther, differs);
    meets = b.CreateAnd(meets, isOther);
    // Who meets a point that has written in two ways meets the other way too.
    kind = b.CreateSelect(b.CreateAnd(isOther, b.CreateICmpEQ(when, now)), e.i64(tgl::plainWrite),
                          kind);
  }
  if (auto names = op->getAttrOfType<mlir::StringAttr>(tgl::distinctAttrName))
    what = "is written twice, and '" + names.str() + "' is said to be distinct";
  checks.reportElement(meets, op, tensor, offset, what);
  Value *next = b.CreateOr(b.CreateShl(now, tgl::stampKindBits), kind);
  b.CreateStore(needsElement ? b.CreateSelect(isDefined, next, stamp) : next, address);
  return needsElement ? isDefined : b.getTrue();
}

void CheckedShadow::checkComplete(mlir::Operation *op, mlir::Value tensor) {
  const ScalarEmitter::Buffer &buffer = e.buffers.find(tensor)->second;
  IndexExpr count(1);
  for (tgl::IndexExprAttr dim : buffer.type.getDims())
    count = count * dim.getExpr();
  e.emitLoop(e.i64(0), e.emitSize(count), e.i64(1), {}, [&](Value *offset, ArrayRef<Value *>) {
    Value *stamp = b.CreateLoad(b.getInt64Ty(), b.CreateGEP(b.getInt64Ty(), buffer.shadow, offset));
    checks.reportElement(b.CreateICmpEQ(stamp, e.i64(0)), op, tensor, offset, "is never written");
    return SmallVector<Value *>();
  });
}
