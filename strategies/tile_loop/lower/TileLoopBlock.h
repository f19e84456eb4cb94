//===- TileLoopBlock.h - A block of a fused tile loop -------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What all parts of a fused tile loop (FusedTileLoop.h) know: the plan, numbers that the host needs
// too, where operands lie in shared memory, and the rows, the tile and the values of the block that
// is being emitted.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_TILE_LOOP_LOWER_TILELOOPBLOCK_H
#define TEGULA_STRATEGIES_TILE_LOOP_LOWER_TILELOOPBLOCK_H

#include "codegen/nvgpu/Wgmma.h"
#include "codegen/simt/DeviceEmitter.h"
#include "strategies/tile_loop/lower/TileLoopMaskRanges.h"
#include "llvm/ADT/MapVector.h"

namespace tegula {

class TileLoopBlock {
public:
  TileLoopBlock(DeviceEmitter &emitter, const TileLoopPlan &plan, const TileLoopShape &tile);

  using Value = llvm::Value;
  using Values = llvm::SmallVector<Value *>;

  /// The elements of a value that a thread holds, in the MMA accumulator layout.
  struct Fragment {
    bool rows = false, columns = false; ///< the axes that it varies along
    Values values;
    unsigned indexOf(unsigned row, unsigned column) const {
      return rows && columns ? column / 2 * 4 + row * 2 + column % 2
             : rows          ? row
             : columns       ? column
                             : 0;
    }
    Value *at(unsigned row, unsigned column) const { return values[indexOf(row, column)]; }
  };
  /// The columns of a nest or a reduction in the current code.
  struct Scope {
    mlir::BlockArgument axis;
    unsigned columns;    ///< columns of the fragment
    bool isTile = false; ///< whether they are the tile's points
    bool isSplitAcrossCluster =
        false;               ///< whether the other blocks of the cluster have other columns
    Value *ragged = nullptr; ///< i1: some of them are beyond `high`; null: never
    Value *high = nullptr;   ///< i64
    Values numbers = {};     ///< i64, of this thread's columns
    unsigned own() const { return columns / 4; }
  };
  /// An operand in shared memory, in blocks of 64 along K.
  struct Staged {
    tgl::ReadOp read;
    mlir::BlockArgument lineAxis, sumAxis; ///< of its rows (or columns), and of the sum
    mlir::BlockArgument moving;            ///< the one of these axes that tiles or blocks divide
    WgmmaSharedLayout shared;
    unsigned kBlocks;
    unsigned base;      ///< byte in shared memory; of the first stage
    unsigned terms = 1; ///< terms of split precision, one after the other
    unsigned termBytes() const { return kBlocks * shared.bytes(); }
    unsigned bytes() const { return terms * termBytes(); }
  };
  struct Product {
    const TileLoopProduct *planned;
    std::optional<Staged> a;
    Staged b;
    unsigned columns, depth; ///< of a tile
    unsigned owner;          ///< number of the product whose tiles of B are this one's too
    bool isLast = true;      ///< whether no later product has the same tiles
    Value *ring = nullptr;   ///< ring of its stages, in a warp-specialised block
    /// The loop-carried temporary that receives the accumulators of MMAs that the next iteration
    /// waits for.
    mlir::Value target = {};
    Values scales = {}; ///< of planes: what the sums of each row are multiplied with; in words, of
                        ///< the left factor alone
    llvm::SmallVector<Values> words = {};     ///< and this is what
    llvm::SmallVector<Values> nextWords = {}; ///< of this iteration, where they are ready early
    Values accumulators = {};                 ///< which are not yet to be touched
  };

  /// An f32 tensor that the loop reads in split precision.
  struct SplitTensor {
    mlir::Value tensor;
    int64_t elements;
    int64_t base; ///< byte offset in the workspace of the maxima that warps found; the terms follow
                  ///< them
    int64_t termBytes() const { return int64_t(llvm::alignTo(elements * 2, 256)); }
    int64_t termAt(unsigned term) const;
    int64_t end() const { return termAt(2); }
  };

  //===--- Numbers known to the host ---===//

  IndexExpr numBlocks() const;
  unsigned cluster() const { return tile.clusterBlocks; }
  unsigned threads() const {
    return numConsumerThreads() + (isWarpSpecialized ? Wgmma::threads : 0);
  }
  unsigned sharedBytes() const { return sharedBytesOf(plan, tile); }
  /// Tensors whose address must be a multiple of 16 bytes.
  llvm::SmallVector<mlir::Value> alignedTensors() const;

  int64_t numRowBlocks() const;
  /// Whether blocks stay for several blocks of rows, one after the other.
  bool staysForBlocks() const;
  bool splitsSums() const;
  unsigned numConsumerThreads() const { return tile.warpgroups * Wgmma::threads; }
  unsigned numProducerThreads() const { return Wgmma::threads / numTilesOfTurn; }

  //===--- Split precision ---===//

  /// Bytes at the workspace's start; the first word is not 0 if results may be inaccurate.
  static constexpr int64_t accuracyFlagBytes = 256;
  static constexpr unsigned splitPrecisionThreads = 256;
  /// Blocks that go through a tensor, and warps of each.
  static constexpr unsigned blocksOfTensor = 256, warpsOfBlock = splitPrecisionThreads / 32,
                            numLargest = blocksOfTensor * warpsOfBlock;
  /// Elements of a 16-byte chunk of f16.
  static constexpr unsigned chunkElements = 8;
  bool usesSplitPrecision() const { return !split.empty(); }
  const SplitTensor *splitTensorOf(mlir::Value tensor) const;
  /// Chunk `number` of the tensor, in f32.
  Value *chunkAt(const SplitTensor &split, Value *number);
  Value *bytesAt(Value *bytes, int64_t distance);

  //===--- The block that is being emitted ---===//

  Value *i32(int64_t value) { return b.getInt32(value); }
  Value *i64(int64_t value) { return b.getInt64(value); }
  Value *wide(Value *value) { return b.CreateZExt(value, b.getInt64Ty(), "", /*IsNonNeg=*/true); }
  Value *readSreg(llvm::Intrinsic::ID id, unsigned limit);
  void barrier();
  void begin();
  void setBlock(Value *number);
  void findTiles(tgl::TilesOp op);
  Value *lowOfTile(Value *number);
  /// Of all tiles of the block so far.
  Value *inAll(Value *number);
  /// The first of `points` that is the block's own in its cluster.
  Value *lowOfRank(int64_t points);
  /// An expression's largest (smallest) value in the rows of the block.
  Value *atRow(const tgl::ValueExpr &expr, bool wantsLargest);
  /// Values of `then` where the condition, the same for all threads, holds.
  void choose(Value *condition, Values &values, llvm::function_ref<Values()> then);

  DeviceEmitter &e;
  llvm::IRBuilder<> &b;
  const TileLoopPlan &plan;
  TileLoopShape tile;
  tgl::AxesOp axes;
  mlir::BlockArgument rowAxis;
  std::vector<Product> products;
  unsigned numTilesOfTurn = 0;    ///< of right factors: those that products share count once
  bool isWarpSpecialized = false; ///< whether producer threads load and consumers multiply
  unsigned numRowStages = 1;
  unsigned exchangeBase =
      0; ///< byte offset in shared memory of the buffers for partial sums of other blocks
  Value *clusterRank = nullptr; ///< i32: rank of the block in its cluster
  /// Tiles of the blocks of rows done so far (i32), and whether an odd number of these blocks had
  /// tiles (i1).
  Value *tilesBefore = nullptr, *isOdd = nullptr;
  std::vector<SplitTensor> split;
  Value *workspace = nullptr;
  llvm::GlobalVariable *shared = nullptr;
  Value *thread = nullptr, *lane = nullptr, *warpgroup = nullptr; // i32
  Value *producer = nullptr; ///< i32, of `numProducers` threads
  unsigned numProducers = 0;
  Value *firstRow = nullptr, *lastRow = nullptr,
        *rowsEnd = nullptr;         // i64: values of the axis in this block
  std::array<Value *, 2> rowExists; // i1; null: always
  Value *firstTile = nullptr, *tileNumber = nullptr, *numTiles = nullptr,
        *tilesEnd = nullptr; // i64
  llvm::DenseMap<mlir::Value, Fragment> fragments;
  llvm::MapVector<mlir::Value, Fragment> elements; // of temporaries
  /// Operations that only a mask uses, or that have been done with another.
  llvm::DenseSet<mlir::Operation *> skipped;
  /// The columns (i64) in which each mask that data decides holds for all rows of the block.
  llvm::SmallVector<std::pair<Value *, Value *>> throughout;
  std::optional<MaskRanges> maskRanges;

private:
  void layOut();
  void layOutTerms();
  int64_t batchesTogether(int64_t batches) const;
  void boundTiles(Value *&low, Value *&high);
  void boundTilesByMasks(Value *&low, Value *&high);
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_TILE_LOOP_LOWER_TILELOOPBLOCK_H
