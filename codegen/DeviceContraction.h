//===- DeviceContraction.h - Matrix products on tensor cores ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A statement with a tile (passes/TensorTile.h) as device code. A block of threads computes one tile
// of the result for each point of the batch axes:
//
//   for each product of the statement
//     for each 128 bytes of the sum
//       wait for this step's tiles of both operands in shared memory; start copying those of a later
//         step; evaluate elements of the next one that cannot be copied into registers
//       products of fragments by mma.sync, sums in registers
//       evaluated elements to shared memory
//   the sums to shared memory; the rest of the statement at every element of the tile
//
// Operands are evaluated at any point, so that a convolution is a matrix product without a matrix being
// made of its windows. What lies outside of the operands is 0 in shared memory.
//
// Values of f32 keep their accuracy: each is the sum of two numbers of TF32 of which all products but that
// of the small ones are added up; tensor cores truncate what they add up, so sums are kept for one step
// alone and added to f32 sums in registers. A tile with a result that is not finite is computed again with care.
//
// Where the tile says so and the machine has them (sm_90a), warpgroups multiply instead: both operands are
// 16-bit numbers in shared memory, f32 values as the sum of two of f16, scaled by a power of two for each row
// and column (PlaneStaging.cpp, WarpgroupSums.cpp; for f32 WarpgroupRoles.cpp), or bytes (ByteSums.cpp). Where many
// tiles use them a launch before makes these planes (PackedPlanes.cpp); of windows a tile may have one copy for all
// their taps (ShiftedWindows.cpp). One thread brings what lies in memory as it should (BulkCopies.cpp, TensorMaps.cpp;
// at first all do, FirstStages.cpp).
// Blocks with roles stay for several tiles (PersistentTiles.cpp), and share those that are left over (TailTiles.cpp).
// What becomes of sums is another class's concern (TileRest.h).
//
// Where a tile's sum is split, blocks that find room as a cluster send each other their sums; else they leave them in the
// workspace and a second function adds them up in order (SplitSums.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_DEVICECONTRACTION_H
#define TEGULA_CODEGEN_DEVICECONTRACTION_H

#include "codegen/BlockTile.h"
#include "codegen/TileLayout.h"
#include "codegen/TileRest.h"
#include "codegen/async/Async.h"
#include "passes/WindowOperand.h"
#include <array>

namespace tegula {

/// Owns how a statement's products are made with a tile, and which tile the code being emitted is for.
class DeviceContraction {
public:
  /// Consecutive tiles of a statement.
  struct TileRange {
    int64_t first, count;
  };
  /// `range`: of all the statement's; null: all.
  DeviceContraction(Emitter &emitter, const ContractionPlan &plan, const TensorTile &tile,
                    llvm::ArrayRef<ProductOperands> products, std::optional<TileRange> range = std::nullopt);

  /// Tiles of the statement: blocks, for one part of the sums.
  IndexExpr numTiles() const;
  /// Those that emitTile is for.
  IndexExpr numBlocks() const;
  /// Those that emitCombine is for.
  IndexExpr numCombineBlocks() const { return numTiles() * int64_t(combineBlocks()); }
  unsigned combineSharedBytes() const { return products.size() * combineSumsBytes(); }
  /// Those of a block.
  unsigned blockThreads() const { return threads() + (hasRoles() ? stagers() : 0); }
  unsigned sharedBytes() const { return memory.sharedBytes(); }
  /// Those that start together.
  unsigned cluster() const { return sharesSums() ? tile.splits : 1; }
  /// Whether emitTile leaves sums for emitCombine.
  bool leavesSums() const { return tile.splits > 1 && !sharesSums(); }
  /// What emitTile leaves for a launch of its own: tiles, and how their sums are split.
  struct LeftTiles {
    TensorTile tile;
    TileRange range;
  };
  std::optional<LeftTiles> leftTiles() const;
  /// Planes of operands, and what blocks leave for each other.
  IndexExpr workspaceBytes() const;
  /// Tiles are not for kernels where this is more than BlockTile::mostNumbers.
  IndexExpr largestNumber() const;
  /// Tensors whose address must be a multiple of 16 bytes.
  llvm::SmallVector<mlir::Value> alignedTensors() const;

  /// Whether a launch before makes planes of the operands (PackedPlanes.cpp), or maps (TensorMaps.cpp, by one block).
  bool isPacked() const { return memory.isPacked(); }
  bool isMapped() const { return memory.isMapped(); }
  /// Whether a block makes the maps that it needs.
  bool makesOwnMaps() const { return isMapped() && isPersistent(); }
  IndexExpr packBlocks() const;
  unsigned packThreads() const { return threads(); }
  static unsigned packSharedBytes();
  void emitPack(llvm::Value *workspace);
  static unsigned mapThreads() { return 32; }
  void emitMaps(llvm::Value *workspace);

  /// The whole of a block's work; with splits, up to its sums in `workspace`, and the rest from the sums of all blocks.
  void emitTile(llvm::Value *workspace);
  void emitCombine(llvm::Value *workspace);
  /// What emitTile emitted.
  TileLayout layout(llvm::StringRef function) const;

private:
  using Value = llvm::Value;
  using Sums = llvm::SmallVector<Value *>;

  using Group = TileGroup;
  /// What a thread knows of its sums.
  struct Doubts {
    Value *isUnsafe = nullptr; ///< a bit, the same for all who multiply: sums are not to be used; null: they are
    Value *lone = nullptr;     ///< i32: a bit for each four sums: some of these alone are not to be used (LostBits.cpp)
    Value *numLone = nullptr;  ///< i32: how many of the warp's are to be added up again by themselves
  };

  using Sum = TileSum;
  using Operand = TileOperand;
  using Product = TileProduct;

  /// A tile's sums are emitted up to twice: quick code, spread out, and short code, loops, that takes any value.
  enum class Code { Quick, Careful };

  /// Barriers of a block with roles by number, the first one of rings; 0 is of those who do the rest.
  enum RolesBarrier : unsigned { Producers = 1, Ready = 2, Again = 3, Full = 4 };
  /// Of warpgroups.
  unsigned ringStages() const { return memory.stages(); }
  Value *inRing(Value *number);

  /// Those that multiply, and those that bring operands: where copies are all that there is to do, one warpgroup.
  unsigned threads() const { return tile.threads(); }
  unsigned stagers() const { return hasCopiers() ? Warpgroup::threads : threads(); }

  // DeviceContraction.cpp
  unsigned blockWorkspaceBytes() const;
  /// That add up one tile's parts: few tiles leave most multiprocessors idle.
  unsigned combineBlocks() const { return tile.rows / combineRows(); }
  unsigned combineRows() const; // SplitSums.cpp
  unsigned combineSumsBytes() const { return combineRows() * sumsPitch() * 4; }
  Value *i32(int64_t value) { return b.getInt32(value); }
  Value *i64(int64_t value) { return b.getInt64(value); }
  Value *wide(Value *value) { return b.CreateZExt(value, b.getInt64Ty()); }
  llvm::Constant *zeroSum() { return llvm::Constant::getNullValue(here.sumType()); }
  Value *addSums(Value *x, Value *y) { return plan.element.isF32() ? b.CreateFAdd(x, y) : b.CreateAdd(x, y); }
  Value *narrow(Multiplicand type, const ContractionOperand &how, Value *value);
  void barrier();
  Value *ceilDiv(Value *x, Value *y);
  Product makeProduct(unsigned number);
  Sum makeSum(tgl::ReduceOp reduce, int64_t depth, const SumOrder &order, unsigned together = 1);
  Value *stepInSum(const Sum &sum, Value *number);
  /// Point `k` of a sum by groups: its channel, the number of its tap, and whether it has one (i64, i1).
  struct GroupedPoint {
    Value *channel, *tap, *isTap;
  };
  GroupedPoint groupedPoint(const SumOrder &order, Value *k);
  void setPoint(tgl::ReduceOp reduce, const Sum &sum, bool collapses, Value *k);
  void note(const Product &product);
  void note(const PlaneProduct &product);
  void placeByParts();
  void placeShifted();
  bool restsByWarps(const TileRest &rest) const;
  bool batchSharesImage() const;
  int64_t raster() const;
  void setTile(Value *number);
  unsigned sumsPitch() const { return memory.sumsPitch(); }
  unsigned sumsBytes() const { return memory.sumsBytes(); }
  void storeSums(llvm::ArrayRef<Value *> sums, unsigned base);
  void storePair(Value *first, Value *second, Value *place);

  // SplitSums.cpp
  bool sharesSums() const { return memory.isSharing(); }
  void setPart();
  void startSharing();
  void shareSums();
  Value *receivedPlace(unsigned product, Value *slot, Value *element);
  void forFoursOfShare(llvm::function_ref<void(unsigned product, Value *row, Value *column, Value *element)> body);
  void sendShares();
  void addUpShare();
  void leaveSums(Value *workspace);
  void forOwnElements(llvm::function_ref<void(unsigned number, Value *row, Value *column)> body);
  Value *partialSum(Value *workspace, Value *blockNumber, unsigned product, Value *first, unsigned number);

  // TileStaging.cpp
  struct Place {
    Value *line, *position; ///< i32, in the tile
    Value *number, *k;      ///< i64: row or column of the statement, point of the sum
    Value *exists;          ///< null: always
  };
  bool havePositions(const Operand &operand) const;
  Value *plainWord(Value *word);
  Place placeOf(const Product &product, const Operand &operand, Value *step, Value *index);
  void forVectors(const Operand &operand, Code code, llvm::function_ref<void(Value *index)> body);
  void copyStep(Product &product, Value *step, Value *stage, Code code);
  /// Of a vector to shared memory; `exists` as in Place.
  struct Copy {
    Value *to, *from, *exists;
  };
  Value *placeInStage(const Operand &operand, const Place &place, Value *stage);
  Copy copyAt(const Product &product, const Operand &operand, const Place &place, Value *stage);
  void emitCopy(const Operand &operand, const Copy &copy);
  struct LineAxes {
    tgl::AxesOp op;
    llvm::SmallVector<unsigned> group;
  };
  LineAxes axesOfLines(const Product &product, const Operand &operand);
  bool dividesForLines(const Product &product, const Operand &operand);
  std::optional<tgl::ValueExpr> stepOfLines(const Product &product, const Operand &operand);
  void copyLines(const Product &product, const Operand &operand, Value *step, Value *stage,
                 const tgl::ValueExpr &lineStep);
  void copyTile(Product &product, Operand &operand, Value *step, Value *stage, Code code);
  llvm::SmallVector<Value *> evaluateStep(Product &product, Value *step);
  llvm::SmallVector<Value *> evaluateTile(Product &product, Operand &operand, Value *step);
  Value *evaluateAt(const Product &product, const Operand &operand, Value *step, Value *index);
  Value *evaluate(const Product &product, const Operand &operand, const Place &place);
  void store(const Product &product, const Operand &operand, Value *index, Value *value, Value *stage);
  Value *valueAt(tgl::ReduceOp reduce, const Sum &sum, const ContractionSide &side, const Group &group, Value *k,
                 Value *number);
  void storeStep(Product &product, llvm::ArrayRef<Value *> values, Value *stage);
  void evaluateToStage(Product &product, Value *step, Value *stage);
  bool evaluates(const Product &product) const;

  // TileSums.cpp
  void sumUpSafely(unsigned number, llvm::function_ref<void()> afterCareful = nullptr);
  bool isChecked(unsigned number) const;
  Sums sumUp(Product &product, Code code);
  Value *isAnyNotFinite(llvm::ArrayRef<Value *> sums, Value *orElse = nullptr);
  Value *isAny(Value *own);
  Sums multiplyStep(Product &product, Value *stage, llvm::ArrayRef<Value *> sums, Code code);
  Sums multiplyWords(Product &product, Value *stage, Value *step, llvm::ArrayRef<Value *> partial, Code code);

  // PlaneStaging.cpp
  struct UnitPlace {
    Value *line, *unit; ///< i32, in the tile
    unsigned below;     ///< lines further, a multiple of 8: they are exchanged alike
  };
  Value *lineOf(const UnitPlace &place) { return b.CreateAdd(place.line, i32(place.below)); }
  PlaneProduct makePlaneProduct(unsigned number);
  UnitPlace unitOf(const PlaneOperand &operand, unsigned index);
  UnitPlace unitInLine(unsigned perLine, unsigned index, unsigned threads);
  llvm::Type *elementOf(const PlaneProduct &product);
  Value *existsAt(tgl::ReduceOp reduce, const Sum &sum, Value *k);
  Value *numberOf(const PlaneOperand &operand, Value *line, unsigned count);
  Value *loadElement(const PlaneProduct &product, const PlaneOperand &operand, Value *k, Value *number);
  Value *readOffset(const PlaneProduct &product, const PlaneOperand &operand, Value *k, Value *number, Value *&inside);
  Value *readPlace(const PlaneProduct &product, const PlaneOperand &operand, Value *k, Value *number, Value *&exists);
  Value *placeAt(const PlaneOperand &operand, Value *offset);
  Value *loadAt(const PlaneProduct &product, const PlaneOperand &operand, Value *place, Value *exists);
  Value *insert(Value *unit, Value *values, unsigned n);
  std::optional<int64_t> stepInUnit(const PlaneProduct &product, const PlaneOperand &operand);
  Value *loadSteps(const PlaneProduct &product, const PlaneOperand &operand, Value *k, Value *number, int64_t step);
  Value *loadUnitAt(const PlaneProduct &product, const PlaneOperand &operand, Value *k, Value *number);
  Value *loadUnit(const PlaneProduct &product, const PlaneOperand &operand, Value *step, unsigned index);
  std::array<Value *, 2> splitUnit(Value *unit, Value *scale, unsigned planes);
  static unsigned unitsOfStage(const PlaneProduct &product);
  llvm::SmallVector<Value *> loadUnits(const PlaneProduct &product, Value *step);
  void storeUnits(const PlaneProduct &product, llvm::ArrayRef<Value *> units, llvm::ArrayRef<Value *> scales,
                  Value *stage);
  Value *copiedPlace(const PlaneProduct &product, const PlaneOperand &operand, Value *k, Value *line, unsigned count,
                     Value *&exists);
  void copyUnits(const PlaneProduct &product, Value *step, Value *stage);

  Value *planeStage(const PlaneProduct &product, Value *number);
  Value *followingStage(Value *number, unsigned by);
  llvm::SmallVector<Value *> loadNext(const PlaneProduct &product, Value *number);

  // WarpgroupSums.cpp
  bool byWarpgroups() const { return memory.byWarpgroups(); }
  Warpgroup warpgroupOf(const PlaneProduct &product);
  /// Of all columns of a warpgroup, or of `columns` from `firstColumn` on.
  Sums multiplyPlanes(const PlaneProduct &product, Value *stage, llvm::ArrayRef<Value *> sums);
  Sums multiplyPlanes(const PlaneProduct &product, Value *stage, llvm::ArrayRef<Value *> sums, unsigned firstColumn,
                      unsigned columns);
  /// `multiply` for each pair of planes whose product counts.
  static void forPlanes(const PlaneProduct &product,
                        llvm::function_ref<void(unsigned rowPlane, unsigned columnPlane)> multiply);
  Sums sumUpByWarpgroups(const PlaneProduct &product);
  void storeGroupSums(llvm::ArrayRef<Value *> sums, unsigned base);

  // WarpgroupRoles.cpp
  bool hasRoles() const { return memory.hasRoles(); }
  /// Whether a value is the sum of numbers that are multiplied, each times a scale; else it is one itself.
  bool isSplit() const { return products.front().type == Multiplicand::TF32; }
  bool areBytes() const { return isBytes(products.front().type); }
  /// Whether producers only copy.
  bool hasCopiers() const { return hasRoles() && (isPacked() || areBytes() || isMapped()); }
  unsigned barrierThreads() const;
  void splitOff(llvm::function_ref<void()> body);
  void startRoles();
  Value *numStages(const PlaneProduct &product);
  Value *stageNumber(const PlaneProduct &product, Value *number);
  void produce(const PlaneProduct &product);
  unsigned fewStages(const PlaneProduct &product);
  bool storesFew(const PlaneProduct &product) { return !hasCopiers() && fewStages(product); }
  void storeFew(const PlaneProduct &product, unsigned count, llvm::ArrayRef<Value *> loaded,
                llvm::function_ref<void(unsigned number)> afterStage);
  void produceFew(const PlaneProduct &product, unsigned count, llvm::ArrayRef<Value *> loaded);
  Sums consume(const PlaneProduct &product, Doubts &doubts);
  bool hasRoomForStages(const PlaneProduct &product);
  Sums sumUpSteps(const PlaneProduct &product);
  Sums sumUpStages(const PlaneProduct &product);
  Sums sumUpBytes(const PlaneProduct &product);
  void release(const PlaneProduct &product, Value *number);
  void arriveAt(Value *number);
  void waitAt(Value *number);
  bool tellsOneByOne() const { return products.front().type == Multiplicand::F8; }
  void makeRings();
  Value *awaitStage(const PlaneProduct &product, Value *number);
  Sums forStages(const PlaneProduct &product, Sums sums,
                 llvm::function_ref<Sums(Value *number, Value *stage, llvm::ArrayRef<Value *> sums)> body);
  void letProducersGoOn();
  enum class LineValue : unsigned { Maximum, InverseScale };
  Value *lineWord(Value *number);
  Value *ofLine(LineValue which, Value *line);
  Value *largestOf(Value *unit);
  void forOwnLines(const PlaneProduct &product, llvm::function_ref<void(Value *line)> body);
  /// Scaling puts the largest element of a line's first step below 2^10: what is 64 times as large fits, and little is lost. An
  /// image has far more elements than are looked at: of those of a softmax some are 64 times as large.
  static constexpr int lineExponent = 9, sampledExponent = 5;
  Value *scaleOf(Value *maximum, bool isInverse, int scaledExponent = lineExponent);
  llvm::SmallVector<Value *> findScales(const PlaneProduct &product, llvm::ArrayRef<Value *> units);
  void noteLargest(Value *largest, Value *least, Value *value);

  // LostBits.cpp
  Value *keepUnit(Value *unit, Value *scale, Value *words);
  Value *smallestSum(const PlaneProduct &product);
  /// Sizes of a thread's sums, 0 being the largest number: the least of all, of each four, and of neighbourhoods, of which the largest
  /// counts; the largest of all (i16; of fours two, of a column each).
  struct SumSizes {
    Value *least, *leastTogether, *largest;
    llvm::SmallVector<Value *> ofFours;
  };
  SumSizes sizesOf(llvm::ArrayRef<Value *> sums, TilePlace first);
  Doubts findDoubts(const PlaneProduct &product, llvm::ArrayRef<Value *> sums);
  Value *inverseScale(Value *largest, Value *least, int scaledExponent = lineExponent);
  Value *hasWideLine(const PlaneProduct &product, TilePlace place, unsigned numSums);
  std::array<Value *, 2> masksOfRows(Value *row);
  std::array<Value *, 4> sumUpFour(PlaneProduct product, llvm::ArrayRef<Value *> rows, llvm::ArrayRef<Value *> columns);
  void mendLoneSums(const PlaneProduct &product, const Doubts &doubts, unsigned base);

  // PersistentTiles.cpp
  bool isPersistent() const { return memory.isPersistent(); }
  IndexExpr persistentBlocks() const;
  unsigned maskBase() const;
  Value *maskWord(Value *which);
  bool hasShortTileNumbers() const;
  Value *numOwnTiles();
  void setOwnTile(Value *which);
  void setStages(PlaneProduct &product, Value *which);
  void forItself(llvm::function_ref<void()> body);
  void produceOwnTiles();
  bool hasOneTile(const Group &group) const;
  PlaneProduct setMovingTile(Value *which);
  void produceShortTiles(unsigned count);
  void emitOwnTiles();

  // TailTiles.cpp
  /// Of blocks that stay: whole tiles of each, the tiles that are left, a tile's stages, and the parts that its sum is made in.
  struct Tail {
    int64_t blocks, whole, tiles, stages, parts;
  };
  /// Of a tile's stages those of the block: the first, how far the next is, how many; i64.
  struct OwnPart {
    Value *first, *step, *stages;
  };
  std::optional<Tail> tail() const;
  IndexExpr tailBytes() const;
  Value *hasPart(const Tail &left);
  Value *stagesOfPart(const Tail &left, Value *number);
  Value *numOwnTiles(const Tail &left);
  void setOwnTile(const Tail &left, Value *which);
  Value *numOwnStages(const Tail &left);
  void leavePart(const Tail &left, llvm::ArrayRef<Value *> sums);

  // PackedPlanes.cpp
  /// Where a side of a product lies in the workspace.
  struct PackedSide {
    IndexExpr planes, scales; ///< bytes from its start
    IndexExpr tiles;          ///< of a batch point
    IndexExpr stages;         ///< of a tile
    IndexExpr blocks;         ///< that make it
    mlir::Value matrix;       ///< of which it has the planes, where data chooses one for a batch point; null: each has its own
  };
  Value *planeSet(const PlaneOperand &operand, const PackedSide &side);
  std::vector<PackedSide> packedSides(IndexExpr &bytes) const;
  IndexExpr packedBytes() const;
  void packLines(const PlaneProduct &product, PlaneOperand operand, const PackedSide &side, Value *number);
  Value *planesOf(const PlaneOperand &operand, const PackedSide &side, Value *stage);
  Value *scalePlace(const PlaneProduct &product, const PlaneOperand &operand, const PackedSide &side, Value *line);
  void copyPacked(const PlaneProduct &product, Value *number, Value *stage);
  void copyLines(const PlaneOperand &operand, const PackedSide &side, Value *number, Value *stage);
  /// Stages whose copies are under way when a producer waits for the next one to be empty: consumers keep one back while
  /// they begin another.
  unsigned copiesAhead() const { return std::min(2u, ringStages() - 2); }
  llvm::SmallVector<Value *> noCopies();
  llvm::SmallVector<Value *> produceCopies(const PlaneProduct &product, llvm::ArrayRef<Value *> before);
  void endCopies(const PlaneProduct &product, Value *total);
  Value *scaleOfLine(const PlaneProduct &product, Value *line);
  void loadScales(const PlaneProduct &product);
  void unscale(const PlaneProduct &product, llvm::MutableArrayRef<Value *> sums);

  // BulkCopies.cpp
  bool copiesInBulk() const;
  void initStageBarriers();
  void copyBulk(Value *to, Value *from, unsigned bytes, Value *barrier);
  void produceInBulk(const PlaneProduct &product);

  // TensorMaps.cpp
  IndexExpr mapsBytes() const;
  void makeMaps();
  Value *mapOf(const PlaneProduct &product, const PlaneOperand &operand);
  static std::array<unsigned, 2> boxOf(const PlaneOperand &operand);
  void makeMap(const PlaneProduct &product, const PlaneOperand &operand);
  void acquireMaps();
  void copyBoxes(const PlaneOperand &operand, Value *map, Value *k, Value *stage, Value *barrier);

  // FirstStages.cpp
  unsigned numFirstStages();
  void leaveFirstStages();
  void copyFirstStages();
  llvm::SmallVector<Value *> awaitFirstStage(Value *number, llvm::ArrayRef<Value *> copies);

  // PackedWindows.cpp
  int64_t blocksOfImage(const WindowOperand &window, int64_t pixels) const;
  void packPixels(const PlaneProduct &product, const PlaneOperand &operand, const PackedSide &side, Value *number);
  void copyWindows(const PlaneProduct &product, const PlaneOperand &operand, const PackedSide &side, Value *number,
                   Value *stage);
  Value *imageOf(const PlaneProduct &product, const PlaneOperand &operand, Value *number);

  // ShiftedWindows.cpp
  static constexpr unsigned patches = 2; ///< in shared memory
  bool isShifted() const { return shifted.has_value(); }
  const SumOrder &groupOrder() const { return packs.front().order; }
  unsigned stepPlanes() const;
  unsigned patchBytes() const;
  /// Of the ring where it holds rows alone.
  unsigned ringRowsBytes() const { return tile.rows * PlaneTile::lineBytes * ringStages(); }
  PatchLayout patchLayout() const;
  Value *patchAt(Value *number);
  void copyPatch(const PlaneProduct &product, const PackedSide &side, Value *group);
  Value *groupNumber(const PlaneProduct &product, Value *group);
  Value *paddedOffset(const WindowOperand &window, tgl::TglTensorType type, Value *pixel, Value *&exists);
  unsigned placeOfUnit(unsigned unit) const;
  Value *placesAt(Value *step);
  unsigned placesBytes() const;
  void storePlaces();
  Sums multiplyShifted(const PlaneProduct &product, Value *inBlock, Value *patch, Value *inGroup,
                       llvm::ArrayRef<Value *> sums);
  Sums sumUpShifted(const PlaneProduct &product);

  Emitter &e;
  llvm::IRBuilder<> &b;
  const ContractionPlan &plan;
  TensorTile tile;
  std::optional<TileRange> range;
  llvm::SmallVector<ProductOperands> products;
  std::map<unsigned, ProductOperands> evaluatedOperands; ///< of those whose elements no copy brings, by product
  std::vector<PackedProduct> packs; ///< of each product, where they are packed
  std::optional<ShiftedWindows> shifted; ///< where the tile says so: of the only product's columns
  tgl::AxesOp axes;
  Value *split = nullptr;                                     // i64
  Value *part = nullptr;                                      // i64: of all tiles', where the block leaves its sums
  std::optional<OwnPart> ownPart;                             // where tiles may be left over
  Value *batch = nullptr;                                     // i64: number of the tile's batch point
  Value *packed = nullptr;                                    // address of the planes of packed operands
  mlir::Value matrixToPack;         // its number is set, not read
  unsigned rowBlocks, columnBlocks; // of 16, of a warp
  TileMemory memory;
  BlockTile here; ///< the tile that the code being emitted is for
  std::vector<ProductLayout> noted;
  llvm::SmallVector<Value *> rings; ///< of each product, where there are roles
  Value *patchRing = nullptr;       ///< of patches of windows
  llvm::SmallVector<Value *> firstCopies; ///< under way when a block begins, a stage each: those that users copy
  bool marksAlone = false; // threads mark tiles whose sums are not to be used without asking others
  unsigned ownBarrier = 0; // number of the barrier of the threads that the current code is for
};

} // namespace tegula

#endif // TEGULA_CODEGEN_DEVICECONTRACTION_H
