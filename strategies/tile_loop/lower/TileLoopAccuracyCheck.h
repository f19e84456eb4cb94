//===- TileLoopAccuracyCheck.h - Flags inaccurate sums of a tile loop -*- C++ -*-===//
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
#ifndef TEGULA_STRATEGIES_TILE_LOOP_LOWER_TILELOOPACCURACYCHECK_H
#define TEGULA_STRATEGIES_TILE_LOOP_LOWER_TILELOOPACCURACYCHECK_H

#include "strategies/tile_loop/lower/TileLoopBlock.h"

namespace tegula {

class TileLoopAccuracyCheck {
public:
  explicit TileLoopAccuracyCheck(TileLoopBlock &block);

  using Value = llvm::Value;
  using Values = TileLoopBlock::Values;
  using Product = TileLoopBlock::Product;
  using Scope = TileLoopBlock::Scope;
  using SplitTensor = TileLoopBlock::SplitTensor;

  /// Before the loop: nothing is inaccurate yet.
  void start();
  /// In the launch before, by one thread.
  void clear(Value *block, Value *memory);
  void flagSmallSums(const Product &product, const Values &accumulators, const Scope &scope,
                     unsigned first);
  void flagInfinite(Value *largest);
  void flagElements(const SplitTensor &split, Value *element, Value *scaled, Value *scale);
  /// After the loop: tells the launch that may do the rows again.
  void store();

private:
  TileLoopBlock &c;
  DeviceEmitter &e;
  llvm::IRBuilder<> &b;
  llvm::AllocaInst *flag = nullptr; ///< i32: not 0 if a sum of this thread was too small

  Value *smallestSum(const Product &product, unsigned row);
  int64_t lineOf(const SplitTensor &split) const;
  void raise();
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_TILE_LOOP_LOWER_TILELOOPACCURACYCHECK_H
