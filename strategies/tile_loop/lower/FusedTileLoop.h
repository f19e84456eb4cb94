//===- FusedTileLoop.h - Fused tile loops (FlashAttention-style) -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A nest whose rows go through a tile loop together (strategies/tile_loop/plan/TileLoop.h) as
// device code (sm_90a). Each warpgroup of a block has 64 rows. All values of the nest lie in
// registers, as the sums of a product do (Wgmma.h): thread t of the 128 has of 64 rows by C
// columns, with n = 0, 1, ... C/2
// - 1,
//
//   row 16 (t / 32) + t % 32 / 4 + 8 (n / 2 % 2)    column 8 (n / 4) + 2 (t % 4) + n % 2
//
// This is a *fragment*, the MMA accumulator layout: a thread holds two elements of a value that
// varies along rows, C / 4 of one along columns, C / 2 of one along both, and one of a uniform
// value. Each operation of the nest is emitted for all elements. A reduction along columns combines
// a thread's elements, then those of the four threads that share rows. Private temporaries are
// fragments; those defined before the loop are carried by it.
//
//   left factors that the loop does not change to shared memory
//   for each tile
//     start multiplying them with the tile; start copying the next
//     start multiplying the values of the tile before, which its code has left in registers
//     everything else in registers
//   multiply the last tile's values
//
// A left factor made of the tile's values stays in registers: two neighbours of C columns are a
// word of it. What a product is added to is where its sums begin. Where they go into a temporary
// that the loop carries it is started in the next iteration, and waited for where the temporary is
// read: tensor cores multiply while the next tile's values are computed.
//
// Two consumer warpgroups are scheduled in ping-pong (PingPong.h): while one computes values, the
// MMAs of the other run. A producer warpgroup loads tiles for both, and goes on with the next block
// of rows while the last one is stored. A block with one warpgroup loads its tiles itself.
//
// f32 operands are in split precision, two f16 terms each (TileLoopPrecision.h); three products
// of terms are accumulated for each tile. If sums are as small as what the terms lose, all rows are
// recomputed by other code (TileLoopAccuracyCheck.h).
//
// Tile loops with more columns than registers hold are split over the blocks of a cluster
// (ClusterSums.h).
//
// Rows beyond the last are the last again, and not written. Columns beyond the last count in no
// reduction. What a `where` over rows and columns decides is decided for whole tiles where it can
// be; tiles that change nothing (TileLoopBounds.h) are left out.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_TILE_LOOP_LOWER_FUSEDTILELOOP_H
#define TEGULA_STRATEGIES_TILE_LOOP_LOWER_FUSEDTILELOOP_H

#include "strategies/tile_loop/lower/TileLoopProducts.h"

namespace tegula {

class FusedTileLoop {
public:
  FusedTileLoop(DeviceEmitter &emitter, const TileLoopPlan &plan, const TileLoopShape &tile);

  /// The whole of a block's work.
  void emit(llvm::Value *workspace);
  /// The launches before the loop, of f32 operands.
  void emitLargest(llvm::Value *workspace) { products.precision.emitLargest(workspace); }
  void emitSplitPrecision(llvm::Value *workspace) {
    products.precision.emitSplitPrecision(workspace);
  }

  /// What the host asks.
  const TileLoopBlock &block() const { return c; }
  const TileLoopPrecision &precision() const { return products.precision; }

private:
  using Value = llvm::Value;
  using Values = TileLoopBlock::Values;
  using Fragment = TileLoopBlock::Fragment;
  using Product = TileLoopBlock::Product;

  TileLoopBlock c;
  DeviceEmitter &e;
  llvm::IRBuilder<> &b;
  TileLoopProducts products;

  void emitBlock(mlir::Block &block);
  void emitTiles(tgl::TilesOp op);
  Values emitLoop(tgl::TilesOp op, llvm::ArrayRef<mlir::Value> kept, Values carried);
  void take(llvm::ArrayRef<Value *> carried, mlir::ValueRange names,
            llvm::ArrayRef<mlir::Value> kept);
  void findTargets();
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_TILE_LOOP_LOWER_FUSEDTILELOOP_H
