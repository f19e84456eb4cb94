//===- ContractionNumbers.h - Numbers of a contraction ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the host knows of a contraction on tensor cores: how many blocks and threads, how much
// shared memory and workspace, which tensors have to be aligned. Nothing here emits code.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_CONTRACTIONNUMBERS_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_CONTRACTIONNUMBERS_H

#include "codegen/nvgpu/TileLayout.h"
#include "codegen/nvgpu/Wgmma.h"
#include "strategies/contraction/lower/block/EpiloguePlan.h"
#include "strategies/contraction/plan/WindowOperand.h"

namespace tegula {

/// Location of a prepacked operand in the workspace.
struct PrepackedOperand {
  IndexExpr terms, scales; ///< byte offsets in the workspace
  IndexExpr tiles;         ///< tiles of a batch point
  IndexExpr stages;        ///< stages of a tile
  IndexExpr blocks;        ///< blocks that prepack it
  int64_t parts = 1;       ///< of a line, each by a block of its own
  mlir::Value
      matrix; ///< the matrix that data chooses for a batch point; null: each point has its own
};

/// How persistent blocks share the last wave: blocks, whole tiles of each, remaining tiles, stages
/// of a tile, K slices of a tile.
struct SplitKTail {
  int64_t blocks, whole, tiles, stages, slices;
};

/// Registers of a thread of each role: together what a multiprocessor has.
struct WarpRoleRegisters {
  unsigned producer, consumer;
};

class ContractionNumbers {
public:
  /// Consecutive tiles of a statement.
  struct TileRange {
    int64_t first, count;
  };
  /// `range`: the tiles to compute; null: all of the statement.
  ContractionNumbers(const EmitterOptions &options, const ContractionPlan &plan,
                     const TensorTile &tile, llvm::ArrayRef<ProductOperands> products,
                     std::optional<TileRange> range = std::nullopt);
  ContractionNumbers(const ContractionNumbers &) = delete;

  const EmitterOptions &options;
  const ContractionPlan &plan;
  /// The statement's, or one of the first product's columns where products cannot share a tile.
  TensorTile tile;
  std::optional<TileRange> range;
  llvm::SmallVector<ProductOperands> products;
  /// As warpgroups have them: others where they multiply terms of bf16.
  llvm::SmallVector<ProductOperands> wgmmaProducts;
  std::vector<PrepackedProduct> prepacked; ///< by product, if operands are prepacked
  std::optional<HaloTile> halo;            ///< halo tile of operand B of the only product
  tgl::AxesOp axes;                        ///< the statement's
  TileMemory memory;

  //===--- Points of groups of axes ---===//

  /// Indices up to this one are divided in 32 bits, those of padding lines included.
  static constexpr int64_t maxDivisible32 = (int64_t(1) << 31) - 1;
  /// Whether the indices are known, or checked by the host, to fit.
  bool numbersFit32Bit(tgl::AxesOp op, llvm::ArrayRef<unsigned> group) const;
  IndexExpr pointsOnHost(tgl::AxesOp op, llvm::ArrayRef<unsigned> group) const;
  /// The padded extent of the axis; 0: it is not padded.
  int64_t paddedExtent(tgl::AxesOp op, unsigned axis) const;
  bool isPadded() const { return !padded.empty(); }

  //===--- Tiles and blocks ---===//

  /// Number of tiles, each of which takes `splits` blocks.
  IndexExpr numTiles() const;
  /// Number of blocks that run the code of emitTile.
  IndexExpr numBlocks() const;
  /// Number of blocks that run the code of emitCombine.
  IndexExpr numCombineBlocks() const { return numTiles() * int64_t(combineBlocks()); }
  unsigned combineSharedBytes() const { return products.size() * combineAccumulatorsBytes(); }
  /// Blocks that combine one tile: more than one, since few tiles would leave multiprocessors idle.
  unsigned combineBlocks() const { return tile.rows / combineRows(); }
  unsigned combineRows() const;
  unsigned sharedBytes() const { return memory.sharedBytes(); }
  /// Blocks of a cluster; 1: no clusters.
  unsigned cluster() const { return usesClusterReduce() ? tile.splits : 1; }
  bool usesClusterReduce() const { return memory.usesClusterReduce(); }
  /// Whether emitTile stores partial sums, which emitCombine adds up.
  bool storesPartials() const { return tile.splits > 1 && !usesClusterReduce(); }
  /// The tiles of the last partial wave, which are split over K and combined by a launch of their
  /// own.
  struct RemainderTiles {
    TensorTile tile;
    TileRange range;
  };
  std::optional<RemainderTiles> remainderTiles() const;
  std::optional<SplitKTail> splitKTail() const;
  bool isPersistent() const { return memory.isPersistent(); }
  IndexExpr persistentBlocks() const;
  bool tileNumbersFit32Bit() const;
  bool batchSharesImage() const;
  int64_t raster() const;
  /// The largest index that is divided in 32 bits. Above maxDivisible32 the launch must not use
  /// tiles.
  IndexExpr largestNumber() const;
  /// Tensors whose addresses must be multiples of 16 bytes.
  llvm::SmallVector<mlir::Value> alignedTensors() const;

  //===--- Threads and their roles ---===//

  bool usesWgmma() const { return memory.usesWgmma(); }
  bool isWarpSpecialized() const { return memory.isWarpSpecialized(); }
  bool usesBF16Terms() const { return memory.usesBF16Terms(); }
  /// Whether operands are f32 in split precision: scaled sums of 16-bit terms.
  bool usesSplitPrecision() const { return products.front().type == MmaType::TF32; }
  bool areBytes() const { return isBytes(products.front().type); }
  /// Whether a launch before prepacks the operands (PrepackOperands.cpp), or makes TMA descriptors
  /// (TmaDescriptors.cpp).
  bool isPrepacked() const { return memory.isPrepacked(); }
  bool usesTma() const { return memory.usesTma(); }
  /// Whether each block makes its own TMA descriptors.
  bool makesTmaDescriptors() const { return usesTma() && isPersistent(); }
  bool usesBulkLoads() const;
  /// Whether producers only copy.
  bool hasCopyProducers() const {
    return isWarpSpecialized() && (isPrepacked() || areBytes() || usesTma());
  }
  /// Consumer threads, and producer threads: one warpgroup if producers only copy.
  unsigned threads() const { return tile.threads(); }
  unsigned producerThreads() const { return hasCopyProducers() ? Wgmma::threads : threads(); }
  /// Threads of a block, producers included.
  unsigned blockThreads() const {
    return threads() + (isWarpSpecialized() ? producerThreads() : 0);
  }
  unsigned barrierThreads() const;
  WarpRoleRegisters roleRegisters() const;
  bool signalsPerWarpgroup() const { return products.front().type == MmaType::F8; }
  /// Stages of the shared-memory ring.
  unsigned ringStages() const { return memory.stages(); }
  /// Stages that a producer keeps in flight while it waits for an empty one. Consumers hold one
  /// stage while they begin the next.
  unsigned copiesAhead() const { return std::min(2u, ringStages() - 2); }
  bool isChecked(unsigned number) const;
  EpiloguePlan planEpilogue() const { return EpiloguePlan(plan, tile, memory, options, padded); }
  bool usesWarpEpilogue() const;
  /// Mainloops of a tile, one after the other: products that share it have one.
  unsigned numMainloops() const { return tile.hasOneMainloop() ? 1 : products.size(); }

  //===--- The workspace (ContractionWorkspace.cpp) ---===//

  /// Bytes of the workspace: prepacked operands, TMA descriptors and partial sums.
  IndexExpr workspaceBytes() const;
  unsigned blockWorkspaceBytes() const;
  IndexExpr splitKTailBytes() const;
  IndexExpr tmaDescriptorsBytes() const;
  static unsigned tmaDescriptorThreads() { return 32; }
  /// Sets `bytes` to the bytes of all.
  std::vector<PrepackedOperand> prepackedOperands(IndexExpr &bytes) const;
  IndexExpr prepackedBytes() const;
  IndexExpr prepackBlocks() const;
  unsigned prepackThreads() const { return threads(); }
  static unsigned prepackSharedBytes();
  int64_t blocksOfImage(const WindowOperand &window, int64_t pixels) const;
  /// Lines of a block that prepacks: neighbours in memory are then read by whole sectors whichever
  /// way they lie.
  static constexpr unsigned prepackedLinesOfBlock = 8;
  /// Parts of lines of so many stages, where that many blocks would take whole lines: few long
  /// lines keep the memory busy only in parts.
  int64_t partsOfLines(const IndexExpr &blocks, const IndexExpr &stages) const;

  //===--- Halo tiles ---===//

  static constexpr unsigned haloBuffers = 2; ///< halo tiles in shared memory (double buffering)
  static constexpr unsigned haloChunkBytes = 2 * KOrder::channelVector;
  bool usesHaloTile() const { return halo.has_value(); }
  const KOrder &groupOrder() const { return prepacked.front().order; }
  unsigned termsOfStep() const;
  unsigned haloBytes() const;
  /// Bytes of a ring that holds operand A only.
  unsigned ringRowsBytes() const { return tile.rows * WgmmaSharedLayout::lineBytes * ringStages(); }
  HaloLayout haloLayout() const;
  unsigned tapOffsetsBytes() const;

private:
  void chooseEpilogueColumns();
  void separateProducts();
  void layOutHaloTile();
  unsigned combineAccumulatorsBytes() const {
    return combineRows() * memory.accumulatorsPitch() * 4;
  }

  llvm::SmallVector<int64_t> padded; ///< padded extents of the last axes of the columns
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_CONTRACTIONNUMBERS_H
