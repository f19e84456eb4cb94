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
// Two consumer warpgroups are scheduled in ping-pong (PingPong.cpp): while one computes values, the
// MMAs of the other run. A producer warpgroup loads tiles for both, and goes on with the next block
// of rows while the last one is stored. A block with one warpgroup loads its tiles itself.
//
// f32 operands are in split precision, two f16 terms each (TileLoopPrecision.cpp); three products
// of terms are accumulated for each tile. If sums are as small as what the terms lose, all rows are
// recomputed by other code (TileLoopAccuracyCheck.cpp).
//
// Tile loops with more columns than registers hold are split over the blocks of a cluster
// (TileLoopSplit.cpp).
//
// Rows beyond the last are the last again, and not written. Columns beyond the last count in no
// reduction. What a `where` over rows and columns decides is decided for whole tiles where it can
// be; tiles that change nothing (TileLoopBounds.h) are left out.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_TILE_LOOP_LOWER_FUSEDTILELOOP_H
#define TEGULA_STRATEGIES_TILE_LOOP_LOWER_FUSEDTILELOOP_H

#include "codegen/async/Async.h"
#include "codegen/nvgpu/Wgmma.h"
#include "codegen/simt/DeviceEmitter.h"
#include "strategies/tile_loop/plan/TileLoop.h"
#include "llvm/ADT/MapVector.h"

namespace tegula {

class FusedTileLoop {
public:
  FusedTileLoop(DeviceEmitter &emitter, const TileLoopPlan &plan, const TileLoopShape &tile);

  IndexExpr numBlocks() const;
  unsigned cluster() const { return tile.clusterBlocks; }
  unsigned threads() const {
    return numConsumerThreads() + (isWarpSpecialized ? Wgmma::threads : 0);
  }
  unsigned sharedBytes() const { return sharedBytesOf(plan, tile); }
  /// Tensors whose address must be a multiple of 16 bytes.
  llvm::SmallVector<mlir::Value> alignedTensors() const;

  /// The whole of a block's work.
  void emit(llvm::Value *workspace);

  // f32 operands in split precision (TileLoopPrecision.cpp)
  bool usesSplitPrecision() const { return !split.empty(); }
  IndexExpr workspaceBytes() const;
  static constexpr unsigned splitPrecisionThreads = 256;
  /// Elements of a 16-byte chunk of f16.
  static constexpr unsigned chunkElements = 8;
  IndexExpr splitPrecisionBlocks() const;
  /// Emit the launches before the loop: the maximum of each tensor, and then its terms.
  void emitLargest(llvm::Value *workspace);
  void emitSplitPrecision(llvm::Value *workspace);

private:
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
  /// Values with a common scale.
  struct Scaled {
    Values values;
    Value *scale;
    double factor; ///< value of the scale
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

  // FusedTileLoop.cpp
  unsigned numConsumerThreads() const { return tile.warpgroups * Wgmma::threads; }
  Value *i32(int64_t value) { return b.getInt32(value); }
  Value *i64(int64_t value) { return b.getInt64(value); }
  Value *wide(Value *value) { return b.CreateZExt(value, b.getInt64Ty(), "", /*IsNonNeg=*/true); }
  Value *readSreg(llvm::Intrinsic::ID id, unsigned limit);
  void barrier();
  void begin();
  void layOut();
  int64_t batchesTogether(int64_t batches) const;
  int64_t numRowBlocks() const;
  void setBlock(Value *number);
  void emitBlock(mlir::Block &block);
  void findTiles(tgl::TilesOp op);
  void emitTiles(tgl::TilesOp op);
  Values emitLoop(tgl::TilesOp op, llvm::ArrayRef<mlir::Value> kept, Values carried);
  void take(llvm::ArrayRef<Value *> carried, mlir::ValueRange names,
            llvm::ArrayRef<mlir::Value> kept);
  void findTargets();
  void boundTiles(Value *&low, Value *&high);
  Value *atRow(const tgl::ValueExpr &expr, bool wantsLargest);

  // FragmentValues.cpp
  bool isFragment(mlir::Value value) { return fragments.contains(value); }
  Fragment fragmentOf(mlir::Value value);
  void setOperands(mlir::Operation *op, unsigned row, unsigned column);
  Fragment forPoints(bool rows, bool columns, const Scope *scope,
                     llvm::function_ref<Value *(unsigned row, unsigned column)> body);
  void emitFragment(mlir::Operation *op, const Scope *scope);
  Value *emitPoint(mlir::Operation *op, bool isElement);
  void divideByRows(mlir::arith::DivFOp op, const Scope &scope);
  void emitWrite(tgl::WriteOp op, const Scope *scope);
  void store(tgl::WriteOp op, const Scope &scope);
  Scope enter(mlir::Operation *nest);
  void emitNest(tgl::ParallelOp op);
  void emitReduce(tgl::ReduceOp op);
  void emitInner(mlir::Operation *op, const Scope &scope);
  void emitMasked(mlir::arith::SelectOp op, const Scope &scope, llvm::ArrayRef<Comparison> mask);
  Fragment full(const Fragment &value, const Scope &scope);
  void keepExisting(Values &values, const Scope &scope, Value *otherwise);
  bool isSplitAcrossCluster(tgl::ReduceOp op);
  void keepInBounds(Values &values, const Scope &scope, tgl::ReduceOp op, Value *otherwise);
  void choose(Value *condition, Values &values, llvm::function_ref<Values()> then);

  // ScaledValues.cpp
  std::optional<Scaled> withoutScale(llvm::ArrayRef<Value *> values);
  Value *powerThatShrinks(Value *size);
  bool emitShiftedExp(mlir::Operation *op, const Scope &scope);

  // PingPong.cpp
  enum Barrier : unsigned { Turn = 1, Spare = Turn + 2, FirstOfProduct, perProduct = 6 };
  Value *isSecond();
  unsigned numProducerThreads() const { return Wgmma::threads / unsigned(products.size()); }
  void waitAt(Value *number, unsigned threads);
  void arriveAt(Value *number, unsigned threads);
  void makeRings();
  void branchToProducers();
  bool staysForBlocks() const;
  Value *forBlocks(llvm::function_ref<void()> body);
  void copyTiles(const Product &product);
  void copyAllTiles(const Product &product);
  Value *inAll(Value *number);
  void awaitTile(const Product &product, Value *number);
  void releaseTile(const Product &product, Value *number);
  void startPingPong();
  void awaitTurn();
  void passTurn();
  void endTurns();
  Value *rowStage(const Product &product);

  // TileLoopSplit.cpp
  bool splitsSums() const;
  unsigned usesInTile() const;
  Value *lowOfRank(int64_t points);
  Value *placeOf(unsigned exchange, Value *group, unsigned behind);
  Value *fullBarrier(unsigned exchange, Value *group);
  Value *readBarrier(unsigned exchange, Value *group);
  Value *inOther(unsigned exchange, Value *own);
  void startClusterReduce();
  void sendPartials(unsigned exchange, Value *use, llvm::MutableArrayRef<Value *> accumulators);
  void receivePartials(unsigned exchange, Value *use, llvm::MutableArrayRef<Value *> accumulators);
  void addPartials(const Product &product, Values &accumulators);
  void endClusterReduce();

  // TileLoopProducts.cpp
  void copy(const Staged &staged, Value *stage, Value *low, Value *total);
  void copyColumns(const Product &product, Value *number);
  Value *stageOf(const Product &product, Value *number);
  Value *descriptorOf(const Staged &staged, Value *stage, Value *first, unsigned step,
                      unsigned term);
  Value *lowOfTile(Value *number);
  void awaitCopies();
  void multiply(Product &product, Value *number, llvm::ArrayRef<Values> words);
  void multiply(Product &product, Value *number, llvm::ArrayRef<Values> words, unsigned first,
                unsigned columns);
  void deferWaits();
  void settle(mlir::Value tensor);
  void prepareWords(tgl::ParallelOp nest);
  void startCopies();
  void startTile();
  void finishTiles();
  void emitProduct(tgl::ReduceOp op, const Scope &scope);
  llvm::SmallVector<Values> rowWords(Product &product);

  // TileLoopPrecision.cpp
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
  const SplitTensor *splitTensorOf(mlir::Value tensor) const;
  void layOutTerms();
  void forSplitTensors(llvm::function_ref<void(const SplitTensor &split, Value *block)> body);
  Values forChunks(
      const SplitTensor &split, Value *block, llvm::ArrayRef<Value *> carried,
      llvm::function_ref<Values(Value *chunk, Value *element, llvm::ArrayRef<Value *> carried)>
          body);
  Value *chunkAt(const SplitTensor &split, Value *number);
  Value *bytesAt(Value *bytes, int64_t distance);
  Value *exponentOf(Value *largest);
  Value *scaleFor(Value *exponent);
  Value *inverseFor(Value *exponent);
  Value *acrossLanes(Value *number, unsigned lanes);
  Value *exponentOf(const SplitTensor &split);
  void findScales();
  Values splitRows(Values &values);
  Value *keepNonZero(Value *elements, Value *scaled);
  void undoScales(Product &product, Values &accumulators);

  // TileLoopAccuracyCheck.cpp
  /// Bytes at the workspace's start; the first word is not 0 if results may be inaccurate.
  static constexpr int64_t accuracyFlagBytes = 256;
  void startAccuracyFlag();
  void clearAccuracyFlag(Value *block, Value *memory);
  Value *smallestSum(const Product &product, unsigned row);
  void flagSmallSums(const Product &product, const Values &accumulators, const Scope &scope,
                     unsigned first);
  void storeAccuracyFlag();
  int64_t lineOf(const SplitTensor &split) const;
  void flagInfinite(Value *largest);
  void flagElements(const SplitTensor &split, Value *element, Value *scaled, Value *scale);
  void raiseAccuracyFlag();

  DeviceEmitter &e;
  llvm::IRBuilder<> &b;
  const TileLoopPlan &plan;
  TileLoopShape tile;
  tgl::AxesOp axes;
  mlir::BlockArgument rowAxis;
  std::vector<Product> products;
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
  llvm::DenseMap<mlir::Value, Value *> inverses; ///< of the scales of tensors that are split
  llvm::AllocaInst *accuracyFlag = nullptr; ///< i32: not 0 if a sum of this thread was too small
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
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_TILE_LOOP_LOWER_FUSEDTILELOOP_H
