//===- RowTiles.h - Rows that go through a tile loop together -----------*- C++ -*-===//
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
// strategy `row-tiles` writes the block's shape into the statement (attribute `row_tile`); code
// generation (codegen/DeviceRowTiles.h) reads it.
//
// Factors are f16 or bf16. Where one is f32 each is two planes of f16, of which three products are added.
//
// What has more columns than a thread has registers for, or a left factor more than shared memory has room for, is shared
// by the blocks of a cluster, which have the same rows: each has a *part* of the columns of `d` and of the sum over `e`,
// and all have the sums of the others' parts (codegen/RowTileParts.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_ROWTILES_H
#define TEGULA_PASSES_ROWTILES_H

#include "passes/Conditions.h"

namespace tegula {

/// A sum of products in the tile loop: `columns` sums for each row.
struct RowProduct {
  tgl::ReduceOp reduce;
  tgl::ParallelOp nest; ///< around it; its only axis are the columns
  bool isBrain;         ///< bf16, else f16
  unsigned planes;      ///< of each factor: 2 where one of them is f32, else 1
  bool sumsTile;        ///< over the tile; else the columns are the tile's
  tgl::ReadOp
      row; ///< the left factor where it is the same for all tiles; null: made of the tile's values
  mlir::Value left; ///< and then this, rounded to the right factor's type
  tgl::ReadOp column;
  bool rowAlongSum = false,
       columnAlongSum = false; ///< neighbours in memory are neighbours along the sum
  int64_t fixed;               ///< points of the axis that is not the tile's
};

struct RowTilePlan {
  tgl::ParallelOp op;
  unsigned row = 0; ///< axis of `op`
  llvm::SmallVector<unsigned> batch;
  tgl::TilesOp tiles;
  int64_t extent = 0; ///< of the tile loop
  llvm::SmallVector<RowProduct> products;
  /// Comparisons without which a tile changes nothing, and the axes over the tile that they use:
  /// tiles in which they hold nowhere are skipped.
  struct Bound {
    Comparison comparison;
    mlir::BlockArgument axis;
  };
  llvm::SmallVector<Bound> bounds;
  int64_t mostColumns = 0; ///< of a nest, and points of a product's sum, that are not the tile's
};

/// How to run the statement's rows in blocks; nothing where they cannot.
std::optional<RowTilePlan> planRowTiles(tgl::ParallelOp op);

/// The comparisons of which a condition consists, where it is nothing else and each is linear in
/// the nest's rows and the axis, with steps of 1 along the axis.
std::optional<llvm::SmallVector<Comparison>>
affineMask(mlir::Value condition, mlir::BlockArgument axis, mlir::BlockArgument row);

/// A block: 64 rows for each of its warpgroups, and so many points of the tile loop at a time; so many blocks, a cluster,
/// have the same rows.
struct RowTile {
  int64_t warpgroups, columns, parts = 1;

  int64_t rows() const { return 64 * warpgroups; }
  /// Of so many columns, or points of a sum, a block's, in eights; those of the last blocks may be fewer.
  int64_t partOf(int64_t points) const;
  bool isShared(int64_t points) const { return partOf(points) < points; }
  /// Blocks with which each adds up parts of sums, one after the other: the first has two parts then, the next four.
  int64_t exchanges() const { return llvm::Log2_64(parts); }
  /// Beside the sums that a warpgroup has from another block: two barriers, and a word of each thread that has read them.
  static constexpr int64_t exchangeState = 2 * 8 + 128 * 4;
  mlir::Attribute toAttribute(mlir::MLIRContext *context) const;
  static std::optional<RowTile> of(tgl::ParallelOp op);
};

/// Whether each block of a cluster adds up a part of the product alone.
bool sharesSum(const RowProduct &product, const RowTile &tile);

/// Whether two warpgroups multiply and a third copies for both.
bool hasRoles(const RowTilePlan &plan, const RowTile &tile);

/// Places for left factors that do not change in the loop: two where one block of rows is brought while the one before is
/// still multiplied.
int64_t rowStagesOf(const RowTilePlan &plan, const RowTile &tile);

/// Rounds in which blocks of a cluster add up their parts of a tile's sums, as many as it takes for room: each is of so many
/// columns less.
int64_t roundsOf(const RowTilePlan &plan, const RowTile &tile);

/// Bytes of shared memory for a round's sums of a warpgroup from one other block.
int64_t bytesOfRound(const RowTilePlan &plan, const RowTile &tile);

/// Of a tensor, where they are known.
std::optional<int64_t> elementsOf(mlir::Value tensor);

/// The tensors among its factors that are read in planes.
llvm::SetVector<mlir::Value> splitTensors(const RowTilePlan &plan);

/// Columns of a product over the tile that are summed up at a time: all that it has, or, of planes, whose sums are beside those
/// of the tiles before, as many as registers leave room for.
int64_t columnsAtOnce(const RowTilePlan &plan, const RowTile &tile, const RowProduct &product);

/// Bytes of shared memory: left factors, and two tiles of each right factor.
int64_t sharedBytesOf(const RowTilePlan &plan, const RowTile &tile);

/// Blocks that fit, the fastest by the model first; none where there is too little to do.
llvm::SmallVector<RowTile> rankRowTiles(const RowTilePlan &plan);

} // namespace tegula

#endif // TEGULA_PASSES_ROWTILES_H
