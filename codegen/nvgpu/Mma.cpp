//===- Mma.cpp - Warp-level matrix products (mma.sync) --------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/nvgpu/Mma.h"
#include "codegen/llvm/PtxVersion.h"

#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// The swizzle: the number that the offsets of a line's chunks are XORed with. Eight lines of
/// 16-byte chunks, or four lines of 32 bytes, are loaded at a time; swizzled, they lie in all 32
/// banks.
Value *Mma::exchange(const MmaSharedLayout &tile, Value *line) {
  unsigned chunks = std::min(tile.pitch() / 16, 8u);
  bool byWords = !tile.kMajor && tile.elementBytes == 4;
  unsigned numbers = byWords ? std::max(chunks / 2, 1u) : chunks;
  return b.CreateShl(b.CreateAnd(line, i32(numbers - 1)), i32(byWords ? 5 : 4));
}

Value *Mma::offset(const MmaSharedLayout &tile, Value *line, Value *position) {
  Value *within = b.CreateXor(b.CreateMul(position, i32(tile.elementBytes)), exchange(tile, line));
  return b.CreateAdd(b.CreateMul(line, i32(tile.pitch())), within);
}

std::array<Value *, 4> Mma::loadBlock(const MmaSharedLayout &tile, Value *base, Value *lane,
                                      Value *first, unsigned block, Value *step) {
  Type *byte = b.getInt8Ty();
  Value *low = b.CreateAnd(lane, i32(7)), *middle = b.CreateAnd(b.CreateLShr(lane, i32(3)), i32(1)),
        *high = b.CreateLShr(lane, i32(4));
  auto matrices = [&](Intrinsic::ID id, Value *address) {
    Value *all = b.CreateIntrinsic(id, {address->getType()}, {address});
    std::array<Value *, 4> words;
    for (unsigned n = 0; n < 4; ++n)
      words[n] = b.CreateExtractValue(all, n);
    return words;
  };
  // Lanes 8n to 8n + 7 give the lines of matrix n: n % 2 counts rows, n / 2 words, in eights and
  // fours.
  if (tile.kMajor) {
    Value *line = b.CreateAdd(first, b.CreateAdd(low, b.CreateShl(middle, i32(3))));
    Value *position = b.CreateAdd(b.CreateMul(high, i32(16 / tile.elementBytes)),
                                  b.CreateMul(step, i32(stepWords * 4 / tile.elementBytes)));
    Value *address = b.CreateInBoundsGEP(byte, base, offset(tile, line, position));
    return matrices(Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16,
                    b.CreateInBoundsGEP(byte, address, i32(16 * block * tile.pitch())));
  }
  Value *row = b.CreateAdd(first, i32(16 * block));
  // Lines are points of the sum: their number in the step stays in front, whole steps are
  // constants.
  Value *stepBytes = b.CreateMul(step, i32(stepWords * (4 / tile.elementBytes) * tile.pitch()));
  auto at = [&](Value *line, Value *position) {
    Value *address = b.CreateInBoundsGEP(byte, base, offset(tile, line, position));
    return b.CreateInBoundsGEP(byte, address, stepBytes);
  };
  if (tile.elementBytes == 2) {
    Value *line = b.CreateAdd(low, b.CreateShl(high, i32(3)));
    Value *position = b.CreateAdd(row, b.CreateShl(middle, i32(3)));
    return matrices(Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16, at(line, position));
  }
  // There is no transposing load of 32-bit elements.
  Value *group = b.CreateLShr(lane, i32(2)), *word = b.CreateAnd(lane, i32(3));
  std::array<Value *, 4> words;
  for (unsigned n = 0; n < 4; ++n) {
    Value *position = b.CreateAdd(row, b.CreateAdd(group, i32(8 * (n % 2))));
    Value *address = at(word, position);
    address = b.CreateInBoundsGEP(byte, address, i32(n / 2 * 4 * tile.pitch()));
    words[n] = b.CreateAlignedLoad(b.getInt32Ty(), address, Align(4));
  }
  return words;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

StringRef tegula::nameOfByte(const ContractionOperand &operand) {
  mlir::Type element = tgl::ReadOp(operand.read).getTensorType().getElementType();
  if (isa<mlir::Float8E4M3FNType>(element))
    return "e4m3";
  if (isa<mlir::Float8E5M2Type>(element))
    return "e5m2";
  return element.isUnsignedInteger() ? "u8" : "s8";
}

std::array<Value *, 4> Mma::call(Intrinsic::ID id, ArrayRef<Value *> operands) {
  Value *all = b.CreateIntrinsic(id, {}, operands);
  std::array<Value *, 4> result;
  for (unsigned n = 0; n < 4; ++n)
    result[n] = b.CreateExtractValue(all, n);
  return result;
}

std::array<Value *, 4> Mma::multiplyBytes(ArrayRef<Value *> a, ArrayRef<Value *> columns,
                                          const std::array<Value *, 4> &accumulators,
                                          const ProductOperands &formats) {
  using Ids = Intrinsic::ID[2][2];
  static constexpr Ids integers = {
      {Intrinsic::nvvm_mma_m16n8k32_row_col_s8, Intrinsic::nvvm_mma_m16n8k32_row_col_s8_u8},
      {Intrinsic::nvvm_mma_m16n8k32_row_col_u8_s8, Intrinsic::nvvm_mma_m16n8k32_row_col_u8}};
  static constexpr Ids floats = {{Intrinsic::nvvm_mma_m16n8k32_row_col_f32_e4m3_e4m3_f32,
                                  Intrinsic::nvvm_mma_m16n8k32_row_col_f32_e4m3_e5m2_f32},
                                 {Intrinsic::nvvm_mma_m16n8k32_row_col_f32_e5m2_e4m3_f32,
                                  Intrinsic::nvvm_mma_m16n8k32_row_col_f32_e5m2_e5m2_f32}};
  bool areIntegers = type == MmaType::I8;
  if (!areIntegers)
    needPtx(*b.GetInsertBlock()->getModule(), 84);
  auto isSecond = [](const ContractionOperand &operand) {
    StringRef name = nameOfByte(operand);
    return name == "u8" || name == "e5m2";
  };
  SmallVector<Value *> operands(a);
  operands.append(columns.begin(), columns.end());
  operands.append(accumulators.begin(), accumulators.end());
  return call((areIntegers ? integers : floats)[isSecond(formats.a)][isSecond(formats.b)],
              operands);
}

std::array<Value *, 4> Mma::multiply(ArrayRef<Value *> a, ArrayRef<Value *> columns,
                                     const std::array<Value *, 4> &accumulators) {
  SmallVector<Value *> operands;
  auto *pair = FixedVectorType::get(b.getHalfTy(), 2);
  for (Value *word : llvm::concat<Value *const>(a, columns))
    operands.push_back(type == MmaType::F16 ? b.CreateBitCast(word, pair) : word);
  operands.append(accumulators.begin(), accumulators.end());
  Intrinsic::ID id = type == MmaType::F16    ? Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32
                     : type == MmaType::BF16 ? Intrinsic::nvvm_mma_m16n8k16_row_col_bf16
                                             : Intrinsic::nvvm_mma_m16n8k8_row_col_tf32;
  return call(id, operands);
}

Value *Mma::narrow(Value *value) {
  if (type == MmaType::F16)
    return b.CreateBitCast(b.CreateFPTrunc(value, b.getHalfTy()), b.getInt16Ty());
  return b.CreateTrunc(b.CreateLShr(asWord(value), 16), b.getInt16Ty());
}

Value *Mma::round(Value *word) {
  return b.CreateIntrinsic(b.getInt32Ty(), Intrinsic::nvvm_f2tf32_rna, {asFloat(word)});
}

/// The bits of an f32 that TF32 keeps.
static constexpr uint32_t underflowBits = 0xffffe000;

Mma::Terms Mma::split(Value *word) {
  // Two instructions; cvt.rna, which asks for infinities and NaN, is four.
  constexpr uint32_t halfChunk = 0x1000;
  Value *large = b.CreateAnd(b.CreateAdd(word, i32(halfChunk)), i32(underflowBits));
  return {large, asWord(b.CreateFSub(asFloat(word), asFloat(large)))};
}

Value *Mma::isFinite(Value *word) {
  Value *size = b.CreateUnaryIntrinsic(Intrinsic::fabs, asFloat(word));
  return b.CreateFCmpOLT(size, ConstantFP::getInfinity(b.getFloatTy()));
}

Value *Mma::finiteOrZero(Value *word) { return b.CreateSelect(isFinite(word), word, i32(0)); }

Mma::AnyTerms Mma::splitAny(Value *word) {
  Value *large = split(word).large;
  large = b.CreateSelect(isFinite(large), large, b.CreateAnd(word, i32(underflowBits)));
  Value *small = asWord(b.CreateFSub(asFloat(word), asFloat(large)));
  Value *size = b.CreateUnaryIntrinsic(Intrinsic::fabs, asFloat(word));
  Value *isInfinite = b.CreateFCmpOEQ(size, ConstantFP::getInfinity(b.getFloatTy()));
  return {large, b.CreateSelect(isInfinite, i32(0), small),
          b.CreateSelect(isInfinite, i32(0), large)};
}
