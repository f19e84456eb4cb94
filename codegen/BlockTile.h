//===- BlockTile.h - Where a block's tile of a statement lies -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What all device code for a tile of a statement starts from, whether it makes sums (DeviceContraction.h) or uses them
// (TileRest.h): which thread runs it, which rows and columns of the statement the tile has, where its sums lie.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_BLOCKTILE_H
#define TEGULA_CODEGEN_BLOCKTILE_H

#include "codegen/Emitter.h"
#include "codegen/Fragments.h"
#include "codegen/TileProduct.h"
#include "passes/TileMemory.h"

namespace tegula {

/// The tile that the code being emitted is for. Who emits code for another tile, or for threads that count otherwise,
/// changes it; what it refers to belongs to others.
class BlockTile {
  using Value = llvm::Value;

public:
  BlockTile(Emitter &emitter, const ContractionPlan &plan, const TensorTile &tile, const TileMemory &memory);
  BlockTile(const BlockTile &) = delete;

  Emitter &e;
  llvm::IRBuilder<> &b;
  const ContractionPlan &plan;
  const TensorTile &tile;
  const TileMemory &memory;
  const tgl::AxesOp axes; ///< of the statement

  Value *thread = nullptr, *lane = nullptr, *block = nullptr; ///< i32
  TilePlace corner = {nullptr, nullptr};                      ///< of the warp
  TileGroup rows, columns;
  unsigned restRows; ///< for which the block does the rest of the statement

  /// Sets all of these but the first row and column, which depend on the tile.
  void begin();
  /// The block does the rest for `numRows` of the tile's rows, from `first` (i64) on; their sums stay where they are.
  void takeRows(unsigned numRows, Value *first);
  /// The same, and has sums of these rows alone, and nothing else in shared memory.
  void takePart(unsigned numRows, Value *first);

  //===--- Numbers of rows and columns, and of points of sums: the last axis is fastest ---===//

  /// Of axes with at most so many points they are divided in 32 bits; with the lines of a tile beyond the last.
  static constexpr int64_t mostNumbers = (int64_t(1) << 31) - 1;
  /// Whether there are known to be few enough, or the host finds out.
  bool hasShortNumbers(tgl::AxesOp op, llvm::ArrayRef<unsigned> group) const;
  IndexExpr pointsOnHost(tgl::AxesOp op, llvm::ArrayRef<unsigned> group) const;
  Value *pointsOf(tgl::AxesOp op, llvm::ArrayRef<unsigned> group) const;
  /// Sets axes to their `number`-th point (i64).
  void setNumber(tgl::AxesOp op, llvm::ArrayRef<unsigned> group, bool collapses, Value *number) const;

  /// The last axes of columns have so many points each, of which those beyond the axis' own are padding.
  void countColumns(llvm::ArrayRef<int64_t> extents) { countedExtents.assign(extents.begin(), extents.end()); }
  llvm::ArrayRef<int64_t> countedColumns() const { return countedExtents; }
  bool isPadded() const { return !countedExtents.empty(); }
  /// How many points of the axis columns are counted by, where that is not how many it has; else 0.
  int64_t countedExtent(tgl::AxesOp op, unsigned axis) const;
  /// Whether column `number` (i64) is one of the statement's; null: yes.
  Value *countedColumnExists(Value *number) const;

  //===--- Sums in shared memory ---===//

  llvm::Type *sumType() const { return plan.element.isF32() ? b.getFloatTy() : static_cast<llvm::Type *>(b.getInt32Ty()); }
  Value *sharedAt(Value *bytes) const;
  /// Where a product's begin, in bytes.
  unsigned sumsBase(unsigned product) const;
  /// The element of [row][column] of those from `base` on.
  Value *sumPlace(Value *row, Value *column, unsigned base) const;
  /// Columns of a warpgroup whose sums have a place at a time.
  unsigned placedColumns() const { return groupColumns(tile) * memory.sumsColumns() / tile.columns; }
  /// The column of the warpgroup's first placed sum.
  Value *placedCorner() const;

  //===--- The optimiser and the machine ---===//

  Value *special(llvm::Intrinsic::ID id) const;
  /// The i32, of which the optimiser knows nothing, where it is computed.
  Value *opaque(Value *word) const;
  /// The thread. What is computed from this number stays in the loop: the places of many elements would take the registers
  /// that sums need.
  Value *opaqueThread() const;

private:
  Value *i32(int64_t value) const { return b.getInt32(value); }
  Value *i64(int64_t value) const { return b.getInt64(value); }
  Value *extentOf(tgl::AxesOp op, unsigned axis) const;

  llvm::GlobalVariable *shared = nullptr;
  bool isPart = false;
  Value *firstSumRow = nullptr; ///< i32: of the rows taken, among those that have sums; null: 0
  llvm::SmallVector<int64_t> countedExtents;
};

} // namespace tegula

#endif // TEGULA_CODEGEN_BLOCKTILE_H
