//===- EmitStamps.cpp - Which elements are defined, and by whom -------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In checked mode every element of what a kernel writes has a stamp: 0 as long as nothing has defined
// it, else twice the time of its last write, plus one where that added. Time is a clock that every
// point of a `parallel` advances, so that the points between the beginning of a running `parallel` and
// its present point are the other points of it: what they wrote, this point may not read or write.
// The rules are those of the interpreter (ir/interpreter); checked code runs on one thread, in order.
//
//===----------------------------------------------------------------------===//
#include "codegen/Emitter.h"

#include "ir/WriteAttributes.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

Value *Emitter::tick() {
  Value *now = b.CreateAdd(b.CreateLoad(b.getInt64Ty(), clock), i64(1));
  b.CreateStore(now, clock);
  return now;
}

void Emitter::beginPoints() {
  if (clock)
    levels.push_back({tick(), nullptr});
}

void Emitter::beginPoint() {
  if (clock)
    levels.back().point = tick();
}

void Emitter::endPoints() {
  if (!clock)
    return;
  levels.pop_back();
  tick(); // what comes after is later than the last point
}

/// Whether a write at this time was by another point of a `parallel` around.
Value *Emitter::isByAnotherPoint(Value *when) {
  Value *result = b.getFalse();
  for (const Level &level : levels)
    result = b.CreateOr(result, b.CreateAnd(b.CreateICmpSGE(when, level.begin),
                                            b.CreateICmpSLT(when, level.point)));
  return result;
}

/// Where `bad` holds: reports the element at `offset`, in words that follow its name.
void Emitter::reportElement(Value *bad, mlir::Operation *op, mlir::Value tensor, Value *offset,
                            StringRef what) {
  ErrorSite site{what.str(), op->getLoc(), {}, cast<tgl::TglTensorType>(tensor.getType())};
  if (auto temp = tensor.getDefiningOp<tgl::TempOp>())
    site.tensor = temp.getName().str();
  else if (auto argument = dyn_cast<mlir::BlockArgument>(tensor))
    site.tensor = cast<tgl::KernelOp>(argument.getOwner()->getParentOp())
                      .getArgName(argument.getArgNumber())
                      .str();
  sites.push_back(std::move(site));
  unsigned number = sites.size() - 1;
  emitIf(bad, [&] { leave(number, offset); });
}

/// The part of `mask` (null: true) for which the element may be read.
Value *Emitter::checkRead(mlir::Operation *op, mlir::Value tensor, ArrayRef<ValueExpr> subscripts,
                          Value *mask) {
  const Buffer &buffer = buffers.find(tensor)->second;
  if (!clock || !buffer.stamps)
    return mask;
  Value *offset = emitIndex(elementOffset(buffer.type, subscripts));
  return emitIfElse(
      mask ? mask : b.getTrue(), [&] { return checkReadAt(op, tensor, offset); }, b.getFalse());
}

Value *Emitter::checkReadAt(mlir::Operation *op, mlir::Value tensor, Value *offset) {
  const Buffer &buffer = buffers.find(tensor)->second;
  assert(buffer.stamps && "what a kernel writes has stamps");
  Value *stamp = b.CreateLoad(b.getInt64Ty(), b.CreateGEP(b.getInt64Ty(), buffer.stamps, offset));
  Value *isUndefined = b.CreateICmpEQ(stamp, i64(0));
  reportElement(isUndefined, op, tensor, offset, "is read before anything has defined it");
  Value *when = b.CreateLShr(stamp, 1);
  reportElement(isByAnotherPoint(when), op, tensor, offset,
                "is read by one point of a parallel and written by another");
  return b.CreateNot(isUndefined);
}

/// The part of `mask` for which the element may be written; leaves the write's stamp.
Value *Emitter::checkWrite(mlir::Operation *op, mlir::Value tensor, ArrayRef<ValueExpr> subscripts,
                           Value *mask, bool combines) {
  const Buffer &buffer = buffers.find(tensor)->second;
  if (!clock || !buffer.stamps)
    return mask;
  Value *offset = emitIndex(elementOffset(buffer.type, subscripts));
  return emitIfElse(
      mask ? mask : b.getTrue(), [&] { return checkWriteAt(op, tensor, offset, combines); },
      b.getFalse());
}

Value *Emitter::checkWriteAt(mlir::Operation *op, mlir::Value tensor, Value *offset, bool combines) {
  const Buffer &buffer = buffers.find(tensor)->second;
  Value *address = b.CreateGEP(b.getInt64Ty(), buffer.stamps, offset);
  Value *stamp = b.CreateLoad(b.getInt64Ty(), address);
  Value *isDefined = b.CreateICmpNE(stamp, i64(0));
  Value *meets = b.CreateAnd(isDefined, isByAnotherPoint(b.CreateLShr(stamp, 1)));
  auto write = dyn_cast<tgl::WriteOp>(op);
  bool needsElement = combines && write.getCombine() != tgl::ReduceKind::Any;
  if (needsElement)
    reportElement(b.CreateNot(isDefined), op, tensor, offset, "is added to before anything has defined it");
  if (combines) // sums meet, and values that are alike
    meets = b.CreateAnd(meets, b.CreateNot(b.CreateTrunc(stamp, b.getInt1Ty())));
  std::string what = "is written by two points of a parallel";
  if (auto names = op->getAttrOfType<mlir::StringAttr>(tgl::distinctAttrName))
    what = "is written twice, and '" + names.str() + "' is said to be distinct";
  reportElement(meets, op, tensor, offset, what);
  Value *now = b.CreateShl(b.CreateLoad(b.getInt64Ty(), clock), 1);
  Value *next = b.CreateOr(now, i64(combines));
  b.CreateStore(needsElement ? b.CreateSelect(isDefined, next, stamp) : next, address);
  return needsElement ? isDefined : b.getTrue();
}

void Emitter::checkComplete(mlir::Operation *op, mlir::Value tensor) {
  const Buffer &buffer = buffers.find(tensor)->second;
  IndexExpr count(1);
  for (tgl::IndexExprAttr dim : buffer.type.getDims())
    count = count * dim.getExpr();
  emitLoop(i64(0), emitSize(count), i64(1), {}, [&](Value *offset, ArrayRef<Value *>) {
    Value *stamp = b.CreateLoad(b.getInt64Ty(), b.CreateGEP(b.getInt64Ty(), buffer.stamps, offset));
    reportElement(b.CreateICmpEQ(stamp, i64(0)), op, tensor, offset, "is never written");
    return SmallVector<Value *>();
  });
}
