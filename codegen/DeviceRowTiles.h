//===- DeviceRowTiles.h - Tile loops on tensor cores --------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A nest whose rows go through a tile loop together (passes/RowTiles.h) as device code (sm_90a).
// Each warpgroup of a block has 64 rows. All values of the nest lie in registers, as the sums of a
// product do (Warpgroup.h): thread t of the 128 has of 64 rows by C columns, with n = 0, 1, ... C/2
// - 1,
//
//   row 16 (t / 32) + t % 32 / 4 + 8 (n / 2 % 2)    column 8 (n / 4) + 2 (t % 4) + n % 2
//
// so of a value of rows two, of one of columns C / 4, of one of both C / 2, and what varies along
// neither is there once: a *spread* value. Each operation of the nest is emitted for all of them. A
// reduction along columns combines a thread's own, then those of the four threads that share rows.
// Private temporaries are spread values; those that stand before the loop are carried by it.
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
// Two warpgroups take turns (RowTileRoles.cpp): while one computes values the other's products are
// under way. A third copies tiles for both, and goes on with the next block of rows while the last
// one's values are computed and stored. A single one copies its tiles itself.
//
// Factors of f32 come in two planes of f16 (RowTilePlanes.cpp), of which three products are summed up by themselves for
// each tile. Where their sums are as small as what planes lose all rows are computed again by other code (RowTileDoubts.cpp).
//
// Of more columns than that blocks of a cluster have a part each, and exchange the sums of products (RowTileParts.cpp).
//
// Rows beyond the last are the last again, and not written. Columns beyond the last count in no
// reduction. What a `where` over rows and columns decides is decided for whole tiles where it can
// be; tiles that change nothing (RowTileBounds.h) are left out.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_DEVICEROWTILES_H
#define TEGULA_CODEGEN_DEVICEROWTILES_H

#include "codegen/DeviceEmitter.h"
#include "codegen/Warpgroup.h"
#include "codegen/async/Async.h"
#include "passes/RowTiles.h"
#include "llvm/ADT/MapVector.h"

namespace tegula {

class DeviceRowTiles {
public:
  DeviceRowTiles(DeviceEmitter &emitter, const RowTilePlan &plan, const RowTile &tile);

  IndexExpr numBlocks() const;
  unsigned cluster() const { return tile.parts; }
  unsigned threads() const { return numMultiplying() + (hasRoles ? Warpgroup::threads : 0); }
  unsigned sharedBytes() const { return sharedBytesOf(plan, tile); }
  /// Tensors whose address must be a multiple of 16 bytes.
  llvm::SmallVector<mlir::Value> alignedTensors() const;

  /// The whole of a block's work.
  void emit(llvm::Value *workspace);

  // Factors of f32 (RowTilePlanes.cpp)
  bool isSplit() const { return !split.empty(); }
  IndexExpr workspaceBytes() const;
  static constexpr unsigned splitThreads = 256;
  /// Elements that a thread takes at a time.
  static constexpr unsigned unitElements = 8;
  IndexExpr splitBlocks() const;
  /// Before that: the largest numbers of each, and then their planes.
  void emitLargest(llvm::Value *workspace);
  void emitPlanes(llvm::Value *workspace);

private:
  using Value = llvm::Value;
  using Values = llvm::SmallVector<Value *>;

  /// A value at all points of a thread.
  struct Spread {
    bool rows = false, columns = false; ///< what it varies along
    Values values;
    unsigned indexOf(unsigned row, unsigned column) const {
      return rows && columns ? column / 2 * 4 + row * 2 + column % 2
             : rows          ? row
             : columns       ? column
                             : 0;
    }
    Value *at(unsigned row, unsigned column) const { return values[indexOf(row, column)]; }
  };
  /// Values that are to be multiplied with the same number.
  struct Scaled {
    Values values;
    Value *scale;
    double factor; ///< what it is
  };
  /// The columns of a nest or a reduction.
  struct Scope {
    mlir::BlockArgument axis;
    unsigned columns;        ///< of a fragment
    bool isTile = false;     ///< they are the tile's
    bool isPart = false;     ///< other blocks of the cluster have others
    Value *ragged = nullptr; ///< i1: some of them are beyond `high`; null: never
    Value *high = nullptr;   ///< i64
    Values numbers = {};     ///< i64, of this thread's columns
    unsigned own() const { return columns / 4; }
  };
  /// A factor in shared memory, in chunks of 64 points of the sum.
  struct Staged {
    tgl::ReadOp read;
    mlir::BlockArgument lineAxis, sumAxis; ///< of its rows (or columns), and of the sum
    mlir::BlockArgument moving;            ///< of them that which a block or a tile has a part of
    PlaneTile shared;
    unsigned chunks;
    unsigned base;       ///< byte in shared memory; of the first stage
    unsigned planes = 1; ///< one after the other
    unsigned planeBytes() const { return chunks * shared.bytes(); }
    unsigned bytes() const { return planes * planeBytes(); }
  };
  struct Product {
    const RowProduct *planned;
    std::optional<Staged> row;
    Staged column;
    unsigned columns, depth; ///< of a tile
    Value *ring = nullptr;   ///< of its stages, where there are roles
    /// A temporary that the loop carries, into which the sums go: the next iteration multiplies.
    mlir::Value target = {};
    Values scales = {}; ///< of planes: what the sums of each row are multiplied with; in words, of the left factor alone
    llvm::SmallVector<Values> words = {};     ///< and this is what
    llvm::SmallVector<Values> nextWords = {}; ///< of this iteration, where they are ready early
    Values sums = {};                         ///< which are not yet to be touched
  };

  // DeviceRowTiles.cpp
  unsigned numMultiplying() const { return tile.warpgroups * Warpgroup::threads; }
  Value *i32(int64_t value) { return b.getInt32(value); }
  Value *i64(int64_t value) { return b.getInt64(value); }
  Value *wide(Value *value) { return b.CreateZExt(value, b.getInt64Ty(), "", /*IsNonNeg=*/true); }
  Value *special(llvm::Intrinsic::ID id, unsigned limit);
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

  // SpreadValues.cpp
  bool spreads(mlir::Value value) { return spread.contains(value); }
  Spread spreadOf(mlir::Value value);
  void setOperands(mlir::Operation *op, unsigned row, unsigned column);
  Spread forPoints(bool rows, bool columns, const Scope *scope,
                   llvm::function_ref<Value *(unsigned row, unsigned column)> body);
  void emitSpread(mlir::Operation *op, const Scope *scope);
  Value *emitPoint(mlir::Operation *op, bool isElement);
  void divideByRows(mlir::arith::DivFOp op, const Scope &scope);
  void emitWrite(tgl::WriteOp op, const Scope *scope);
  void store(tgl::WriteOp op, const Scope &scope);
  Scope enter(mlir::Operation *nest);
  void emitNest(tgl::ParallelOp op);
  void emitReduce(tgl::ReduceOp op);
  void emitInner(mlir::Operation *op, const Scope &scope);
  void emitMasked(mlir::arith::SelectOp op, const Scope &scope, llvm::ArrayRef<Comparison> mask);
  Spread full(const Spread &value, const Scope &scope);
  void keepExisting(Values &values, const Scope &scope, Value *otherwise);
  bool isPart(tgl::ReduceOp op);
  void keepInBounds(Values &values, const Scope &scope, tgl::ReduceOp op, Value *otherwise);
  void choose(Value *condition, Values &values, llvm::function_ref<Values()> then);

  // ScaledValues.cpp
  std::optional<Scaled> withoutScale(llvm::ArrayRef<Value *> values);
  Value *powerThatShrinks(Value *size);
  bool emitShiftedExp(mlir::Operation *op, const Scope &scope);

  // RowTileRoles.cpp
  enum Barrier : unsigned { Turn = 1, Spare = Turn + 2, FirstOfProduct, perProduct = 6 };
  Value *isSecond();
  unsigned numCopying() const { return Warpgroup::threads / unsigned(products.size()); }
  void waitAt(Value *number, unsigned threads);
  void arriveAt(Value *number, unsigned threads);
  void makeRings();
  void splitOffCopies();
  bool staysForBlocks() const;
  Value *forBlocks(llvm::function_ref<void()> body);
  void copyTiles(const Product &product);
  void copyAllTiles(const Product &product);
  Value *inAll(Value *number);
  void awaitTile(const Product &product, Value *number);
  void releaseTile(const Product &product, Value *number);
  void startTurns();
  void awaitTurn();
  void passTurn();
  void endTurns();
  Value *rowStage(const Product &product);

  // RowTileParts.cpp
  bool sharesSums() const;
  unsigned usesInTile() const;
  Value *lowOfPart(int64_t points);
  Value *placeOf(unsigned exchange, Value *group, unsigned behind);
  Value *fullBarrier(unsigned exchange, Value *group);
  Value *readBarrier(unsigned exchange, Value *group);
  Value *inOther(unsigned exchange, Value *own);
  void startParts();
  void sendSums(unsigned exchange, Value *use, llvm::MutableArrayRef<Value *> sums);
  void receiveSums(unsigned exchange, Value *use, llvm::MutableArrayRef<Value *> sums);
  void addParts(const Product &product, Values &sums);
  void endParts();

  // RowTileProducts.cpp
  void copy(const Staged &staged, Value *stage, Value *low, Value *total);
  void copyColumns(const Product &product, Value *number);
  Value *stageOf(const Product &product, Value *number);
  Value *descriptorOf(const Staged &staged, Value *stage, Value *first, unsigned step,
                      unsigned plane);
  Value *lowOfTile(Value *number);
  void awaitCopies();
  void multiply(Product &product, Value *number, llvm::ArrayRef<Values> words);
  void multiply(Product &product, Value *number, llvm::ArrayRef<Values> words, unsigned first, unsigned columns);
  void holdBack();
  void settle(mlir::Value tensor);
  void prepareWords(tgl::ParallelOp nest);
  void startCopies();
  void startTile();
  void finishTiles();
  void emitProduct(tgl::ReduceOp op, const Scope &scope);
  llvm::SmallVector<Values> rowWords(Product &product);

  // RowTilePlanes.cpp
  /// A tensor of f32 whose planes the loop reads.
  struct Split {
    mlir::Value tensor;
    int64_t elements;
    int64_t base; ///< byte in the workspace: of the largest numbers that warps found, behind which the planes are
    int64_t planeBytes() const { return int64_t(llvm::alignTo(elements * 2, 256)); }
    int64_t planeAt(unsigned plane) const;
    int64_t end() const { return planeAt(2); }
  };
  const Split *splitOf(mlir::Value tensor) const;
  void layOutPlanes();
  void forSplits(llvm::function_ref<void(const Split &split, Value *block)> body);
  Values forUnits(const Split &split, Value *block, llvm::ArrayRef<Value *> carried,
                  llvm::function_ref<Values(Value *unit, Value *element, llvm::ArrayRef<Value *> carried)> body);
  Value *unitAt(const Split &split, Value *number);
  Value *bytesAt(Value *bytes, int64_t distance);
  Value *exponentOf(Value *largest);
  Value *scaleFor(Value *exponent);
  Value *inverseFor(Value *exponent);
  Value *acrossLanes(Value *number, unsigned lanes);
  Value *exponentOf(const Split &split);
  void findScales();
  Values splitRows(Values &values);
  Value *keepNonZero(Value *elements, Value *scaled);
  void undoScales(Product &product, Values &sums);

  // RowTileDoubts.cpp
  /// Bytes at the workspace's start, of which the first word is not 0 where the loop's results may not be right.
  static constexpr int64_t doubtBytes = 256;
  void startDoubts();
  void clearDoubts(Value *block, Value *memory);
  Value *smallestSum(const Product &product, unsigned row);
  void doubtSmallSums(const Product &product, const Values &sums, const Scope &scope, unsigned first);
  void endDoubts();
  int64_t lineOf(const Split &split) const;
  void doubtInfinite(Value *largest);
  void doubtElements(const Split &split, Value *element, Value *scaled, Value *scale);
  void tellDoubt();

  DeviceEmitter &e;
  llvm::IRBuilder<> &b;
  const RowTilePlan &plan;
  RowTile tile;
  tgl::AxesOp axes;
  mlir::BlockArgument rowAxis;
  std::vector<Product> products;
  bool hasRoles = false;  ///< some threads copy, the others multiply
  unsigned numRowStages = 1;
  unsigned exchangeBase = 0; ///< byte in shared memory: places for sums of other blocks
  Value *part = nullptr;     ///< i32: the block's number in its cluster
  /// Of the blocks of rows that have been done: their tiles (i32), and whether an odd number of them had any (i1).
  Value *tilesBefore = nullptr, *isOdd = nullptr;
  std::vector<Split> split;
  Value *workspace = nullptr;
  llvm::DenseMap<mlir::Value, Value *> inverses; ///< of the scales of tensors that are split
  llvm::AllocaInst *doubt = nullptr;             ///< i32, not 0 where a sum of this thread's was too small
  llvm::GlobalVariable *shared = nullptr;
  Value *thread = nullptr, *lane = nullptr, *warpgroup = nullptr; // i32
  Value *copier = nullptr;                                        ///< i32, of `numCopiers` threads
  unsigned numCopiers = 0;
  Value *firstRow = nullptr, *lastRow = nullptr,
        *rowsEnd = nullptr;         // i64: values of the axis in this block
  std::array<Value *, 2> rowExists; // i1; null: always
  Value *firstTile = nullptr, *tileNumber = nullptr, *numTiles = nullptr,
        *tilesEnd = nullptr; // i64
  llvm::DenseMap<mlir::Value, Spread> spread;
  llvm::MapVector<mlir::Value, Spread> elements; // of temporaries
  /// Operations that only a mask uses, or that have been done with another.
  llvm::DenseSet<mlir::Operation *> skipped;
};

} // namespace tegula

#endif // TEGULA_CODEGEN_DEVICEROWTILES_H
