//===- TileLoopCopies.h - Copies of a tile loop's factors to shared memory -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_TILE_LOOP_LOWER_TILELOOPCOPIES_H
#define TEGULA_STRATEGIES_TILE_LOOP_LOWER_TILELOOPCOPIES_H

#include "strategies/tile_loop/lower/TileLoopBlock.h"

namespace tegula {

class TileLoopCopies {
public:
  explicit TileLoopCopies(TileLoopBlock &block);

  using Value = llvm::Value;
  using Values = TileLoopBlock::Values;
  using Product = TileLoopBlock::Product;
  using Staged = TileLoopBlock::Staged;

  /// Starts copying a factor's elements from `low` on along the axis that moves, 0 from `total` on.
  /// `stage`: i32, bytes behind the first stage; null: 0.
  void copy(const Staged &staged, Value *stage, Value *low, Value *total);
  /// Starts copying a tile, if there is one.
  void copyColumns(const Product &product, Value *number);
  /// Waits until all copies that were started have arrived, and until the operands that the next
  /// copies overwrite have been multiplied.
  void awaitCopies();
  /// Bytes behind the factor's base of the stage for a tile.
  Value *stageOf(const Product &product, Value *number);
  /// Bytes behind the left factor's base of the place for these rows.
  Value *rowStage(const Product &product);

private:
  TileLoopBlock &c;
  DeviceEmitter &e;
  llvm::IRBuilder<> &b;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_TILE_LOOP_LOWER_TILELOOPCOPIES_H
