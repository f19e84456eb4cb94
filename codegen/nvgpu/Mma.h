//===- Mma.h - Warp-level matrix products (mma.sync) ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mma.sync multiplies 16 rows by 8 columns over 8 words of the sum; a word is one number of TF32,
// two neighbours of 16 bits or four bytes (PTX ISA, "Matrix Fragments for mma.m16n8k8", "m16n8k16"
// and "m16n8k32"). With g = lane / 4 and t = lane % 4 a lane holds
//
//   rows     a0 (g, t)  a1 (g + 8, t)  a2 (g, t + 4)  a3 (g + 8, t + 4)     (row, word)
//   columns  b0 (g, t)  b1 (g, t + 4)                                      (column, word)
//   sums     c0 (g, 2t)  c1 (g, 2t + 1)  c2 (g + 8, 2t)  c3 (g + 8, 2t + 1)
//
// Rows and columns are therefore loaded alike, as blocks of 16 x 8 words: a block of columns is two
// b's.
//
// An operand's tile in shared memory is a matrix of lines: [row][k] where neighbours are neighbours
// along the sum, else [k][row]. Chunks of 16 bytes within a line are exchanged (XOR with some of
// the line's number), so that a block is loaded without two lanes in the same bank.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_NVGPU_MMA_H
#define TEGULA_CODEGEN_NVGPU_MMA_H

#include "codegen/nvgpu/SharedLayout.h"
#include "strategies/contraction/plan/TensorTile.h"
#include "llvm/IR/IRBuilder.h"

namespace tegula {

/// The PTX name of the operand's 8-bit format.
llvm::StringRef nameOfByte(const ContractionOperand &operand);

class Mma {
public:
  using Value = llvm::Value;
  static constexpr unsigned stepWords = 8, steps = MmaSharedLayout::depthBytes / 4 / stepWords;

  Mma(llvm::IRBuilder<> &builder, MmaType type) : b(builder), type(type) {}

  /// Byte of an element of the tile; both numbers i32.
  Value *offset(const MmaSharedLayout &tile, Value *line, Value *position);
  /// The 16 x 8 words at rows `first` (i32, a multiple of 16) + `block` * 16 and the words of
  /// `step` (i32): a0 to a3.
  std::array<Value *, 4> loadBlock(const MmaSharedLayout &tile, Value *base, Value *lane,
                                   Value *first, unsigned block, Value *step);
  /// accumulators + a b, for one fragment of 16 x 8.
  std::array<Value *, 4> multiply(llvm::ArrayRef<Value *> a, llvm::ArrayRef<Value *> columns,
                                  const std::array<Value *, 4> &accumulators);
  /// accumulators + a b for 8-bit operands; A and B may differ in format.
  std::array<Value *, 4> multiplyBytes(llvm::ArrayRef<Value *> a, llvm::ArrayRef<Value *> columns,
                                       const std::array<Value *, 4> &accumulators,
                                       const ProductOperands &formats);

  /// The 16 bits of a value that came from such an element.
  Value *narrow(Value *value);
  /// The number of TF32 that is nearest to an f32, halves away from zero; words are i32.
  Value *round(Value *word);
  struct Terms {
    Value *large, *small;
  };
  /// word = large + small. The first is a number of TF32; of the second, of 12 bits, tensor cores
  /// leave out the last at most, which rounding to 11 would change by as much. Where either is not
  /// finite, sums of products with both are not.
  Terms split(Value *word);
  /// Splits any number: of one that rounding would make infinite `large` is truncated, and of an
  /// infinity `small` is 0, of NaN NaN. As other numbers' small parts may be 0, an infinity is not
  /// to be multiplied with them: they are multiplied with `largeForSmall`, which is 0 then.
  struct AnyTerms {
    Value *large, *small, *largeForSmall;
  };
  AnyTerms splitAny(Value *word);
  /// 0 where the number of TF32 is not finite.
  Value *finiteOrZero(Value *word);

private:
  llvm::IRBuilder<> &b;
  MmaType type;

  Value *i32(int64_t value) { return b.getInt32(value); }
  Value *asFloat(Value *word) { return b.CreateBitCast(word, b.getFloatTy()); }
  Value *asWord(Value *value) { return b.CreateBitCast(value, b.getInt32Ty()); }
  Value *isFinite(Value *word);
  Value *exchange(const MmaSharedLayout &tile, Value *line);
  std::array<Value *, 4> call(llvm::Intrinsic::ID id, llvm::ArrayRef<Value *> operands);
};

} // namespace tegula

#endif // TEGULA_CODEGEN_NVGPU_MMA_H
