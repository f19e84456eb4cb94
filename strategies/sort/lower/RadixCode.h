//===- RadixCode.h - Keys, digits and ranks of a sort -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elements keep their bits while they are sorted: a key is made of them where a digit is needed, so
// that zeros of both signs stay what they are. With an element goes its number in the row.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_SORT_LOWER_RADIXCODE_H
#define TEGULA_STRATEGIES_SORT_LOWER_RADIXCODE_H

#include "codegen/simt/DeviceEmitter.h"
#include "strategies/sort/plan/SortShape.h"

namespace tegula {

/// Some bits of a key.
struct Digit {
  unsigned shift, bits;
};
/// From the lowest on, an even number of them: elements end where they were read.
llvm::SmallVector<Digit> sortDigits(unsigned keyBits);
/// From the highest on, wider: fewer launches.
llvm::SmallVector<Digit> selectDigits(unsigned keyBits);

/// Where the launches of a sort keep what they tell each other, by bytes from the workspace's
/// start.
struct SortWorkspace {
  int64_t bytes = 0;
  int64_t elements = 0, numbers = 0; ///< of all rows, or those of each row that are selected
  int64_t counts = 0, totals = 0;    ///< i32: by digit and tile; by digit
  int64_t add(int64_t size);
};

/// The code of one function.
class RadixCode {
public:
  using Values = llvm::SmallVector<llvm::Value *>;
  static constexpr unsigned warp = DeviceEmitter::warp;
  static constexpr unsigned digitValues = 256; ///< that shared tables have room for

  RadixCode(DeviceEmitter &e, const SortPlan &plan, unsigned threads, llvm::Value *workspace);

  /// Something that is sorted: its bits, and its number in the row (i32; null: nobody asks).
  struct Element {
    llvm::Value *raw, *number;
  };

  DeviceEmitter &e;
  llvm::IRBuilder<> &b;
  const SortPlan &plan;
  const unsigned threads;
  llvm::Value *workspace;
  llvm::Value *thread, *lane, *warpNumber; ///< i32
  llvm::IntegerType *rawType;

  llvm::Value *i32(uint32_t value) { return b.getInt32(value); }
  llvm::Value *wide(llvm::Value *value) {
    return b.CreateZExt(value, b.getInt64Ty(), "", /*IsNonNeg=*/true);
  }
  llvm::Value *blockNumber(); ///< i64
  void barrier();
  void warpBarrier();
  llvm::Value *ballot(llvm::Value *condition);
  llvm::Value *lanesBelow();
  llvm::Value *addWarp(llvm::Value *value); ///< all lanes get the sum

  /// `body` where the statement's axes are those of the row (i64).
  void atRow(llvm::Value *row, llvm::function_ref<void()> body);
  /// Of the current row: evaluates what the sort is of.
  Element evaluate(llvm::Value *number);
  /// Puts an element to its place (i64) of the current row, as readers find it.
  void leave(llvm::Value *place, Element element);
  /// The current row in the sorted tensors as memory for elements.
  struct Memory {
    llvm::Value *raws, *numbers;
  };
  Memory tensorRow();
  Memory workspaceRow(const SortWorkspace &space, llvm::Value *row, int64_t length);
  Element load(const Memory &memory, llvm::Value *number);
  void store(const Memory &memory, llvm::Value *number, Element element);

  /// The unsigned number whose order is that of the language: nan is the largest, -0 is 0.
  llvm::Value *keyOf(llvm::Value *raw);
  llvm::Value *digitOf(llvm::Value *key, Digit digit) {
    return digitOf(key, llvm::ConstantInt::get(rawType, digit.shift), digit.bits);
  }
  llvm::Value *digitOf(llvm::Value *key, llvm::Value *shift, unsigned bits); ///< i32

  llvm::Value *slot(llvm::Value *array, llvm::Value *index, llvm::Type *type = nullptr);
  llvm::GlobalVariable *sharedCounts(unsigned count, const llvm::Twine &name);
  llvm::GlobalVariable *sharedElements(unsigned count) {
    return e.shared(llvm::ArrayType::get(rawType, count), "elements");
  }
  llvm::Value *dynamicShared() { return e.dynamicShared(); }
  void clear(llvm::Value *counts, unsigned count);

  /// The lanes with the same digit as this one (i32).
  llvm::Value *peersOf(llvm::Value *digit, unsigned bits);
  /// Of the values of all threads, the sum before this one; all may read `sums` afterwards.
  struct Scanned {
    llvm::Value *before, *all;
  };
  Scanned scanBlock(llvm::Value *own);
  /// The ranks of a block's elements, of which a warp has `digits.size()` runs of 32 one after the
  /// other; before[d] (shared) becomes how many have a digit below d. `counts` (shared): a table
  /// for each warp.
  Values rank(llvm::ArrayRef<llvm::Value *> digits, unsigned bits, llvm::Value *counts,
              llvm::Value *before);
  /// Of the i-th element that this thread ranks, its number in the block's part (i32).
  llvm::Value *rankedPlace(unsigned index, unsigned each);
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_SORT_LOWER_RADIXCODE_H
