//===- TileLoopProducts.h - Matrix products of a tile loop --------*- C++ -*-===//
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
#ifndef TEGULA_STRATEGIES_TILE_LOOP_LOWER_TILELOOPPRODUCTS_H
#define TEGULA_STRATEGIES_TILE_LOOP_LOWER_TILELOOPPRODUCTS_H

#include "strategies/tile_loop/lower/ClusterSums.h"
#include "strategies/tile_loop/lower/FragmentValues.h"
#include "strategies/tile_loop/lower/PingPong.h"
#include "strategies/tile_loop/lower/TileLoopPrecision.h"

namespace tegula {

class TileLoopProducts {
public:
  explicit TileLoopProducts(TileLoopBlock &block);

  using Value = llvm::Value;
  using Values = TileLoopBlock::Values;
  using Product = TileLoopBlock::Product;
  using Staged = TileLoopBlock::Staged;
  using Scope = TileLoopBlock::Scope;

  TileLoopBlock &c;
  DeviceEmitter &e;
  llvm::IRBuilder<> &b;
  TileLoopCopies copies;
  PingPong turns;
  ClusterSums sums;
  TileLoopAccuracyCheck check;
  TileLoopPrecision precision;
  FragmentValues values;

  void startCopies();
  void startTile();
  void finishTiles();
  void settle(mlir::Value tensor);
  void prepareWords(tgl::ParallelOp nest);
  void emitProduct(tgl::ReduceOp op, const Scope &scope);

private:
  Value *descriptorOf(const Staged &staged, Value *stage, Value *first, unsigned step,
                      unsigned term);
  void multiply(Product &product, Value *number, llvm::ArrayRef<Values> words);
  void multiply(Product &product, Value *number, llvm::ArrayRef<Values> words, unsigned first,
                unsigned columns);
  void deferWaits();
  llvm::SmallVector<Values> rowWords(Product &product);
  llvm::SmallVector<Values> bf16Words(Values points, unsigned steps);
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_TILE_LOOP_LOWER_TILELOOPPRODUCTS_H
