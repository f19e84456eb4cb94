//===- TileLoopPrecision.cpp - Split-precision f32 operands of a tile loop ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A number x is s x = h + l with two numbers of f16, where the scale s is a power of two that
// brings the largest finite one to [2^14, 2^15). Of a tensor two launches before the loop find that
// and write all h and all l, at the tensor's own offsets, so that the loop copies planes as it does
// factors of 16 bits. Of a left factor in registers each row has a scale for each tile. Both
// roundings are to nearest: the error is 2^-24 of x, or 2^-40 of the largest of a tensor where x is
// less than 2^-17 of it, and no number but 0 has planes of 0. Where sums show that this is too much
// all is computed again (TileLoopAccuracyCheck.cpp), and so where an element is infinite, whose
// products would be NaN.
//
// The workspace: a word that says so; for each tensor the largest numbers that warps found, then h,
// then l; what the code that computes all again has there.
//
//===----------------------------------------------------------------------===//
#include "strategies/tile_loop/lower/TileLoopPrecision.h"

#include "ir/tgl/TglUtils.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

TileLoopPrecision::TileLoopPrecision(TileLoopBlock &block, TileLoopAccuracyCheck &check)
    : c(block), e(block.e), b(block.b), check(check) {}

IndexExpr TileLoopPrecision::workspaceBytes() const {
  return c.split.empty() ? int64_t(0) : c.split.back().end();
}

IndexExpr TileLoopPrecision::numBlocks() const {
  return int64_t(c.split.size() * TileLoopBlock::blocksOfTensor);
}

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

/// The biased exponent (i32) of what the largest number (f32, not negative) is taken to be: its
/// scale has an inverse.
Value *TileLoopPrecision::exponentOf(Value *largest) {
  Value *exponent = b.CreateLShr(b.CreateBitCast(largest, b.getInt32Ty()), c.i32(23));
  exponent = b.CreateBinaryIntrinsic(Intrinsic::umax, exponent, c.i32(15));
  return b.CreateBinaryIntrinsic(Intrinsic::umin, exponent, c.i32(254));
}

/// 2^(14 + 127 - exponent).
Value *TileLoopPrecision::scaleFor(Value *exponent) {
  return b.CreateBitCast(b.CreateShl(b.CreateSub(c.i32(2 * 127 + 14), exponent), c.i32(23)),
                         b.getFloatTy());
}

Value *TileLoopPrecision::inverseFor(Value *exponent) {
  return b.CreateBitCast(b.CreateShl(b.CreateSub(exponent, c.i32(14)), c.i32(23)), b.getFloatTy());
}

/// The largest of neighbouring lanes.
Value *TileLoopPrecision::acrossLanes(Value *number, unsigned lanes) {
  for (unsigned distance = 1; distance < lanes; distance *= 2) {
    Value *word = b.CreateBitCast(number, b.getInt32Ty());
    Value *other = b.CreateIntrinsic(b.getInt32Ty(), Intrinsic::nvvm_shfl_sync_bfly_i32,
                                     {c.i32(-1), word, c.i32(distance), c.i32(31)});
    number = b.CreateMaxNum(number, b.CreateBitCast(other, b.getFloatTy()));
  }
  return number;
}

/// From what warps have found.
Value *TileLoopPrecision::exponentOf(const SplitTensor &split) {
  constexpr unsigned vector = 4;
  Type *type = FixedVectorType::get(b.getFloatTy(), vector);
  Value *largest = ConstantFP::get(b.getFloatTy(), 0);
  for (unsigned first = 0; first < TileLoopBlock::numLargest; first += 32 * vector) {
    Value *place =
        b.CreateAdd(b.CreateShl(c.wide(c.lane), c.i64(4)), c.i64(split.base + 4 * first));
    Value *own = b.CreateAlignedLoad(type, b.CreateInBoundsGEP(b.getInt8Ty(), c.workspace, place),
                                     Align(16));
    for (unsigned n = 0; n < vector; ++n)
      largest = b.CreateMaxNum(largest, b.CreateExtractElement(own, uint64_t(n)));
  }
  return exponentOf(acrossLanes(largest, 32));
}

void TileLoopPrecision::findScales() {
  for (const SplitTensor &one : c.split)
    inverses[one.tensor] = inverseFor(exponentOf(one));
}

/// Brings the elements of each of a thread's two rows in a tile to one size; the inverses of their
/// scales.
TileLoopBlock::Values TileLoopPrecision::splitRows(Values &values) {
  Values undone;
  for (unsigned row = 0; row < 2; ++row) {
    Value *largest = ConstantFP::get(b.getFloatTy(), 0);
    auto isOwn = [&](unsigned number) { return number / 2 % 2 == row; };
    for (auto [number, value] : enumerate(values))
      if (isOwn(number))
        largest = b.CreateMaxNum(largest, b.CreateUnaryIntrinsic(Intrinsic::fabs, value));
    largest = acrossLanes(largest, 4);
    check.flagInfinite(largest);
    Value *exponent = exponentOf(largest);
    Value *scale = scaleFor(exponent);
    for (auto [number, value] : enumerate(values))
      if (isOwn(number))
        value = b.CreateFMul(value, scale);
    undone.push_back(inverseFor(exponent));
  }
  return undone;
}

void TileLoopPrecision::undoScales(Product &product, Values &accumulators) {
  if (product.planned->terms == 1)
    return;
  auto inverseOf = [&](const TileLoopBlock::Staged &staged) {
    return inverses.lookup(tgl::ReadOp(staged.read).getTensor());
  };
  Value *column = inverseOf(product.b);
  Values factors;
  // The product of the factor and a sum that is right is finite, as of a sum of 0, unless the
  // sum's value is not.
  Constant *largest = ConstantFP::get(b.getFloatTy(), APFloat::getLargest(APFloat::IEEEsingle()));
  for (unsigned row = 0; row < 2; ++row) {
    Value *factor = b.CreateFMul(column, product.a ? inverseOf(*product.a) : product.scales[row]);
    factors.push_back(b.CreateMinNum(factor, largest));
  }
  for (auto [number, sum] : enumerate(accumulators))
    sum = b.CreateFMul(sum, factors[number / 2 % 2]);
}

//===----------------------------------------------------------------------===//
// The launches before
//===----------------------------------------------------------------------===//

/// `body` for each tensor, in the blocks that it has: the number among them (i32).
void TileLoopPrecision::forSplitTensors(
    function_ref<void(const SplitTensor &split, Value *block)> body) {
  c.thread = c.readSreg(Intrinsic::nvvm_read_ptx_sreg_tid_x, TileLoopBlock::splitPrecisionThreads);
  c.lane = b.CreateAnd(c.thread, c.i32(31));
  Value *block = c.readSreg(Intrinsic::nvvm_read_ptx_sreg_ctaid_x,
                            c.split.size() * TileLoopBlock::blocksOfTensor);
  for (auto [number, one] : enumerate(c.split)) {
    Value *isOwn =
        b.CreateICmpEQ(b.CreateUDiv(block, c.i32(TileLoopBlock::blocksOfTensor)), c.i32(number));
    e.emitIf(isOwn, [&] { body(one, b.CreateURem(block, c.i32(TileLoopBlock::blocksOfTensor))); });
  }
}

/// `body` with a thread's units, one after the other, and the number of its first element (i64).
TileLoopBlock::Values
TileLoopPrecision::forChunks(const SplitTensor &split, Value *block, ArrayRef<Value *> carried,
                             function_ref<Values(Value *, Value *, ArrayRef<Value *>)> body) {
  Value *first = c.wide(
      b.CreateAdd(b.CreateMul(block, c.i32(TileLoopBlock::splitPrecisionThreads)), c.thread));
  return e.emitLoop(
      first, c.i64(split.elements / TileLoopBlock::chunkElements),
      c.i64(TileLoopBlock::blocksOfTensor * TileLoopBlock::splitPrecisionThreads), carried,
      [&](Value *number, ArrayRef<Value *> before) {
        return body(c.chunkAt(split, number),
                    b.CreateMul(number, c.i64(TileLoopBlock::chunkElements)), before);
      },
      "unit");
}

void TileLoopPrecision::emitLargest(Value *memory) {
  forSplitTensors([&](const SplitTensor &one, Value *block) {
    if (&one == &c.split.front())
      check.clear(block, memory);
    Value *none = ConstantFP::get(b.getFloatTy(), 0);
    Value *largest =
        forChunks(one, block, {none}, [&](Value *chunk, Value *, ArrayRef<Value *> before) {
          Value *all = before[0];
          for (unsigned n = 0; n < TileLoopBlock::chunkElements; ++n) {
            Value *size =
                b.CreateUnaryIntrinsic(Intrinsic::fabs, b.CreateExtractElement(chunk, uint64_t(n)));
            Value *isFinite = b.CreateFCmpOLT(size, ConstantFP::getInfinity(b.getFloatTy()));
            all = b.CreateMaxNum(all, b.CreateSelect(isFinite, size, none));
          }
          return Values{all};
        })[0];
    largest = acrossLanes(largest, 32);
    Value *number = b.CreateAdd(b.CreateMul(block, c.i32(TileLoopBlock::warpsOfBlock)),
                                b.CreateLShr(c.thread, c.i32(5)));
    e.emitIf(b.CreateICmpEQ(c.lane, c.i32(0)), [&] {
      b.CreateStore(largest, b.CreateInBoundsGEP(b.getFloatTy(), c.bytesAt(memory, one.base),
                                                 c.wide(number)));
    });
  });
}

/// The elements' `scaled` values; not 0 where they are not.
Value *TileLoopPrecision::keepNonZero(Value *elements, Value *scaled) {
  Constant *minNormalTerm = ConstantFP::get(scaled->getType(), 0x1p-24),
           *zero = Constant::getNullValue(scaled->getType());
  Value *isSmall = b.CreateFCmpOLT(b.CreateUnaryIntrinsic(Intrinsic::fabs, scaled), minNormalTerm);
  Value *isLost = b.CreateAnd(isSmall, b.CreateFCmpONE(elements, zero));
  return b.CreateSelect(
      isLost, b.CreateBinaryIntrinsic(Intrinsic::copysign, minNormalTerm, elements), scaled);
}

void TileLoopPrecision::emitSplitPrecision(Value *memory) {
  c.workspace = memory;
  forSplitTensors([&](const SplitTensor &one, Value *block) {
    Value *scale = scaleFor(exponentOf(one));
    Type *halves = FixedVectorType::get(b.getHalfTy(), TileLoopBlock::chunkElements);
    forChunks(one, block, {}, [&](Value *chunk, Value *element, ArrayRef<Value *>) {
      Value *rest = keepNonZero(
          chunk, b.CreateFMul(chunk, b.CreateVectorSplat(TileLoopBlock::chunkElements, scale)));
      check.flagElements(one, element, rest, scale);
      for (unsigned term = 0; term < 2; ++term) {
        Value *own = b.CreateFPTrunc(rest, halves);
        b.CreateAlignedStore(
            own, b.CreateInBoundsGEP(b.getHalfTy(), c.bytesAt(memory, one.termAt(term)), element),
            Align(16));
        rest = b.CreateFSub(rest, b.CreateFPExt(own, chunk->getType()));
      }
      return Values();
    });
  });
}
