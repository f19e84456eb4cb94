//===- TileCopies.cpp - Copies of operands to shared memory -----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/tile/TileEmitter.h"

#include "codegen/common/Accesses.h"
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
  tile::SharedType type = op.getTarget().getType();
  int64_t perLine = type.getLineLength() / vector;
  int64_t count = type.getLines() * perLine, threads = *kernel.getThreads();
  constexpr int64_t warpThreads = 32, mostTogether = 8, mostTurns = 16;
  // All threads have as many, whose places differ by constants.
  if (vector > 1 && threads > warpThreads && count % threads == 0 && threads % perLine == 0 &&
      count / threads <= mostTurns) {
    Value *line = b.CreateUDiv(thread, i32(perLine)),
          *position = b.CreateMul(b.CreateURem(thread, i32(perLine)), i32(vector));
    for (int64_t turn = 0; turn < count / threads; ++turn)
      body({b.CreateAdd(line, i32(turn * (threads / perLine))), position});
    return;
  }
  // A warp that is alone in its block has nobody to hide what a turn of the loop waits for.
  int64_t together = 1;
  while (vector > 1 && threads == warpThreads && together < mostTogether &&
         count % (2 * together * threads) == 0)
    together *= 2;
  keepNextLoopRolled = vector == 1 || together > 1; // elements would be much code
  emitLoop(
      b.CreateZExt(thread, b.getInt64Ty()), i64(count), i64(threads * together), {},
      [&](Value *number, ArrayRef<Value *>) {
        Value *first = b.CreateTrunc(number, b.getInt32Ty());
        for (int64_t turn = 0; turn < together; ++turn) {
          Value *word = b.CreateAdd(first, i32(turn * threads));
          body({b.CreateUDiv(word, i32(perLine)),
                b.CreateMul(b.CreateURem(word, i32(perLine)), i32(vector))});
        }
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

Value *TileEmitter::sharedAddress(mlir::Value tile, CopyPlace place) {
  auto type = cast<tile::SharedType>(tile.getType());
  Value *offset =
      type.isOfBytes()
          ? b.CreateAdd(b.CreateMul(place.line, i32(type.getLineLength())), place.position)
          : Mma(b, mmaType(type)).offset(sharedLayout(type), place.line, place.position);
  return b.CreateInBoundsGEP(b.getInt8Ty(), parts[tile].front(), offset);
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
      b.CreateAlignedStore(bits, sharedAddress(op.getTarget(), place), Align(elementBytes));
    });
    return;
  }
  auto read = op.getYielded().getDefiningOp<tgl::ReadOp>();
  if (&op.getBody().front().front() != read || read.getGuard() || read.getChecked())
    return emitLineCopies(op, read);
  const Buffer &buffer = buffers.find(read.getTensor())->second;
  forCopies(op, vectorBytes / elementBytes, [&](CopyPlace place) {
    Value *exists = setCopyPoint(op, place);
    Value *offset = emitIndex(tgl::elementOffset(buffer.type, read.getSubscriptExprs()));
    copyVector(op, place, buffer, offset, exists);
  });
}

void TileEmitter::copyVector(tile::CopyOp op, CopyPlace place, const Buffer &buffer, Value *offset,
                             Value *exists) {
  Values operands{sharedAddress(op.getTarget(), place), nullptr};
  if (exists) { // nothing is read of what does not exist
    offset = b.CreateSelect(exists, offset, i64(0));
    operands.push_back(b.CreateSelect(exists, i32(vectorBytes), i32(0)));
  }
  mlir::Type element = op.getTarget().getType().getElementType();
  operands[1] = b.CreateInBoundsGEP(storageType(element), buffer.pointer, offset);
  b.CreateIntrinsic(b.getVoidTy(),
                    exists ? Intrinsic::nvvm_cp_async_cg_shared_global_16_s
                           : Intrinsic::nvvm_cp_async_cg_shared_global_16,
                    operands);
}

/// A warp takes some lines at a time: each lane finds the place of one, then all copy vectors of
/// all of them.
void TileEmitter::emitLineCopies(tile::CopyOp op, tgl::ReadOp read) {
  constexpr int64_t warpThreads = 32;
  tile::SharedType type = op.getTarget().getType();
  const Buffer &buffer = buffers.find(read.getTensor())->second;
  unsigned vector = vectorBytes * 8 / type.getElementType().getIntOrFloatBitWidth();
  unsigned perLine = type.getLineLength() / vector;
  int64_t lines = type.getLines(), warps = *kernel.getThreads() / warpThreads;
  // All lines are sixteens, so that powers of two up to that divide them.
  int64_t each = std::clamp<int64_t>(bit_floor(uint64_t(lines / warps)), 1,
                                     lines % warpThreads == 0 ? warpThreads : 16);
  mlir::Block &point = op.getBody().front();
  unsigned along = type.getKMajor() ? 1 : 0;
  const Span lineSpan = spans[op.getSpans()[1 - along]], span = spans[op.getSpans()[along]];
  auto lanesValue = [&](Value *value, Value *from) {
    Value *own = b.CreateIntrinsic(Intrinsic::nvvm_shfl_sync_idx_i32, {},
                                   {i32(-1), value, from, i32(warpThreads - 1)});
    return b.CreateZExt(own, b.getInt64Ty());
  };
  Value *warp = b.CreateZExt(b.CreateUDiv(thread, i32(warpThreads)), b.getInt64Ty());
  emitLoop(
      warp, i64(lines / each), i64(warps), {},
      [&](Value *group, ArrayRef<Value *>) {
        Value *firstLine = b.CreateMul(b.CreateTrunc(group, b.getInt32Ty()), i32(each));
        Value *line = b.CreateAdd(firstLine, b.CreateURem(lane, i32(each)));
        Value *linePoint = b.CreateAdd(lineSpan.base, wide(line));
        values[point.getArgument(1 - along)] = clamp(linePoint, lineSpan);
        values[point.getArgument(along)] = span.base;
        for (mlir::Operation &before : point.without_terminator())
          if (&before != read && !failed())
            emitOp(&before);
        Value *exists = emitReadMask(*this, read);
        if (!lineSpan.isFull)
          exists = emitAnd(exists, b.CreateICmpSLT(linePoint, lineSpan.end));
        Value *offset = emitIndex(tgl::elementOffset(buffer.type, read.getSubscriptExprs()));
        if (exists)
          offset = b.CreateSelect(exists, offset, i64(-1));
        Value *low = b.CreateTrunc(offset, b.getInt32Ty()),
              *high = b.CreateTrunc(b.CreateLShr(offset, 32), b.getInt32Ty());
        for (int64_t first = 0; first < each * perLine; first += warpThreads) {
          Value *piece = b.CreateAdd(lane, i32(first));
          Value *inGroup = b.CreateUDiv(piece, i32(perLine));
          CopyPlace place{b.CreateAdd(firstLine, inGroup),
                          b.CreateMul(b.CreateURem(piece, i32(perLine)), i32(vector))};
          Value *start =
              b.CreateOr(lanesValue(low, inGroup), b.CreateShl(lanesValue(high, inGroup), 32));
          Value *isThere = exists ? b.CreateICmpSGE(start, i64(0)) : nullptr;
          if (!span.isFull)
            isThere = emitAnd(
                isThere, b.CreateICmpSLT(b.CreateAdd(span.base, wide(place.position)), span.end));
          auto copy = [&] {
            copyVector(op, place, buffer, b.CreateAdd(start, wide(place.position)), isThere);
          };
          if (first + warpThreads <= each * perLine)
            copy();
          else
            emitIf(b.CreateICmpULT(piece, i32(each * perLine)), copy);
        }
        return Values();
      },
      "lines");
}

/// Each thread takes vectors of 16 bytes, which become two. It loads several before it computes:
/// where a block is one warp, nobody else hides what they take.
void TileEmitter::emitUnpack(tile::UnpackOp op) {
  tile::SharedType from = op.getSource().getType();
  constexpr int64_t mostTogether = 8, mostTurns = 16;
  int64_t perLine = from.getLineLength() / vectorBytes, count = from.getLines() * perLine,
          threads = *kernel.getThreads();
  auto placeOf = [&](Value *number) {
    return CopyPlace{b.CreateUDiv(number, i32(perLine)),
                     b.CreateMul(b.CreateURem(number, i32(perLine)), i32(vectorBytes))};
  };
  auto *bytes = FixedVectorType::get(b.getInt8Ty(), vectorBytes);
  auto unpack = [&](Value *first, int64_t together) {
    SmallVector<std::pair<CopyPlace, Value *>> loaded;
    for (int64_t turn = 0; turn < together; ++turn) {
      CopyPlace place = placeOf(b.CreateAdd(first, i32(turn * threads)));
      Value *address = sharedAddress(op.getSource(), place);
      loaded.push_back({place, b.CreateAlignedLoad(bytes, address, Align(vectorBytes))});
    }
    for (auto [place, vector] : loaded)
      storeUnpacked(op, place, vector);
  };
  if (count % threads == 0 && count / threads <= mostTurns) {
    for (int64_t turn = 0, turns = count / threads; turn < turns; turn += mostTogether)
      unpack(b.CreateAdd(thread, i32(turn * threads)), std::min(mostTogether, turns - turn));
    return;
  }
  int64_t together = count % (mostTogether * threads) == 0 ? mostTogether : 1;
  keepNextLoopRolled = true;
  emitLoop(
      b.CreateZExt(thread, b.getInt64Ty()), i64(count), i64(threads * together), {},
      [&](Value *number, ArrayRef<Value *>) {
        unpack(b.CreateTrunc(number, b.getInt32Ty()), together);
        return Values();
      },
      "unpack");
}

/// Numbers of a vector of bytes, as the target has them.
void TileEmitter::storeUnpacked(tile::UnpackOp op, CopyPlace place, Value *vector) {
  mlir::Type element = op.getSource().getType().getElementType();
  Mma core(b, mmaType(op.getTarget().getType()));
  Value *numbers = decode(vector, element);
  if (auto integer = dyn_cast<mlir::IntegerType>(element)) {
    Type *floats = FixedVectorType::get(b.getFloatTy(), vectorBytes);
    numbers =
        integer.isUnsigned() ? b.CreateUIToFP(numbers, floats) : b.CreateSIToFP(numbers, floats);
  }
  constexpr unsigned half = vectorBytes / 2;
  for (unsigned first = 0; first < vectorBytes; first += half) {
    Value *words = PoisonValue::get(FixedVectorType::get(b.getInt16Ty(), half));
    for (unsigned n = 0; n < half; ++n)
      words =
          b.CreateInsertElement(words, core.narrow(b.CreateExtractElement(numbers, first + n)), n);
    CopyPlace at{place.line, b.CreateAdd(place.position, i32(first))};
    b.CreateAlignedStore(words, sharedAddress(op.getTarget(), at), Align(vectorBytes));
  }
}
