//===- TileMemory.h - Shared memory of a block's tile -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lays out the shared memory of a block's tile (TensorTile.h): a ring of stages with the tiles of A
// and B, scales of rows and columns, accumulators, and partial sums that other blocks send. The
// schedule asks what fits, code generation where things lie.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_PLAN_TILEMEMORY_H
#define TEGULA_STRATEGIES_CONTRACTION_PLAN_TILEMEMORY_H

#include "strategies/contraction/plan/TensorTile.h"
#include "target/TargetInfo.h"

namespace tegula {

class TileMemory {
public:
  TileMemory(const TensorTile &tile, llvm::ArrayRef<ProductOperands> products,
             const TargetInfo &machine);

  bool usesWgmma() const { return tile.warpgroups && machine.hasWgmma; }
  /// Whether factors of f32 are terms of bf16, each in a plane of its own (TensorTile.h).
  bool usesBF16Terms() const { return usesWgmma() && tile.terms; }
  /// Whether the block has producer threads, which only load operands.
  bool isWarpSpecialized() const {
    return usesWgmma() && !tile.terms &&
           (usesSplitPrecision || tile.prepacked || areBytes || usesTmaBoxes());
  }
  bool isPrepacked() const { return tile.prepacked && isWarpSpecialized(); }
  /// Whether TMA loads the operands. Integers lose more by the launch that makes their descriptors
  /// than they gain (4096 x 4096 x 4096 of i8: 125 us instead of 119 on an H200; f8: 128 instead of
  /// 131).
  bool usesTma() const { return usesWgmma() && usesTmaBoxes(); }
  /// Turns TMA off for 16-bit operands.
  void forbidTma16Bit() { machine.tma16Bit = false; }
  bool are16Bit() const { return !areBytes && !usesSplitPrecision; }

  unsigned stageBytes() const { return stageLines * lineBytes; }
  /// Stages of the ring: the tile's, else as many as hide memory latency and leave room for other
  /// blocks.
  unsigned stages() const;
  /// Whether each block has a multiprocessor of its own (16-bit operands): the ring is then as deep
  /// as it pays.
  bool isDeep() const { return isAlone && copies && !isWarpSpecialized(); }
  unsigned ringBytes() const { return ring.value_or(stages() * stageBytes()); }
  /// Sets the size of a ring that holds more than stages.
  void setRingBytes(unsigned bytes) { ring = bytes; }

  /// Columns whose accumulators are in shared memory at a time in the epilogue: all, unless
  /// setEpilogueColumns was called.
  unsigned epilogueColumns() const {
    return givenEpilogueColumns.value_or(tile.statementColumns());
  }
  void setEpilogueColumns(std::optional<unsigned> columns) { givenEpilogueColumns = columns; }
  unsigned accumulatorsPitch() const { return epilogueColumns() + 8; }
  /// Of one product; of all that share the tile.
  unsigned accumulatorsBytes() const { return tile.rows * accumulatorsPitch() * 4; }
  unsigned jointAccumulatorsBytes() const { return tile.joint * accumulatorsBytes(); }
  /// Bytes of the rows' and columns' maxima and scales. Prepacked operands have scales only; a
  /// persistent block keeps those of two tiles, or none if there is no room, and they share memory
  /// with the accumulators.
  unsigned linesBytes() const;
  /// Whether a block computes several tiles; its accumulators then have shared memory of their own.
  bool isPersistent() const;
  /// Bytes of the mask of flagged tiles of a persistent block, a bit for each.
  static constexpr unsigned flaggedTilesBytes = 512;
  /// Bytes of the mbarriers of bulk loads, one for each product and stage.
  unsigned barriersBytes() const;
  unsigned persistentBytes() const {
    return ringBytes() + linesBytes() + jointAccumulatorsBytes() + flaggedTilesBytes +
           barriersBytes();
  }
  unsigned sharedBytes() const;

  /// Byte offsets of the scales, of a product's accumulators, and of the mbarriers.
  unsigned linesBase() const { return isPersistent() ? ringBytes() : operandsBytes(); }
  unsigned accumulatorsBase(unsigned product) const;
  unsigned barriersBase() const { return receivedBarrier() - barriersBytes(); }

  /// Decides whether the blocks of a split tile form a cluster and reduce through distributed
  /// shared memory (SplitK.cpp): the clusters of all `tiles` must be resident at once (null:
  /// unknown; clusters of two always are), and each block must have enough rows. Interleaved rows
  /// stay together.
  void useClusterReduceWhereFits(std::optional<int64_t> tiles, unsigned interleavedRows = 1);
  bool usesClusterReduce() const { return reducesInCluster; }
  /// Minimum of rows for which a block runs the epilogue: each thread needs an element.
  unsigned minEpilogueRows(unsigned interleavedRows) const;
  /// Rows for which each block of the cluster runs the epilogue.
  unsigned clusterReduceRows() const { return tile.rows / tile.splits; }
  /// Bytes and offset of the partial sums that a block receives, and the offset of the mbarrier
  /// that counts them.
  unsigned receivedBytes() const {
    return reducesInCluster
               ? (tile.splits - 1) * clusterReduceRows() * tile.columns * 4 * numProducts
               : 0;
  }
  unsigned receivedBase() const;
  unsigned receivedBarrier() const;
  /// Whether received sums have a buffer of their own, so that a block sends while others multiply;
  /// else they overwrite the ring.
  bool hasReceiveBuffer() const;
  /// Blocks that are resident on a multiprocessor.
  int64_t residents() const;

  /// Minimum and maximum of stages of the tile on this machine.
  std::pair<unsigned, unsigned> stageLimits() const;

  /// Bytes of an operand's row or column in a stage.
  static constexpr unsigned lineBytes = 128;
  /// Default number of stages with wgmma.
  static constexpr unsigned defaultStages = 4;

private:
  TensorTile tile;
  TargetInfo machine;
  unsigned minPersistentBytes() const;
  /// Bytes of the ring and the accumulators that reuse it; bytes of scales, other products'
  /// accumulators and mbarriers.
  unsigned operandsBytes() const;
  unsigned behindOperands() const;
  size_t numProducts;  ///< that come one after the other
  unsigned stageLines; ///< of the largest stage
  bool usesTmaBoxes() const {
    return allowsTma && !tile.prepacked && machine.usesBulkLoads && (isF8 || usesTma16Bit());
  }
  bool usesTma16Bit() const;
  bool clustersFit(std::optional<int64_t> tiles) const;
  double multiplications = 0; ///< multiply-adds of all products, if TMA can load them
  bool reducesInCluster = false;
  bool isAlone = false; ///< whether each block has a multiprocessor of its own (16-bit operands)
  unsigned steps;       ///< K steps of a block, clamped to what matters to a ring
  bool usesSplitPrecision, areBytes, isF8, copies, allowsTma;
  std::optional<unsigned> ring, givenEpilogueColumns;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_PLAN_TILEMEMORY_H
