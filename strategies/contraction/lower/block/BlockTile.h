//===- BlockTile.h - The tile that a block computes -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Describes the tile of a block for the mainloop (DeviceContraction.h) and the epilogue
// (Epilogue.h): the thread and lane, the rows and columns of the statement, and where accumulators
// are in shared memory.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_BLOCKTILE_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_BLOCKTILE_H

#include "codegen/common/Emitter.h"
#include "codegen/nvgpu/Fragments.h"
#include "codegen/nvgpu/MmaProduct.h"
#include "strategies/contraction/lower/block/ContractionNumbers.h"

namespace tegula {

/// The tile and threads that the current code is for. Code for another tile or other threads
/// changes the members and restores them. It owns nothing that it refers to.
class BlockTile {
  using Value = llvm::Value;

public:
  BlockTile(Emitter &emitter, const ContractionNumbers &numbers);
  BlockTile(const BlockTile &) = delete;

  const ContractionNumbers &numbers;
  Emitter &e;
  llvm::IRBuilder<> &b;
  const ContractionPlan &plan;
  const TensorTile &tile;
  const TileMemory &memory;
  const tgl::AxesOp axes; ///< the statement's

  Value *thread = nullptr, *lane = nullptr, *block = nullptr; ///< i32
  TileCoord corner = {nullptr, nullptr};                      ///< first element of the warp's tile
  TileDim rows, columns;
  unsigned epilogueRows; ///< rows for which the block runs the epilogue

  /// Sets the members above, except for the first row and column, which depend on the tile.
  void begin();
  /// Restricts the epilogue to `numRows` rows from row `first` (i64) of the tile; accumulators stay
  /// where they are.
  void selectRows(unsigned numRows, Value *first);
  /// Restricts the epilogue in the same way for a block whose shared memory holds the accumulators
  /// of these rows only.
  void selectSlice(unsigned numRows, Value *first);

  //===--- Linear indices over groups of axes: the last axis is fastest ---===//

  Value *pointsOf(tgl::AxesOp op, llvm::ArrayRef<unsigned> group) const;
  /// Sets the axes of `group` to point `number` (i64).
  void setNumber(tgl::AxesOp op, llvm::ArrayRef<unsigned> group, bool collapses,
                 Value *number) const;

  bool isPadded() const { return numbers.isPadded(); }
  /// Whether column `number` (i64) is no padding (i1); null: true.
  Value *paddedColumnExists(Value *number) const;

  //===--- Accumulators in shared memory ---===//

  llvm::Type *accumulatorType() const {
    return plan.element.isF32() ? b.getFloatTy() : static_cast<llvm::Type *>(b.getInt32Ty());
  }
  Value *sharedAt(Value *bytes) const;
  /// Byte offset of the accumulators of a product.
  unsigned accumulatorsBase(unsigned product) const;
  /// Address of element [row][column] of the accumulators at `base`.
  Value *accumulatorAddress(Value *row, Value *column, unsigned base) const;
  /// Columns of a warpgroup that are in shared memory at a time.
  unsigned warpgroupEpilogueColumns() const {
    return warpgroupColumns(tile) * memory.epilogueColumns() / tile.columns; // of each product
  }
  /// First of these columns for the thread's warpgroup.
  Value *epilogueCorner() const;

  //===--- Special registers and optimisation barriers ---===//

  Value *readSreg(llvm::Intrinsic::ID id) const;
  /// Hides an i32 from the optimiser, where it is computed.
  Value *opaque(Value *word) const;
  /// The thread index, hidden from the optimiser, so that addresses are computed in the loop:
  /// hoisted, they would take registers that accumulators need.
  Value *opaqueThread() const;

private:
  Value *i32(int64_t value) const { return b.getInt32(value); }
  Value *i64(int64_t value) const { return b.getInt64(value); }
  Value *extentOf(tgl::AxesOp op, unsigned axis) const;

  llvm::GlobalVariable *shared = nullptr;
  bool isPart = false;
  Value *firstAccumulatorRow =
      nullptr; ///< i32: first selected row among those that have accumulators; null: 0
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_BLOCKTILE_H
