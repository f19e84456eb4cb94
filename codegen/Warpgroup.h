//===- Warpgroup.h - Matrix products of four warps ----------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// wgmma (sm_90a) multiplies 64 rows by 8 to 256 columns over 32 bytes of the sum: 16 points, or 32 of bytes. Both
// operands are read from shared memory, the four warps' sums lie in registers, and the product runs while the warps go on
// (PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions"). Thread t of the 128
// holds of its sums, with n = 0, 1, ...
//
//   row 16 (t / 32) + t % 32 / 4 + 8 (n / 2 % 2)    column 8 (n / 4) + 2 (t % 4) + n % 2
//
// Operands lie in shared memory as the swizzle of 128 bytes wants it: lines of 128 bytes whose chunks of 16
// are exchanged by the line's number in its eight (XOR). A line is either a row with its neighbours along
// the sum, or a point of the sum with 64 neighbours along rows; then tiles of more rows are panels of 64,
// one after the other. Lines of bytes are rows: there is no transposing of them.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_WARPGROUP_H
#define TEGULA_CODEGEN_WARPGROUP_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"

namespace tegula {

/// An operand's tile in shared memory.
struct PlaneTile {
  bool alongSum;   ///< a line is a row (or column); else it is a point of the sum
  unsigned planes; ///< 16-bit numbers whose sum is a value, beside each other in a line: 1, or 2 along the sum
  unsigned extent; ///< rows (or columns), a multiple of 64
  unsigned elementBytes = 2; ///< or 1, along the sum
  /// Elements of a line and of a unit are those of 16 bits.
  static constexpr unsigned lineBytes = 128, lineElements = 64, unitBytes = 16, unit = 8, alignment = 1024;

  unsigned depth() const { return lineBytes / elementBytes / planes; } ///< points of the sum
  unsigned bytes() const { return extent * lineBytes; }
  unsigned unitElements() const { return unitBytes / elementBytes; }
  /// Units of 16 bytes of neighbours, in a line and in the tile.
  unsigned unitsInLine() const { return (alongSum ? depth() : extent) / unitElements(); }
  unsigned units() const { return extent * depth() / unitElements(); }
};

class Warpgroup {
public:
  using Value = llvm::Value;
  using Sums = llvm::SmallVector<Value *>;
  static constexpr unsigned threads = 128, rows = 64, stepDepth = 16, stepBytes = 32;

  /// bf16, else f16.
  Warpgroup(llvm::IRBuilder<> &builder, bool isBrain)
      : b(builder), rowType(isBrain ? "bf16" : "f16"), columnType(rowType) {}
  /// Bytes: e4m3 and e5m2, or s8 and u8, of which sums are i32.
  Warpgroup(llvm::IRBuilder<> &builder, llvm::StringRef rowType, llvm::StringRef columnType)
      : b(builder), rowType(rowType), columnType(columnType), areBytes(true) {}

  /// Starts the copy of a unit to shared memory; of zeros where it does not exist (an i1; null: it does).
  void copyUnit(Value *to, Value *from, Value *exists = nullptr);
  /// Byte in the tile of a unit of a line; both numbers i32.
  Value *place(const PlaneTile &tile, Value *line, Value *unit, unsigned plane);
  /// What tells wgmma where an operand lies: rows from `first` (i32, a multiple of 64, or of 8 along the sum)
  /// of the tile at `address` (i32, in shared memory), the plane's points of the sum 16 * `step` and on.
  /// `bytes`: what is known of the distance from `address` to the tile.
  Value *descriptor(const PlaneTile &tile, Value *address, Value *first, unsigned plane, unsigned step,
                    unsigned bytes = 0);

  /// The same of an operand that lies without a swizzle: from `address` (i32) on, and what `offsets` (i32) says and
  /// `bytes` further, eight points of the sum of each row (column), one after the other, 16 bytes each.
  Value *coreDescriptor(Value *address, Value *offsets, unsigned bytes);
  /// For the above: `bytes` further; the next eight points are `apart` bytes from the first.
  static uint32_t coreOffsets(unsigned bytes, unsigned apart) { return apart / 16 << 16 | bytes / 16; }

  /// sums + rows * columns, for 2 * sums columns; no sums: 0. What comes back is under way (async/Async.h).
  Sums multiply(llvm::ArrayRef<Value *> sums, unsigned columns, Value *rowOperand, bool rowsAlongSum,
                Value *columnOperand, bool columnsAlongSum);
  /// The same with rows in registers: four words of this thread, two neighbours along the sum each, of rows r and
  /// r + 8, then the same eight points further (r: the first sum's row; points from 2 (t % 4) on).
  Sums multiplyWords(llvm::ArrayRef<Value *> sums, unsigned columns, llvm::ArrayRef<Value *> rowWords,
                     Value *columnOperand, bool columnsAlongSum);

private:
  llvm::IRBuilder<> &b;
  std::string rowType, columnType; ///< as PTX has them
  bool areBytes = false;

  bool areIntegers() const { return areBytes && rowType.back() == '8'; }
  llvm::Type *sumType() { return areIntegers() ? b.getInt32Ty() : b.getFloatTy(); }
  std::string nameOf(unsigned columns) const;
  Value *i32(int64_t value) { return b.getInt32(value); }
  Sums product(const std::string &text, const std::string &inputs, llvm::ArrayRef<Value *> operands,
               llvm::ArrayRef<Value *> sums, unsigned count);
};

/// The instruction that waits until at most `groups` committed groups of products are under way, and to which the values
/// are tied: what uses its results comes after it.
llvm::CallInst *waitWithSums(llvm::IRBuilder<> &builder, llvm::ArrayRef<llvm::Value *> sums, unsigned groups);

} // namespace tegula

#endif // TEGULA_CODEGEN_WARPGROUP_H
