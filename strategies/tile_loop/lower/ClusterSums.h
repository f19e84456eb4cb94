//===- ClusterSums.h - Sums that the blocks of a cluster have parts of -*- C++ -*-===//
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
#ifndef TEGULA_STRATEGIES_TILE_LOOP_LOWER_CLUSTERSUMS_H
#define TEGULA_STRATEGIES_TILE_LOOP_LOWER_CLUSTERSUMS_H

#include "strategies/tile_loop/lower/TileLoopBlock.h"

namespace tegula {

class ClusterSums {
public:
  explicit ClusterSums(TileLoopBlock &block);

  using Value = llvm::Value;
  using Values = TileLoopBlock::Values;
  using Product = TileLoopBlock::Product;

  void start();
  /// Adds the other blocks' parts to a product's accumulators.
  void addPartials(const Product &product, Values &accumulators);
  void end();

private:
  TileLoopBlock &c;
  DeviceEmitter &e;
  llvm::IRBuilder<> &b;

  unsigned usesInTile() const;
  Value *placeOf(unsigned exchange, Value *group, unsigned behind);
  Value *fullBarrier(unsigned exchange, Value *group);
  Value *readBarrier(unsigned exchange, Value *group);
  Value *inOther(unsigned exchange, Value *own);
  void sendPartials(unsigned exchange, Value *use, llvm::MutableArrayRef<Value *> accumulators);
  void receivePartials(unsigned exchange, Value *use, llvm::MutableArrayRef<Value *> accumulators);
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_TILE_LOOP_LOWER_CLUSTERSUMS_H
