//===- DeviceContraction.h - Matrix products on tensor cores ----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits device code for a statement that has a tile (strategies/contraction/plan/TensorTile.h). A
// block computes one tile of the result for each point of the batch axes:
//
//   for each product of the statement                      mainloop (MmaMainloop.cpp,
//   WgmmaMainloop.cpp)
//     for each 128 bytes of the K axis
//       wait until this step's tiles of A and B are in shared memory
//       start copying the tiles of a later step            CpAsyncLoad.cpp, BulkLoad.cpp,
//       TmaDescriptors.cpp evaluate elements that cannot be copied, into registers multiply
//       fragments; accumulators are in registers store the evaluated elements to shared memory
//       SwizzledSharedStore.cpp
//   store the accumulators, run the epilogue               Epilogue.h
//
// An operand may be evaluated at any point, so a convolution is an implicit GEMM. Elements outside
// of an operand are 0 in shared memory.
//
// f32 operands keep their accuracy by split precision: an element is the sum of two TF32 terms
// (3xTF32), or of two f16 terms with a scale for each row and column (WarpSpecialization.cpp).
// Tensor cores truncate, so accumulators are promoted to f32 registers after each step. A tile with
// inaccurate results is recomputed on an exact path (AccuracyCheck.cpp).
//
// The other files:
//   WarpSpecialization.cpp   producer warps load, consumer warps multiply
//   PersistentScheduler.cpp  persistent blocks compute several tiles
//   SplitK.cpp               blocks share a tile's K axis: cluster reduction, or a second launch
//   that adds up partial sums SplitKTail.cpp           all persistent blocks share the tiles of the
//   last partial wave PrologueLoads.cpp        consumers load the first stages while a producer
//   makes the TMA descriptors PrepackOperands.cpp, PrepackWindows.cpp   a launch before splits or
//   reorders the operands HaloTile.cpp             one copy of an image's halo tile serves all
//   filter taps ByteMainloop.cpp         8-bit operands
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_DEVICECONTRACTION_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_DEVICECONTRACTION_H

#include "codegen/async/Async.h"
#include "codegen/nvgpu/TileLayout.h"
#include "strategies/contraction/lower/BlockTile.h"
#include "strategies/contraction/lower/Epilogue.h"
#include "strategies/contraction/plan/WindowOperand.h"
#include <array>

namespace tegula {

/// Emits the matrix products of a statement, a tile for each block.
class DeviceContraction {
public:
  /// Consecutive tiles of a statement.
  struct TileRange {
    int64_t first, count;
  };
  /// `range`: the tiles to compute; null: all of the statement.
  DeviceContraction(Emitter &emitter, const ContractionPlan &plan, const TensorTile &tile,
                    llvm::ArrayRef<ProductOperands> products,
                    std::optional<TileRange> range = std::nullopt);

  /// Number of tiles, each of which takes `splits` blocks.
  IndexExpr numTiles() const;
  /// Number of blocks that run the code of emitTile.
  IndexExpr numBlocks() const;
  /// Number of blocks that run the code of emitCombine.
  IndexExpr numCombineBlocks() const { return numTiles() * int64_t(combineBlocks()); }
  unsigned combineSharedBytes() const { return products.size() * combineAccumulatorsBytes(); }
  /// Threads of a block, producers included.
  unsigned blockThreads() const {
    return threads() + (isWarpSpecialized() ? producerThreads() : 0);
  }
  unsigned sharedBytes() const { return memory.sharedBytes(); }
  /// Blocks of a cluster; 1: no clusters.
  unsigned cluster() const { return usesClusterReduce() ? tile.splits : 1; }
  /// Whether emitTile stores partial sums, which emitCombine adds up.
  bool storesPartials() const { return tile.splits > 1 && !usesClusterReduce(); }
  /// The tiles of the last partial wave, which are split over K and combined by a launch of their
  /// own.
  struct RemainderTiles {
    TensorTile tile;
    TileRange range;
  };
  std::optional<RemainderTiles> remainderTiles() const;
  /// Bytes of the workspace: prepacked operands, TMA descriptors and partial sums.
  IndexExpr workspaceBytes() const;
  /// The largest index that is divided in 32 bits. Above BlockTile::maxDivisible32 the launch must
  /// not use tiles.
  IndexExpr largestNumber() const;
  /// Tensors whose addresses must be multiples of 16 bytes.
  llvm::SmallVector<mlir::Value> alignedTensors() const;

  /// Whether a launch before prepacks the operands (PrepackOperands.cpp), or makes TMA descriptors
  /// (TmaDescriptors.cpp).
  bool isPrepacked() const { return memory.isPrepacked(); }
  bool usesTma() const { return memory.usesTma(); }
  /// Whether each block makes its own TMA descriptors.
  bool makesTmaDescriptors() const { return usesTma() && isPersistent(); }
  IndexExpr prepackBlocks() const;
  unsigned prepackThreads() const { return threads(); }
  static unsigned prepackSharedBytes();
  void emitPrepack(llvm::Value *workspace);
  static unsigned tmaDescriptorThreads() { return 32; }
  void emitTmaDescriptors(llvm::Value *workspace);

  /// Emits a block's work: mainloop and epilogue. With splits it ends with partial sums in
  /// `workspace`.
  void emitTile(llvm::Value *workspace);
  /// Emits the launch that adds up partial sums and runs the epilogue.
  void emitCombine(llvm::Value *workspace);
  /// The layout of the tile that emitTile emitted, for drawings.
  TileLayout layout(llvm::StringRef function) const;

private:
  using Value = llvm::Value;
  using Accumulators = llvm::SmallVector<Value *>;

  using Group = TileDim;
  /// A thread's flags for accumulators that may be inaccurate.
  struct AccuracyFlags {
    Value *isInaccurate = nullptr; ///< i1, uniform over the consumers: the tile must be recomputed;
                                   ///< null: it is accurate
    Value *flagged =
        nullptr; ///< i32: bit n is set if accumulators 4n .. 4n + 3 must be recomputed one by one
    Value *numFlagged = nullptr; ///< i32: number of such groups of four in the warp
  };

  using Operand = MmaOperand;
  using Product = MmaProduct;

  /// A mainloop is emitted up to twice: the fast path, unrolled, and the exact path, rolled, which
  /// is right for any value.
  enum class Path { Fast, Exact };

  /// Named barriers of a warp-specialised block; rings' barriers begin at FirstRing. Consumers use
  /// barrier 0 in the epilogue.
  enum NamedBarrier : unsigned {
    ProducersOnly = 1,
    BarriersAreReady = 2,
    SharedIsFree = 3,
    FirstRing = 4
  };
  /// Stages of the shared-memory ring.
  unsigned ringStages() const { return memory.stages(); }
  Value *inRing(Value *number);

  /// Consumer threads, and producer threads: one warpgroup if producers only copy.
  unsigned threads() const { return tile.threads(); }
  unsigned producerThreads() const { return hasCopyProducers() ? Wgmma::threads : threads(); }

  // DeviceContraction.cpp
  unsigned blockWorkspaceBytes() const;
  /// Blocks that combine one tile: more than one, since few tiles would leave multiprocessors idle.
  unsigned combineBlocks() const { return tile.rows / combineRows(); }
  unsigned combineRows() const; // SplitK.cpp
  unsigned combineAccumulatorsBytes() const { return combineRows() * accumulatorsPitch() * 4; }
  Value *i32(int64_t value) { return b.getInt32(value); }
  Value *i64(int64_t value) { return b.getInt64(value); }
  Value *wide(Value *value) { return b.CreateZExt(value, b.getInt64Ty()); }
  llvm::Constant *zeroAccumulator() { return llvm::Constant::getNullValue(here.accumulatorType()); }
  Value *addAccumulators(Value *x, Value *y) {
    return plan.element.isF32() ? b.CreateFAdd(x, y) : b.CreateAdd(x, y);
  }
  Value *narrow(MmaType type, const ContractionOperand &how, Value *value);
  void barrier();
  Value *ceilDiv(Value *x, Value *y);
  Product makeMmaProduct(unsigned number);
  KLoop makeKLoop(tgl::ReduceOp reduce, int64_t depth, const KOrder &order, unsigned together = 1);
  Value *stepInKLoop(const KLoop &sum, Value *number);
  /// A point of a K axis in groups of channels: its channel and tap (i64), and whether the tap
  /// exists (i1).
  struct GroupedPoint {
    Value *channel, *tap, *isTap;
  };
  GroupedPoint groupedPoint(const KOrder &order, Value *k);
  void setPoint(tgl::ReduceOp reduce, const KLoop &sum, bool collapses, Value *k);
  void note(const Product &product);
  void note(const WgmmaProduct &product);
  void chooseEpilogueColumns();
  void layOutHaloTile();
  bool usesWarpEpilogue(const Epilogue &epilogue) const;
  bool batchSharesImage() const;
  int64_t raster() const;
  void setTile(Value *number);
  unsigned accumulatorsPitch() const { return memory.accumulatorsPitch(); }
  unsigned accumulatorsBytes() const { return memory.accumulatorsBytes(); }
  void storeAccumulators(llvm::ArrayRef<Value *> accumulators, unsigned base);
  void storePair(Value *first, Value *second, Value *place);

  // SplitK.cpp
  bool usesClusterReduce() const { return memory.usesClusterReduce(); }
  void setSplit();
  void startClusterReduce();
  void clusterReduce();
  Value *receivedAddress(unsigned product, Value *slot, Value *element);
  void forFoursOfPartials(
      llvm::function_ref<void(unsigned product, Value *row, Value *column, Value *element)> body);
  void sendPartials();
  void reducePartials();
  void storePartials(Value *workspace);
  void forThreadElements(llvm::function_ref<void(unsigned number, Value *row, Value *column)> body);
  Value *partialAddress(Value *workspace, Value *blockNumber, unsigned product, Value *first,
                        unsigned number);

  // CpAsyncLoad.cpp
  struct OperandCoord {
    Value *line, *position; ///< i32: coordinates in the tile
    Value *number, *k;      ///< i64: m or n index of the statement, and k
    Value *exists;          ///< i1; null: true
  };
  bool havePositions(const Operand &operand) const;
  Value *plainWord(Value *word);
  OperandCoord coordOf(const Product &product, const Operand &operand, Value *step, Value *index);
  void forVectors(const Operand &operand, Path path, llvm::function_ref<void(Value *index)> body);
  void copyStep(Product &product, Value *step, Value *stage, Path path);
  /// The copy of one vector to shared memory; `exists` as in OperandCoord.
  struct AsyncCopy {
    Value *to, *from, *exists;
  };
  Value *addressInStage(const Operand &operand, const OperandCoord &place, Value *stage);
  AsyncCopy copyAt(const Product &product, const Operand &operand, const OperandCoord &place,
                   Value *stage);
  void emitCopy(const Operand &operand, const AsyncCopy &copy);
  struct LineAxes {
    tgl::AxesOp op;
    llvm::SmallVector<unsigned> group;
  };
  LineAxes axesOfLines(const Product &product, const Operand &operand);
  bool dividesForLines(const Product &product, const Operand &operand);
  std::optional<tgl::ValueExpr> stepOfLines(const Product &product, const Operand &operand);
  void copyLines(const Product &product, const Operand &operand, Value *step, Value *stage,
                 const tgl::ValueExpr &lineStep);
  void copyTile(Product &product, Operand &operand, Value *step, Value *stage, Path path);
  llvm::SmallVector<Value *> evaluateStep(Product &product, Value *step);
  llvm::SmallVector<Value *> evaluateTile(Product &product, Operand &operand, Value *step);
  Value *evaluateAt(const Product &product, const Operand &operand, Value *step, Value *index);
  Value *evaluate(const Product &product, const Operand &operand, const OperandCoord &place);
  void store(const Product &product, const Operand &operand, Value *index, Value *value,
             Value *stage);
  Value *valueAt(tgl::ReduceOp reduce, const KLoop &sum, const ContractionSide &side,
                 const Group &group, Value *k, Value *number);
  void storeStep(Product &product, llvm::ArrayRef<Value *> values, Value *stage);
  void evaluateToStage(Product &product, Value *step, Value *stage);
  bool evaluates(const Product &product) const;

  // MmaMainloop.cpp
  void emitCheckedMainloop(unsigned number, llvm::function_ref<void()> afterExact = nullptr);
  bool isChecked(unsigned number) const;
  Accumulators mmaMainloop(Product &product, Path path);
  Value *isAnyNotFinite(llvm::ArrayRef<Value *> accumulators, Value *orElse = nullptr);
  Value *isAny(Value *own);
  Accumulators multiplyStep(Product &product, Value *stage, llvm::ArrayRef<Value *> accumulators,
                            Path path);
  Accumulators multiplyWords(Product &product, Value *stage, Value *step,
                             llvm::ArrayRef<Value *> partial, Path path);

  // SwizzledSharedStore.cpp
  struct ChunkCoord {
    Value *line, *chunk; ///< i32: coordinates in the tile
    unsigned below;      ///< lines to add, a multiple of 8, which leaves the swizzle unchanged
  };
  Value *lineOf(const ChunkCoord &place) { return b.CreateAdd(place.line, i32(place.below)); }
  WgmmaProduct makeWgmmaProduct(unsigned number);
  ChunkCoord chunkOf(const WgmmaOperand &operand, unsigned index);
  ChunkCoord chunkInLine(unsigned perLine, unsigned index, unsigned threads);
  llvm::Type *elementOf(const WgmmaProduct &product);
  Value *existsAt(tgl::ReduceOp reduce, const KLoop &sum, Value *k);
  Value *numberOf(const WgmmaOperand &operand, Value *line, unsigned count);
  Value *loadElement(const WgmmaProduct &product, const WgmmaOperand &operand, Value *k,
                     Value *number);
  Value *readOffset(const WgmmaProduct &product, const WgmmaOperand &operand, Value *k,
                    Value *number, Value *&inside);
  Value *readAddress(const WgmmaProduct &product, const WgmmaOperand &operand, Value *k,
                     Value *number, Value *&exists);
  Value *addressAt(const WgmmaOperand &operand, Value *offset);
  Value *loadAt(const WgmmaProduct &product, const WgmmaOperand &operand, Value *place,
                Value *exists);
  Value *insert(Value *chunk, Value *values, unsigned n);
  std::optional<int64_t> stepInChunk(const WgmmaProduct &product, const WgmmaOperand &operand);
  Value *loadSteps(const WgmmaProduct &product, const WgmmaOperand &operand, Value *k,
                   Value *number, int64_t step);
  Value *loadChunkAt(const WgmmaProduct &product, const WgmmaOperand &operand, Value *k,
                     Value *number);
  Value *loadChunk(const WgmmaProduct &product, const WgmmaOperand &operand, Value *step,
                   unsigned index);
  std::array<Value *, 2> splitChunk(Value *chunk, Value *scale, unsigned terms);
  static unsigned chunksOfStage(const WgmmaProduct &product);
  llvm::SmallVector<Value *> loadChunks(const WgmmaProduct &product, Value *step);
  void storeChunks(const WgmmaProduct &product, llvm::ArrayRef<Value *> chunks,
                   llvm::ArrayRef<Value *> scales, Value *stage);
  Value *copyAddress(const WgmmaProduct &product, const WgmmaOperand &operand, Value *k,
                     Value *line, unsigned count, Value *&exists);
  void copyChunks(const WgmmaProduct &product, Value *step, Value *stage);

  Value *stageAddress(const WgmmaProduct &product, Value *number);
  Value *followingStage(Value *number, unsigned by);
  llvm::SmallVector<Value *> loadNext(const WgmmaProduct &product, Value *number);

  // WgmmaMainloop.cpp
  bool usesWgmma() const { return memory.usesWgmma(); }
  Wgmma wgmmaFor(const WgmmaProduct &product);
  /// Issues the MMAs of one stage, for all columns of the warpgroup or for `columns` from
  /// `firstColumn` on.
  Accumulators multiplyTerms(const WgmmaProduct &product, Value *stage,
                             llvm::ArrayRef<Value *> accumulators);
  Accumulators multiplyTerms(const WgmmaProduct &product, Value *stage,
                             llvm::ArrayRef<Value *> accumulators, unsigned firstColumn,
                             unsigned columns);
  /// Calls `multiply` for each pair of terms whose product is not negligible.
  static void forTermPairs(const WgmmaProduct &product,
                           llvm::function_ref<void(unsigned aTerm, unsigned bTerm)> multiply);
  Accumulators wgmmaMainloop(const WgmmaProduct &product);
  void storeWgmmaAccumulators(llvm::ArrayRef<Value *> accumulators, unsigned base);

  // WarpSpecialization.cpp
  bool isWarpSpecialized() const { return memory.isWarpSpecialized(); }
  /// Whether operands are f32 in split precision: scaled sums of 16-bit terms.
  bool usesSplitPrecision() const { return products.front().type == MmaType::TF32; }
  bool areBytes() const { return isBytes(products.front().type); }
  /// Whether producers only copy.
  bool hasCopyProducers() const {
    return isWarpSpecialized() && (isPrepacked() || areBytes() || usesTma());
  }
  unsigned barrierThreads() const;
  void runProducers(llvm::function_ref<void()> body);
  void startWarpSpecialization();
  Value *numStages(const WgmmaProduct &product);
  Value *stageNumber(const WgmmaProduct &product, Value *number);
  void produce(const WgmmaProduct &product);
  unsigned shortTileStages(const WgmmaProduct &product);
  bool hasShortTiles(const WgmmaProduct &product) {
    return !hasCopyProducers() && shortTileStages(product);
  }
  void storeShortTile(const WgmmaProduct &product, unsigned count, llvm::ArrayRef<Value *> loaded,
                      llvm::function_ref<void(unsigned number)> afterStage);
  void produceShortTile(const WgmmaProduct &product, unsigned count,
                        llvm::ArrayRef<Value *> loaded);
  Accumulators consume(const WgmmaProduct &product, AccuracyFlags &flags);
  bool hasRoomForStages(const WgmmaProduct &product);
  Accumulators wgmmaMainloopBySteps(const WgmmaProduct &product);
  Accumulators wgmmaMainloopByStages(const WgmmaProduct &product);
  Accumulators byteMainloop(const WgmmaProduct &product);
  void release(const WgmmaProduct &product, Value *number);
  void arriveAt(Value *number);
  void waitAt(Value *number);
  bool signalsPerWarpgroup() const { return products.front().type == MmaType::F8; }
  void makeRings();
  Value *awaitStage(const WgmmaProduct &product, Value *number);
  Accumulators forStages(const WgmmaProduct &product, Accumulators accumulators,
                         llvm::function_ref<Accumulators(Value *number, Value *stage,
                                                         llvm::ArrayRef<Value *> accumulators)>
                             body);
  void releaseProducers();
  enum class LineValue : unsigned { Maximum, InverseScale };
  Value *lineScaleWord(Value *number);
  Value *lineScaleAddress(LineValue which, Value *line);
  Value *largestOf(Value *chunk);
  void forThreadLines(const WgmmaProduct &product, llvm::function_ref<void(Value *line)> body);
  /// Scaling puts the largest element of a line's first step below 2^10: what is 64 times as large
  /// fits, and little is lost. An image has far more elements than are looked at: of those of a
  /// softmax some are 64 times as large.
  static constexpr int lineExponent = 9, sampledExponent = 5;
  Value *scaleOf(Value *maximum, bool isInverse, int scaledExponent = lineExponent);
  llvm::SmallVector<Value *> findScales(const WgmmaProduct &product,
                                        llvm::ArrayRef<Value *> chunks);
  void noteLargest(Value *largest, Value *least, Value *value);

  // AccuracyCheck.cpp
  Value *keepNonZero(Value *chunk, Value *scale, Value *words);
  Value *smallestSum(const WgmmaProduct &product);
  /// Magnitudes of a thread's accumulators, as i16 keys in which 0 is the largest: the smallest of
  /// all, of each four, and of neighbourhoods (by their largest element), and the largest of all.
  struct AccumulatorSizes {
    Value *least, *minOfNeighbourhoods, *largest;
    llvm::SmallVector<Value *> ofFours;
  };
  AccumulatorSizes sizesOf(llvm::ArrayRef<Value *> accumulators, TileCoord first);
  AccuracyFlags flagInaccurate(const WgmmaProduct &product, llvm::ArrayRef<Value *> accumulators);
  Value *inverseScale(Value *largest, Value *least, int scaledExponent = lineExponent);
  Value *hasWideLine(const WgmmaProduct &product, TileCoord place, unsigned numAccumulators);
  std::array<Value *, 2> masksOfRows(Value *row);
  std::array<Value *, 4> recomputeFour(WgmmaProduct product, llvm::ArrayRef<Value *> rows,
                                       llvm::ArrayRef<Value *> columns);
  void recomputeFlagged(const WgmmaProduct &product, const AccuracyFlags &flags, unsigned base);

  // PersistentScheduler.cpp
  bool isPersistent() const { return memory.isPersistent(); }
  IndexExpr persistentBlocks() const;
  unsigned flaggedTilesBase() const;
  Value *flaggedTilesWord(Value *which);
  bool tileNumbersFit32Bit() const;
  Value *numTilesOfBlock();
  void setTileOfBlock(Value *which);
  void setStages(WgmmaProduct &product, Value *which);
  void withRecomputedIndices(llvm::function_ref<void()> body);
  void producePersistentTiles();
  bool hasOneTile(const Group &group) const;
  WgmmaProduct setMovingTile(Value *which);
  void produceShortTiles(unsigned count);
  void emitPersistentTiles();

  // SplitKTail.cpp
  /// How persistent blocks share the last wave: blocks, whole tiles of each, remaining tiles,
  /// stages of a tile, K slices of a tile.
  struct SplitKTail {
    int64_t blocks, whole, tiles, stages, slices;
  };
  /// The K slice of a block in a remaining tile: first stage, distance to its next one, number of
  /// stages (i64).
  struct TailSlice {
    Value *first, *step, *stages;
  };
  std::optional<SplitKTail> splitKTail() const;
  IndexExpr splitKTailBytes() const;
  Value *hasTailSlice(const SplitKTail &tail);
  Value *stagesOfSlice(const SplitKTail &tail, Value *number);
  Value *numTilesOfBlock(const SplitKTail &tail);
  void setTileOfBlock(const SplitKTail &tail, Value *which);
  Value *numStagesOfBlock(const SplitKTail &tail);
  void storeTailSlice(const SplitKTail &tail, llvm::ArrayRef<Value *> accumulators);

  // PrepackOperands.cpp
  /// Location of a prepacked operand in the workspace.
  struct PrepackedOperand {
    IndexExpr terms, scales; ///< byte offsets in the workspace
    IndexExpr tiles;         ///< tiles of a batch point
    IndexExpr stages;        ///< stages of a tile
    IndexExpr blocks;        ///< blocks that prepack it
    mlir::Value
        matrix; ///< the matrix that data chooses for a batch point; null: each point has its own
  };
  Value *prepackedTermsAt(const WgmmaOperand &operand, const PrepackedOperand &side);
  std::vector<PrepackedOperand> prepackedOperands(IndexExpr &bytes) const;
  IndexExpr prepackedBytes() const;
  void prepackLines(const WgmmaProduct &product, WgmmaOperand operand, const PrepackedOperand &side,
                    Value *number);
  Value *prepackedTermsOf(const WgmmaOperand &operand, const PrepackedOperand &side, Value *stage);
  Value *scaleAddress(const WgmmaProduct &product, const WgmmaOperand &operand,
                      const PrepackedOperand &side, Value *line);
  void copyPrepacked(const WgmmaProduct &product, Value *number, Value *stage);
  void copyLines(const WgmmaOperand &operand, const PrepackedOperand &side, Value *number,
                 Value *stage);
  /// Stages that a producer keeps in flight while it waits for an empty one. Consumers hold one
  /// stage while they begin the next.
  unsigned copiesAhead() const { return std::min(2u, ringStages() - 2); }
  llvm::SmallVector<Value *> noCopies();
  llvm::SmallVector<Value *> produceCopies(const WgmmaProduct &product,
                                           llvm::ArrayRef<Value *> before);
  void endCopies(const WgmmaProduct &product, Value *total);
  Value *scaleOfLine(const WgmmaProduct &product, Value *line);
  void loadScales(const WgmmaProduct &product);
  void unscale(const WgmmaProduct &product, llvm::MutableArrayRef<Value *> accumulators);

  // BulkLoad.cpp
  bool usesBulkLoads() const;
  void initStageBarriers();
  void loadBulk(Value *to, Value *from, unsigned bytes, Value *barrier);
  void produceBulkLoads(const WgmmaProduct &product);

  // TmaDescriptors.cpp
  IndexExpr tmaDescriptorsBytes() const;
  void makeTmaDescriptors();
  Value *tmaDescriptorOf(const WgmmaProduct &product, const WgmmaOperand &operand);
  static std::array<unsigned, 2> tmaBoxOf(const WgmmaOperand &operand);
  void makeTmaDescriptor(const WgmmaProduct &product, const WgmmaOperand &operand);
  void acquireTmaDescriptors();
  void loadTma(const WgmmaOperand &operand, Value *map, Value *k, Value *stage, Value *barrier);

  // PrologueLoads.cpp
  unsigned numPrologueStages();
  void skipPrologueStages();
  void issuePrologueLoads();
  llvm::SmallVector<Value *> awaitPrologueLoad(Value *number, llvm::ArrayRef<Value *> copies);

  // PrepackWindows.cpp
  int64_t blocksOfImage(const WindowOperand &window, int64_t pixels) const;
  void prepackPixels(const WgmmaProduct &product, const WgmmaOperand &operand,
                     const PrepackedOperand &side, Value *number);
  void copyWindows(const WgmmaProduct &product, const WgmmaOperand &operand,
                   const PrepackedOperand &side, Value *number, Value *stage);
  Value *imageOf(const WgmmaProduct &product, const WgmmaOperand &operand, Value *number);

  // HaloTile.cpp
  static constexpr unsigned haloBuffers = 2; ///< halo tiles in shared memory (double buffering)
  bool usesHaloTile() const { return halo.has_value(); }
  const KOrder &groupOrder() const { return prepacked.front().order; }
  unsigned termsOfStep() const;
  unsigned haloBytes() const;
  /// Bytes of a ring that holds operand A only.
  unsigned ringRowsBytes() const { return tile.rows * WgmmaSharedLayout::lineBytes * ringStages(); }
  HaloLayout haloLayout() const;
  Value *haloAddress(Value *number);
  void loadHalo(const WgmmaProduct &product, const PrepackedOperand &side, Value *group);
  Value *groupNumber(const WgmmaProduct &product, Value *group);
  Value *paddedOffset(const WindowOperand &window, tgl::TglTensorType type, Value *pixel,
                      Value *&exists);
  unsigned offsetOfChunk(unsigned chunk) const;
  Value *tapOffsetsAt(Value *step);
  unsigned tapOffsetsBytes() const;
  void storeTapOffsets();
  Accumulators multiplyHalo(const WgmmaProduct &product, Value *inBlock, Value *haloBuffer,
                            Value *inGroup, llvm::ArrayRef<Value *> accumulators);
  Accumulators haloMainloop(const WgmmaProduct &product);

  Emitter &e;
  llvm::IRBuilder<> &b;
  const ContractionPlan &plan;
  TensorTile tile;
  std::optional<TileRange> range;
  llvm::SmallVector<ProductOperands> products;
  std::map<unsigned, ProductOperands>
      evaluatedOperands;                   ///< by product: operands that are evaluated, not copied
  std::vector<PrepackedProduct> prepacked; ///< by product, if operands are prepacked
  std::optional<HaloTile> halo;            ///< halo tile of operand B of the only product
  tgl::AxesOp axes;
  Value *split = nullptr;        // i64
  Value *partialIndex = nullptr; // i64: index of the block's partial sums among those of all tiles
  std::optional<TailSlice> tailSlice; // the block's K slice, if the last wave is split
  Value *batch = nullptr;             // i64: index of the tile's batch point
  Value *prepackedBase = nullptr;     // address of the prepacked operands
  mlir::Value matrixToPrepack;        // the chosen matrix whose index is set, not read
  unsigned rowBlocks, columnBlocks;   // fragments of 16 in the tile of a warp
  TileMemory memory;
  BlockTile here; ///< the tile and threads that the current code is for
  std::vector<ProductLayout> noted;
  llvm::SmallVector<Value *> rings;         ///< by product, in a warp-specialised block
  Value *haloRing = nullptr;                ///< ring of the halo tiles
  llvm::SmallVector<Value *> prologueLoads; ///< copies in flight at the start of a block, one for
                                            ///< each stage that consumers load
  bool flagsPerThread = false;              // threads flag tiles without a vote of the block
  unsigned consumerBarrier = 0; // named barrier of the threads that the current code is for
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_DEVICECONTRACTION_H
