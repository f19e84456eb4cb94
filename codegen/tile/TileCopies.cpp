//===- TileCopies.cpp - Copies of operands to shared memory -----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/tile/TileEmitter.h"

#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

MmaSharedLayout TileEmitter::sharedLayout(tile::SharedType type) {
  return {type.getKMajor(), type.getElementType().getIntOrFloatBitWidth() / 8,
          unsigned(type.getShape()[0])};
}

MmaType TileEmitter::mmaType(tile::SharedType type) {
  mlir::Type element = type.getElementType();
  return element.isF32() ? MmaType::TF32 : element.isBF16() ? MmaType::BF16 : MmaType::F16;
}

/// Neighbouring threads have neighbours of a line.
void TileEmitter::forCopies(tile::CopyOp op, unsigned vector, function_ref<void(CopyPlace)> body) {
  MmaSharedLayout layout = sharedLayout(op.getTarget().getType());
  unsigned perLine = layout.lineLength() / vector;
  int64_t count = int64_t(layout.lines()) * perLine, threads = *kernel.getThreads();
  keepNextLoopRolled = vector == 1; // elements would be much code
  emitLoop(
      b.CreateZExt(thread, b.getInt64Ty()), i64(count), i64(threads), {},
      [&](Value *number, ArrayRef<Value *>) {
        Value *word = b.CreateTrunc(number, b.getInt32Ty());
        body({b.CreateUDiv(word, i32(perLine)),
              b.CreateMul(b.CreateURem(word, i32(perLine)), i32(vector))});
        return Values();
      },
      "copy");
}

Value *TileEmitter::setCopyPoint(tile::CopyOp op, CopyPlace place) {
  bool kMajor = op.getTarget().getType().getKMajor();
  Value *inTile[] = {kMajor ? place.line : place.position, kMajor ? place.position : place.line};
  Value *exists = nullptr;
  for (auto [argument, operand, at] :
       zip_equal(op.getBody().getArguments(), op.getSpans(), inTile)) {
    const Span span = spans[operand];
    Value *point = b.CreateAdd(span.base, wide(at));
    if (!span.isFull)
      exists = emitAnd(exists, b.CreateICmpSLT(point, span.end));
    values[argument] = clamp(point, span);
  }
  return exists;
}

Value *TileEmitter::sharedAddress(tile::CopyOp op, CopyPlace place) {
  tile::SharedType type = op.getTarget().getType();
  Value *offset = Mma(b, mmaType(type)).offset(sharedLayout(type), place.line, place.position);
  return b.CreateInBoundsGEP(b.getInt8Ty(), parts[op.getTarget()].front(), offset);
}

void TileEmitter::emitCopy(tile::CopyOp op) {
  tile::SharedType type = op.getTarget().getType();
  unsigned elementBytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  if (op.getKind() == tile::CopyKind::Registers) {
    forCopies(op, 1, [&](CopyPlace place) {
      Value *exists = setCopyPoint(op, place);
      emitPoint(op.getBody().front());
      Value *bits = valueOf(op.getYielded());
      if (!type.getElementType().isF32())
        bits = Mma(b, mmaType(type)).narrow(bits);
      if (exists)
        bits = b.CreateSelect(exists, bits, Constant::getNullValue(bits->getType()));
      b.CreateAlignedStore(bits, sharedAddress(op, place), Align(elementBytes));
    });
    return;
  }
  constexpr unsigned vectorBytes = 16;
  auto read = op.getYielded().getDefiningOp<tgl::ReadOp>();
  const Buffer &buffer = buffers.find(read.getTensor())->second;
  forCopies(op, vectorBytes / elementBytes, [&](CopyPlace place) {
    Value *exists = setCopyPoint(op, place);
    Value *offset = emitIndex(tgl::elementOffset(buffer.type, read.getSubscriptExprs()));
    Values operands{sharedAddress(op, place), nullptr};
    if (exists) { // nothing is read of what does not exist
      offset = b.CreateSelect(exists, offset, i64(0));
      operands.push_back(b.CreateSelect(exists, i32(vectorBytes), i32(0)));
    }
    operands[1] = b.CreateInBoundsGEP(storageType(type.getElementType()), buffer.pointer, offset);
    b.CreateIntrinsic(b.getVoidTy(),
                      exists ? Intrinsic::nvvm_cp_async_cg_shared_global_16_s
                             : Intrinsic::nvvm_cp_async_cg_shared_global_16,
                      operands);
  });
}
