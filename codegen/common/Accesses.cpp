//===- Accesses.cpp - tgl.read and tgl.write as LLVM IR ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/common/Accesses.h"

#include "codegen/common/AccessShape.h"
#include "codegen/common/ScalarEmitter.h"
#include "codegen/llvm/AccessMetadata.h"
#include "ir/tgl/TglReports.h"
#include "ir/tgl/TglUtils.h"
#include "ir/tgl/WriteAttributes.h"

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

Value *tegula::emitReadMask(ScalarEmitter &e, tgl::ReadOp op) {
  IRBuilder<> &b = e.b;
  e.checks.access = op;
  const ScalarEmitter::Buffer &buffer = e.buffers.find(op.getTensor())->second;
  SmallVector<ValueExpr> subscripts = op.getSubscriptExprs();
  Value *guard = op.getGuard() ? e.valueOf(op.getGuard()) : nullptr;
  Value *mask = guard;
  for (const auto &[numerator, denominator] : op.getExactExprs()) {
    Value *divisor = e.emitIndex(denominator);
    Value *remainder = e.emitMod(e.emitIndex(numerator), divisor, Divisor::Any);
    mask = e.emitAnd(mask, b.CreateICmpEQ(remainder, Constant::getNullValue(remainder->getType())));
    if (!isa<ConstantInt>(divisor)) // nothing is a multiple of 0
      mask = e.emitAnd(mask, b.CreateICmpNE(divisor, Constant::getNullValue(divisor->getType())));
  }
  bool mayMiss = op.getFill() && !e.insideReads.contains(op);
  bool mayLeave = mayMiss || op.getChecked() || e.options.checked;
  if (mayLeave) {
    Value *inside = e.checks.emitBoundsCheck(subscripts, buffer.type);
    if (!op.getFill()) {
      StringRef text = op.getChecked() ? *op.getChecked() : StringRef("a read");
      ErrorSite site{text.str(), op.getLoc()};
      if (auto what = op->getAttrOfType<mlir::StringAttr>(tgl::reportsAsAttrName))
        site = {what.str(), op.getLoc(), text.str()};
      e.checks.report(e.emitAnd(e.checks.reportMask(op, guard), b.CreateNot(inside)), site,
                      subscripts, buffer.type);
    }
    mask = e.emitAnd(mask, inside);
  }
  return mask;
}

/// What an element that other points may write at the same time holds, which may be undefined.
static Value *loadUnordered(ScalarEmitter &e, const ScalarEmitter::Buffer &buffer,
                            ArrayRef<ValueExpr> subscripts, Value *mask) {
  assert(!e.lanes && "lanes are not chosen for elements that others write");
  IRBuilder<> &b = e.b;
  Type *raw = e.storageType(buffer.type.getElementType());
  auto load = [&]() -> Value * {
    Value *offset = e.emitIndex(elementOffset(buffer.type, subscripts));
    LoadInst *found = b.CreateAlignedLoad(raw, b.CreateInBoundsGEP(raw, buffer.pointer, offset),
                                          Align(storageBytes(buffer.type.getElementType())));
    e.setAtomic(found);
    found->setMetadata(mayBeUndefined, MDNode::get(b.getContext(), {}));
    return found;
  };
  return mask ? e.emitIfElse(mask, load, Constant::getNullValue(raw)) : load();
}

void tegula::emitRead(ScalarEmitter &e, tgl::ReadOp op) {
  IRBuilder<> &b = e.b;
  auto found = e.buffers.find(op.getTensor());
  if (found == e.buffers.end())
    return e.fail(op, "a read of a tensor without a buffer");
  const ScalarEmitter::Buffer &buffer = found->second;
  SmallVector<ValueExpr> subscripts = op.getSubscriptExprs();
  Value *guard = op.getGuard() ? e.valueOf(op.getGuard()) : nullptr;
  Value *otherwise = nullptr; // null: 0
  Value *mask = emitReadMask(e, op);
  Value *isInside = mask;
  bool isUnordered = op->hasAttr(tgl::unorderedAttrName);
  if (!isUnordered)
    mask = e.shadow.checkRead(op, op.getTensor(), subscripts, mask);
  Value *raw = isUnordered ? loadUnordered(e, buffer, subscripts, mask)
                           : e.loadRaw(buffer, subscripts, mask);
  Value *value = e.decode(raw, buffer.type.getElementType());
  if (op.getFill() && mask) {
    // Where the guard is false the value is 0; where the element is missing, the fill.
    otherwise = e.valueOf(op.getFill());
    if (guard) {
      Value *operands[] = {guard, otherwise,
                           Constant::getNullValue(otherwise->getType()->getScalarType())};
      e.align(operands);
      otherwise = b.CreateSelect(operands[0], operands[1], operands[2]);
    }
    Value *operands[] = {isInside, value, otherwise};
    e.align(operands);
    value = b.CreateSelect(operands[0], operands[1], operands[2]);
  } else {
    e.loaded[op.getResult()] = {value, raw};
  }
  e.values[op.getResult()] = value;
}

Value *tegula::emitRaw(ScalarEmitter &e, mlir::Value value, mlir::Type element) {
  Value *now = e.valueOf(value);
  auto read = value.getDefiningOp<tgl::ReadOp>();
  auto found = e.loaded.find(value);
  bool isCopy = read && !element.isInteger(1) && read.getTensorType().getElementType() == element &&
                found != e.loaded.end() && found->second.first == now;
  return isCopy ? found->second.second : e.encode(now, element);
}

/// Points that meet write the same value, each by an atomic store; neighbours by stores of 64 bits.
/// A processor's vectors need no more: each of their elements is stored at once.
static void storeAlike(ScalarEmitter &e, const ScalarEmitter::Buffer &buffer,
                       ArrayRef<ValueExpr> subscripts, Value *raw, Value *mask) {
  IRBuilder<> &b = e.b;
  ValueExpr offset = elementOffset(buffer.type, subscripts);
  bool areNeighbours = e.lanes && e.laneStep(offset) == 1;
  if (areNeighbours && !e.options.wholeVectors)
    return e.storeElements(buffer, subscripts, raw, mask);
  unsigned bytes = storageBytes(buffer.type.getElementType());
  Type *bits = b.getIntNTy(bytes * 8);
  auto storeAt = [&](Value *value, Value *pointer, unsigned size) {
    StoreInst *store = b.CreateAlignedStore(value, pointer, Align(size));
    e.setAtomic(store);
    e.describeAccess(store, buffer);
  };
  Value *exists = e.emitAnd(mask, e.lanes ? e.lanes->mask : nullptr);
  unsigned words = e.lanes ? bytes * e.lanes->width / 8 : 0;
  if (areNeighbours && e.lanes->isAligned && words && bytes < 8 &&
      (!exists || (e.lanes->isWhole && !mask))) {
    auto storeWords = [&] {
      Value *first = b.CreateInBoundsGEP(bits, buffer.pointer, e.emitIndexAtLaneZero(offset));
      Value *all = b.CreateBitCast(e.splat(raw), VectorType::get(b.getInt64Ty(), words, false));
      for (unsigned word = 0; word < words; ++word)
        storeAt(b.CreateExtractElement(all, word),
                b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), first, word), 8);
    };
    if (!exists)
      return storeWords();
    e.emitIf(e.lanes->isWhole, storeWords);
    exists =
        b.CreateAnd(exists, b.CreateVectorSplat(e.lanes->width, b.CreateNot(e.lanes->isWhole)));
  }
  e.forEachLane(exists, {e.emitIndex(offset), raw}, [&](ArrayRef<Value *> scalars) {
    storeAt(b.CreateBitCast(scalars[1], bits),
            b.CreateInBoundsGEP(bits, buffer.pointer, scalars[0]), bytes);
  });
}

/// The larger of the value and the element, or the value where it replaces the element. A point
/// that comes too late to replace it finds a value that stays; who finds a larger one has no need
/// to write.
static void emitReplacing(ScalarEmitter &e, tgl::WriteOp op, Value *pointer, Value *offset,
                          Value *value, Value *mask) {
  assert(!e.lanes && "lanes are not chosen for elements that others write");
  IRBuilder<> &b = e.b;
  Type *raw = e.storageType(op.getTensorType().getElementType());
  MaybeAlign alignment(storageBytes(op.getTensorType().getElementType()));
  Value *found = e.valueOf(op.getReplaced()), *stays = e.valueOf(op.getUnless());
  e.emitIf(mask ? mask : b.getTrue(), [&] {
    Value *address = b.CreateInBoundsGEP(raw, pointer, offset);
    auto replace = [&]() -> Value * {
      AtomicCmpXchgInst *swap = b.CreateAtomicCmpXchg(
          address, found, value, alignment, AtomicOrdering::Monotonic, AtomicOrdering::Monotonic);
      e.setAtomic(swap);
      swap->setMetadata(mayBeUndefined, MDNode::get(b.getContext(), {}));
      return b.CreateSelect(b.CreateExtractValue(swap, 1), value, b.CreateExtractValue(swap, 0));
    };
    Value *before = e.emitIfElse(b.CreateNot(stays), replace, found);
    e.emitIf(b.CreateICmpSLT(before, value), [&] {
      e.setAtomic(b.CreateAtomicRMW(AtomicRMWInst::Max, address, value, alignment,
                                    AtomicOrdering::Monotonic));
    });
  });
}

void tegula::emitCombine(ScalarEmitter &e, tgl::WriteOp op, Value *pointer, Value *offset,
                         Value *value, Value *mask) {
  if (op.getReplaced())
    return emitReplacing(e, op, pointer, offset, value, mask);
  IRBuilder<> &b = e.b;
  mlir::Type element = op.getTensorType().getElementType();
  if (!element.isF32() && !element.isF64() && !element.isInteger(32) && !element.isInteger(64))
    return e.fail(op, "accumulation in a storage type needs a wider temporary");
  bool isInteger = element.isInteger();
  AtomicRMWInst::BinOp opcode = isInteger ? AtomicRMWInst::Add : AtomicRMWInst::FAdd;
  if (op.getCombine() == tgl::ReduceKind::Max)
    opcode = !isInteger                    ? AtomicRMWInst::FMaximum
             : element.isUnsignedInteger() ? AtomicRMWInst::UMax
                                           : AtomicRMWInst::Max;
  else if (op.getCombine() == tgl::ReduceKind::Min)
    opcode = !isInteger                    ? AtomicRMWInst::FMinimum
             : element.isUnsignedInteger() ? AtomicRMWInst::UMin
                                           : AtomicRMWInst::Min;
  // Each lane counts, also where all add the same to one element and none is left out.
  bool isUniform = e.lanes && !e.lanes->mask && !e.isVector(offset) && !e.isVector(value) &&
                   !(mask && e.isVector(mask));
  if (isUniform && opcode == AtomicRMWInst::Add)
    value = b.CreateMul(value, ConstantInt::get(value->getType(), e.lanes->width));
  else if (isUniform && opcode == AtomicRMWInst::FAdd)
    value = b.CreateFMul(value, ConstantFP::get(value->getType(), e.lanes->width));
  e.forEachLane(e.emitAnd(mask, e.lanes ? e.lanes->mask : nullptr), {offset, value},
                [&](ArrayRef<Value *> scalars) {
                  Value *address = b.CreateInBoundsGEP(e.storageType(element), pointer, scalars[0]);
                  e.setAtomic(b.CreateAtomicRMW(opcode, address, scalars[1],
                                                MaybeAlign(storageBytes(element)),
                                                AtomicOrdering::Monotonic));
                });
}

Value *tegula::emitWriteMask(ScalarEmitter &e, tgl::WriteOp op) {
  e.checks.access = op;
  tgl::TglTensorType type = op.getTensorType();
  SmallVector<ValueExpr> subscripts = op.getSubscriptExprs();
  Value *guard = op.getGuard() ? e.valueOf(op.getGuard()) : nullptr;
  if (!op.getChecked() && !e.options.checked)
    return guard;
  Value *inside = e.checks.emitBoundsCheck(subscripts, type);
  StringRef text = op.getChecked() ? *op.getChecked() : StringRef("a write");
  e.checks.report(e.emitAnd(e.checks.reportMask(op, guard), e.b.CreateNot(inside)),
                  {text.str(), op.getLoc()}, subscripts, type);
  return e.emitAnd(guard, inside);
}

void tegula::emitWrite(ScalarEmitter &e, tgl::WriteOp op) {
  auto found = e.buffers.find(op.getTensor());
  if (found == e.buffers.end())
    return e.fail(op, "a write to a tensor without a buffer");
  const ScalarEmitter::Buffer &buffer = found->second;
  SmallVector<ValueExpr> subscripts = op.getSubscriptExprs();
  Value *mask = emitWriteMask(e, op);
  Value *value = e.valueOf(op.getValue());
  mlir::Type element = buffer.type.getElementType();
  bool areAlike = op.getCombine() == tgl::ReduceKind::Any;
  bool combines = op.getCombine() && !areAlike;
  Value *raw = combines ? nullptr : emitRaw(e, op.getValue(), element);
  mask = e.shadow.checkWrite(op, op.getTensor(), subscripts, mask, raw);
  e.checks.verifyProved(buffer.type, subscripts, mask); // all but those that a warp combines
  if (combines)
    return emitCombine(e, op, buffer.pointer, e.emitIndex(elementOffset(buffer.type, subscripts)),
                       value, mask);
  if (areAlike && !isPacked(element)) // nibbles are stored by atomic operations
    return storeAlike(e, buffer, subscripts, raw, mask);
  e.storeElements(buffer, subscripts, raw, mask);
}
