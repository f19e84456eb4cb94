//===- Wgmma.h - Warpgroup-level matrix products (wgmma) --------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// wgmma (sm_90a) multiplies 64 rows by 8 to 256 columns over 32 bytes of the sum: 16 points, or 32
// of bytes. Both operands are read from shared memory, the four warps' sums lie in registers, and
// the product runs while the warps go on (PTX ISA, "Asynchronous Warpgroup Level Matrix
// Multiply-Accumulate Instructions"). Thread t of the 128 holds of its sums, with n = 0, 1, ...
//
//   row 16 (t / 32) + t % 32 / 4 + 8 (n / 2 % 2)    column 8 (n / 4) + 2 (t % 4) + n % 2
//
// Operands lie in shared memory as the swizzle of 128 bytes wants it: lines of 128 bytes whose
// chunks of 16 are exchanged by the line's number in its eight (XOR). A line is either a row with
// its neighbours along the sum, or a point of the sum with 64 neighbours along rows; then tiles of
// more rows are panels of 64, one after the other. Lines of bytes are rows: there is no transposing
// of them.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_NVGPU_WGMMA_H
#define TEGULA_CODEGEN_NVGPU_WGMMA_H

#include "codegen/nvgpu/SharedLayout.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"

namespace tegula {

class Wgmma {
public:
  using Value = llvm::Value;
  using Accumulators = llvm::SmallVector<Value *>;
  static constexpr unsigned threads = 128, rows = 64, stepDepth = 16, stepBytes = 32;

  /// bf16, else f16.
  Wgmma(llvm::IRBuilder<> &builder, bool isBF16)
      : b(builder), aType(isBF16 ? "bf16" : "f16"), bType(aType) {}
  /// Bytes: e4m3 and e5m2, or s8 and u8, of which sums are i32.
  Wgmma(llvm::IRBuilder<> &builder, llvm::StringRef aType, llvm::StringRef bType)
      : b(builder), aType(aType), bType(bType), areBytes(true) {}

  /// Starts a cp.async of a chunk to shared memory; it writes zeros where `exists` (i1; null: true)
  /// is false.
  void copyChunk(Value *to, Value *from, Value *exists = nullptr);
  /// Byte offset in the tile of a chunk of a line; both indices are i32.
  Value *swizzledOffset(const WgmmaSharedLayout &tile, Value *line, Value *chunk, unsigned term);
  /// The matrix descriptor of an operand: rows from `first` (i32, a multiple of 64, or of 8 along
  /// the sum) of the tile at `address` (i32, in shared memory), the plane's points of the sum 16 *
  /// `step` and on. `bytes`: what is known of the distance from `address` to the tile.
  Value *descriptor(const WgmmaSharedLayout &tile, Value *address, Value *first, unsigned term,
                    unsigned step, unsigned bytes = 0);

  /// The matrix descriptor of an operand without swizzle: from `address` (i32) on, and what
  /// `offsets` (i32) says and `bytes` further, eight points of the sum of each row (column), one
  /// after the other, 16 bytes each.
  Value *coreDescriptor(Value *address, Value *offsets, unsigned bytes);
  /// For the above: `bytes` further; the next eight points are `apart` bytes from the first.
  static uint32_t coreOffsets(unsigned bytes, unsigned apart) {
    return apart / 16 << 16 | bytes / 16;
  }

  /// accumulators + A B, for twice as many columns as accumulators; no accumulators: they begin
  /// with 0. The result is in flight (async/Async.h).
  Accumulators multiply(llvm::ArrayRef<Value *> accumulators, unsigned columns, Value *aDescriptor,
                        bool aKMajor, Value *bDescriptor, bool bKMajor);
  /// accumulators + A B with A in registers: four words of this thread, two neighbours along the
  /// sum each, of rows r and r + 8, then the same eight points further (r: the first sum's row;
  /// points from 2 (t % 4) on).
  Accumulators multiplyWords(llvm::ArrayRef<Value *> accumulators, unsigned columns,
                             llvm::ArrayRef<Value *> aWords, Value *bDescriptor, bool bKMajor);

private:
  llvm::IRBuilder<> &b;
  std::string aType, bType; ///< as PTX has them
  bool areBytes = false;

  bool areIntegers() const { return areBytes && aType.back() == '8'; }
  llvm::Type *accumulatorType() { return areIntegers() ? b.getInt32Ty() : b.getFloatTy(); }
  std::string nameOf(unsigned columns) const;
  Value *i32(int64_t value) { return b.getInt32(value); }
  Accumulators product(const std::string &text, const std::string &inputs,
                       llvm::ArrayRef<Value *> operands, llvm::ArrayRef<Value *> accumulators,
                       unsigned count);
};

/// The instruction that waits until at most `groups` committed groups of products are under way,
/// and to which the values are tied: what uses its results comes after it.
llvm::CallInst *waitTyingAccumulators(llvm::IRBuilder<> &builder,
                                      llvm::ArrayRef<llvm::Value *> accumulators, unsigned groups);

} // namespace tegula

#endif // TEGULA_CODEGEN_NVGPU_WGMMA_H
