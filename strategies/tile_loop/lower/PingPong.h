//===- PingPong.h - Ping-pong scheduling of two consumer warpgroups -*- C++ -*-===//
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
#ifndef TEGULA_STRATEGIES_TILE_LOOP_LOWER_PINGPONG_H
#define TEGULA_STRATEGIES_TILE_LOOP_LOWER_PINGPONG_H

#include "strategies/tile_loop/lower/TileLoopCopies.h"

namespace tegula {

class PingPong {
public:
  PingPong(TileLoopBlock &block, TileLoopCopies &copies);

  using Value = llvm::Value;
  using Values = TileLoopBlock::Values;
  using Product = TileLoopBlock::Product;

  /// Emits what producers do, and goes on where consumers do their part.
  void branchToProducers();
  /// Emits `body` for each block of rows that this block has; tiles that it has had then.
  Value *forBlocks(llvm::function_ref<void()> body);
  void awaitTile(const Product &product, Value *number);
  void releaseTile(const Product &product, Value *number);
  void start();
  void awaitTurn();
  void passTurn();
  void endTurns();

private:
  TileLoopBlock &c;
  DeviceEmitter &e;
  llvm::IRBuilder<> &b;
  TileLoopCopies &copies;

  enum Barrier : unsigned { Turn = 1, Spare = Turn + 2, FirstOfProduct, perProduct = 6 };
  Value *isSecond();
  void waitAt(Value *number, unsigned threads);
  void arriveAt(Value *number, unsigned threads);
  void makeRings();
  void copyTiles(const Product &product);
  void copyAllTiles(const Product &product);
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_TILE_LOOP_LOWER_PINGPONG_H
