//===- TileLoop.h - Plans fused tile loops ----------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A nest whose points, *rows*, each walk a tile loop with products inside:
//
//   parallel (batch, i) { tiles (j) { parallel (j) { .. sum over e of q[i, e] * k[j, e] .. }; ..
//                                     parallel (d) { .. sum over j of T(p[j]) * v[j, d] .. } } }
//
// Along i the right factors are the same. So a block of rows is a matrix product with each tile of
// them: the left factor is what the loop does not change, or what the tile's own values are. The
// strategy `tile-loop` writes the block's shape into the statement (attribute `row_tile`); code
// generation (strategies/tile_loop/lower/FusedTileLoop.h) reads it.
//
// Factors are f16 or bf16. Where one is f32 each is two planes of f16, of which three products are
// added. But a left factor of f32 that is made of the tile's values, beside a right one of bf16, is
// three terms of bf16, which hold it whole.
//
// A tile loop whose columns exceed a thread's registers, or whose operand A exceeds shared memory,
// is split over a cluster of blocks with the same rows: each block has some of the columns `d` and
// of the sum over `e`, and the blocks exchange partial sums
// (strategies/tile_loop/lower/TileLoopSplit.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_TILE_LOOP_PLAN_TILELOOP_H
#define TEGULA_STRATEGIES_TILE_LOOP_PLAN_TILELOOP_H

#include "passes/analysis/Conditions.h"
#include "passes/analysis/Matched.h"

namespace tegula {

/// A sum of products in the tile loop: `columns` sums for each row.
struct TileLoopProduct {
  tgl::ReduceOp reduce;
  tgl::ParallelOp nest;   ///< around it; its only axis are the columns
  bool isBF16;            ///< bf16, else f16
  unsigned terms;         ///< of each factor: 2 where one of them is f32, else 1
  unsigned leftTerms = 1; ///< of bf16, of a left factor of f32: 3, or 1 where it is no such
  bool reducesTile;       ///< over the tile; else the columns are the tile's
  tgl::ReadOp
      a; ///< the left factor where it is the same for all tiles; null: made of the tile's values
  mlir::Value aValue; ///< operand A if it is made of the tile's values, rounded to the type of B
  tgl::ReadOp b;
  bool aKMajor = false,
       bKMajor = false; ///< neighbours in memory are neighbours along the sum
  int64_t fixed;        ///< points of the axis that is not the tile's
  /// Whether a tile's sums begin with 0 and are added to those before in registers, which tensor
  /// cores would cut off.
  bool addsTiles() const { return terms > 1 || leftTerms > 1; }
};

struct TileLoopPlan {
  tgl::ParallelOp op;
  unsigned row = 0; ///< axis of `op`
  llvm::SmallVector<unsigned> batch;
  tgl::TilesOp tiles;
  int64_t extent = 0; ///< of the tile loop
  llvm::SmallVector<TileLoopProduct> products;
  /// Comparisons without which a tile changes nothing, and the axes over the tile that they use:
  /// tiles in which they hold nowhere are skipped.
  struct Bound {
    Comparison comparison;
    mlir::BlockArgument axis;
  };
  llvm::SmallVector<Bound> bounds;
  /// A condition of a `where` over the tile that data decides (TileLoopMasks.h).
  struct DataMask {
    mlir::Value condition;
    mlir::BlockArgument axis;
    bool skips; ///< whether tiles in which it holds nowhere change nothing
  };
  llvm::SmallVector<DataMask> masks;
  int64_t maxColumns = 0; ///< of a nest, and points of a product's sum, that are not the tile's
};

/// Plans the statement as a fused tile loop; nothing if it is none.
Matched<TileLoopPlan> planTileLoop(tgl::ParallelOp op);

/// The comparisons of which a condition consists, where it is nothing else and each is linear in
/// the nest's rows and the axis, with steps of 1 along the axis.
std::optional<llvm::SmallVector<Comparison>>
affineMask(mlir::Value condition, mlir::BlockArgument axis, mlir::BlockArgument row);

/// The shape of a block: 64 rows for each warpgroup, `columns` points of the tile loop in a step,
/// and a cluster of `clusterBlocks` blocks that have the same rows.
struct TileLoopShape {
  int64_t warpgroups, columns, clusterBlocks = 1;

  int64_t rows() const { return 64 * warpgroups; }
  /// The columns, or K points, of one block out of `points`, a multiple of 8; the last blocks may
  /// have fewer.
  int64_t blockShare(int64_t points) const;
  bool isShared(int64_t points) const { return blockShare(points) < points; }
  /// Rounds of the butterfly in which blocks of a cluster exchange partial sums.
  int64_t exchanges() const { return llvm::Log2_64(clusterBlocks); }
  /// Bytes beside the sums received from another block: two mbarriers, and a word for each thread
  /// that has read them.
  static constexpr int64_t exchangeState = 2 * 8 + 128 * 4;
  /// Of the statement.
  static constexpr llvm::StringLiteral attributeName = "row_tile";
  mlir::Attribute toAttribute(mlir::MLIRContext *context) const;
  static std::optional<TileLoopShape> of(tgl::ParallelOp op);
};

/// Whether the blocks of a cluster split the K axis of the product.
bool splitsSum(const TileLoopProduct &product, const TileLoopShape &tile);

/// The first product whose tiles in shared memory are also those of product `number`, which may be
/// itself: both read the same elements, of which lines are the same for either (a right factor of
/// scores, and of a sum over the tile).
unsigned tileOwner(const TileLoopPlan &plan, const TileLoopShape &tile, unsigned number);

/// Whether the block is warp-specialised: two consumer warpgroups, and one that loads for both.
bool isWarpSpecialized(const TileLoopPlan &plan, const TileLoopShape &tile);

/// Buffers for operands A that the loop does not change: two if the next block of rows is loaded
/// while the current one is multiplied.
int64_t rowStagesOf(const TileLoopPlan &plan, const TileLoopShape &tile);

/// Passes in which the blocks of a cluster exchange a tile's partial sums: as many as shared memory
/// requires.
int64_t roundsOf(const TileLoopPlan &plan, const TileLoopShape &tile);

/// Bytes of shared memory for a round's sums of a warpgroup from one other block.
int64_t bytesOfRound(const TileLoopPlan &plan, const TileLoopShape &tile);

/// The operands that are read in split precision.
llvm::SetVector<mlir::Value> splitPrecisionTensors(const TileLoopPlan &plan);

/// Columns of a product over the tile that are accumulated at a time: all, or, in split precision,
/// as many as registers hold beside the sums of the tiles before.
int64_t columnsAtOnce(const TileLoopPlan &plan, const TileLoopShape &tile,
                      const TileLoopProduct &product);

/// Bytes of shared memory: operands A, and two tiles of each operand B.
int64_t sharedBytesOf(const TileLoopPlan &plan, const TileLoopShape &tile);

/// Blocks that fit, the fastest by the model first; none where there is too little to do.
llvm::SmallVector<TileLoopShape> rankTileLoopShapes(const TileLoopPlan &plan,
                                                    Mismatch *why = nullptr);

} // namespace tegula

#endif // TEGULA_STRATEGIES_TILE_LOOP_PLAN_TILELOOP_H
