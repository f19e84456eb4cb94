//===- DeviceEmitter.h - Emits a statement as a SIMT device function -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A parallel statement becomes a device function in one of two forms.
//
// A *thread function* gives a point to a thread, or where the statement has an axis for it a vector
// of neighbouring points, which are loaded and stored in one access.
//
// A *team function* gives a point to a team: a warp, or a block. What stands directly in the
// statement is done by all of its threads alike; inner parallel statements and reductions are dealt
// out to them. Short ones are dealt out without a loop, so that what several of them read of memory
// is read once and kept in registers. Partial results of a reduction are combined in a fixed order,
// by shuffles in a warp, through shared memory between warps. Longer rows that several of them read
// are kept in shared memory, of one block or of a cluster of blocks that share a point
// (DeviceRows.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_SIMT_DEVICEEMITTER_H
#define TEGULA_CODEGEN_SIMT_DEVICEEMITTER_H

#include "codegen/common/DebugLocations.h"
#include "codegen/common/Emitter.h"
#include "codegen/common/Plan.h"
#include "codegen/nvgpu/Fragments.h"
#include "codegen/nvgpu/TileLayout.h"
#include "passes/analysis/PrefixLoop.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <map>

namespace tegula {

/// How the points of a statement are distributed over threads.
struct DeviceShape {
  unsigned team = 1;        ///< threads for a point: 1, part of a warp, one, or a whole block
  unsigned threads = 256;   ///< of a block
  unsigned lanes = 1;       ///< points of a thread side by side (teams of one alone)
  unsigned rounds = 1;      ///< and such points (vectors) in a tile of windows
  unsigned cluster = 1;     ///< blocks that share a point (teams that are whole blocks)
  unsigned sharedBytes = 0; ///< dynamic shared memory of a block
  unsigned columnSplit = 1; ///< threads of a block that split a column (teams of one only)
  bool byThread() const { return team == 1; }
  bool isPartOfWarp() const { return !byThread() && team < 32; }
  /// Points (vectors of points) that a block does at a time.
  unsigned unitsPerBlock() const { return threads / team / columnSplit; }
};

class DeviceEmitter : public Emitter {
public:
  /// Threads that run in step.
  static constexpr unsigned warp = 32;
  /// Rounds of a team that are written out; longer ones are loops.
  static constexpr int64_t maxRounds = 8;
  /// Neighbouring elements that the sliding windows of a tile read, in registers.
  struct WindowRow {
    int64_t first, length; ///< from where the tile's first point is and axes of the sum are 0
    llvm::SmallVector<int64_t> position; ///< of these axes, at the first
    llvm::SmallVector<llvm::Value *> elements;
  };
  /// The elements of a tensor that a read of a reduction covers, by dim.
  struct Window {
    tgl::ReadOp read;
    llvm::SmallVector<tgl::ValueExpr> subscripts; ///< where axes of the reduction are 0
    llvm::SmallVector<int64_t> dims, strides;
    llvm::DenseMap<mlir::Value, llvm::SmallVector<int64_t>> steps; ///< by axis
    llvm::SmallVector<llvm::SmallVector<int64_t>> terms;           ///< displacements
  };
  /// Bytes of a block that are on their way from memory together: so many blocks as one
  /// multiprocessor holds keep its share of the memory busy.
  static constexpr unsigned bytesAtOnce = 1 << 16;
  /// Bytes of the widest access of a thread.
  static constexpr unsigned accessBytes = 16;

  DeviceEmitter(llvm::Module &module, const EmitterOptions &options, std::vector<ErrorSite> &sites);

  struct Inputs {
    llvm::SmallVector<mlir::Value> tensors;        // buffers, in order of arguments
    llvm::SmallVector<mlir::Value> scalars;        // kernel's run-time scalars
    llvm::SmallVector<mlir::Value> loopVars;       // variables of host loops
    llvm::SmallVector<std::string> sizes;          // symbols
    llvm::SmallVector<mlir::Operation *> prologue; // scalar ops to repeat, in order
  };

  /// `outer` axes are numbered, the rest is inside. Sets `shape.lanes` and `rounds` to what was
  /// possible. Returns the function's workspace in bytes a block. With `behind` the function does
  /// nothing where the workspace's first word is 0, and its own part begins so many bytes behind
  /// that.
  IndexExpr emitFunction(tgl::ParallelOp op, const llvm::Twine &name, const Inputs &inputs,
                         llvm::ArrayRef<unsigned> outer, DeviceShape &shape,
                         const IndexExpr *behind = nullptr);

  /// Emits a function in which the threads of a team, and blocks of a cluster, synchronise, as
  /// `shape` says; `body` fills it.
  void emitTeamFunction(tgl::ParallelOp op, const llvm::Twine &name, const Inputs &inputs,
                        const DeviceShape &shape, llvm::function_ref<void()> body);

  /// Layout of the row that emitFunction caches in shared memory; nothing if it caches none.
  std::optional<RowLayout> rowLayout(llvm::StringRef name) const;
  /// Where the kernel's schedule asks for clusters, and emitFunction was for a row that several
  /// nests read.
  const std::optional<ClusterAnswer> &clusterAnswer() const { return row.answer; }

  /// Whether the launch starts while the one before runs, and waits for it.
  bool usesDependentLaunch = false;

  /// A function of so many threads a block, for the statement, that `body` fills, given its
  /// workspace.
  void emitTileFunction(tgl::ParallelOp op, const llvm::Twine &name, const Inputs &inputs,
                        unsigned threads, llvm::function_ref<void(llvm::Value *workspace)> body);

  /// Whether threads that share columns of the statement are enough for the memory, few as its
  /// points may be.
  bool columnsKeepMemoryBusy(tgl::ParallelOp op);

  /// Whether neighbouring points touch neighbouring memory, more so than neighbours in the nests
  /// inside.
  static bool runsAlongPoints(tgl::ParallelOp op);
  /// Whether a private temporary fits neither into a thread's local memory nor into a team's shared
  /// memory.
  static bool isLarge(tgl::TempOp temp);
  /// Whether a team does the points of an inner nest one after another, all of it each, rather than
  /// a thread a point: they are few, with long rows to reduce in each, or with temporaries too
  /// large for a thread.
  static bool runsSerially(tgl::ParallelOp nest);
  /// The nests that access a private temporary, if each of their points touches its own element
  /// alone, whichever that is in memory: threads that share these nests alike read only what they
  /// have written (DeviceTemporaries.cpp).
  static llvm::SmallVector<tgl::AxesOp> nestsThatOwn(tgl::TempOp temp);

protected:
  friend class PersistentRecurrence;
  friend class RecurrenceStates;
  friend class FusedTileLoop;
  friend class LookBackScan;
  void emitOp(mlir::Operation *op) override;
  void emitParallel(tgl::ParallelOp op) override;
  void emitReduce(tgl::ReduceOp op) override;
  Accumulator emitReduceNest(tgl::ReduceOp op) override;
  BlockedSum blockedSumOf(tgl::ReduceOp op, unsigned axis) override;
  Accumulator emitColumn(tgl::ReduceOp op);
  void emitFor(tgl::ForOp op) override;
  void emitSeveralSteps(const SteppedLoop &stepped, unsigned together);
  void emitSteps(llvm::Value *count, llvm::function_ref<void(llvm::Value *)> body) override;
  void emitTemp(tgl::TempOp op) override;
  void emitSort(tgl::SortOp op) override;
  /// The block's dynamic shared memory.
  llvm::Value *dynamicShared();
  /// Combines the accumulators of so many neighbouring threads of a warp: all get the result.
  Accumulator combineWarp(tgl::ReduceKind kind, Accumulator accumulator, unsigned threads);

private:
  llvm::Function *function = nullptr;
  tgl::ParallelOp statement;
  DeviceShape shape;
  /// i64: number in the team; of the team (or thread) on the device, and how many of them there
  /// are.
  llvm::Value *thread = nullptr, *unit = nullptr, *units = nullptr;
  llvm::Value *workspace = nullptr;
  IndexExpr workspaceBytes;
  /// Whether the current code is per thread: its points are distributed already, and no barrier may
  /// be emitted.
  bool perThread = false;
  /// Tensors that the statement both reads and writes: barriers surround these accesses.
  llvm::DenseSet<mlir::Value> exchanged;
  /// Reductions that were computed together with one before them.
  llvm::DenseSet<mlir::Operation *> reducedBefore;
  llvm::DenseMap<mlir::Operation *, llvm::Value *> temporaryAddresses;
  llvm::SmallVector<tgl::TempOp> inWorkspace;
  /// Private temporaries in registers, with the elements of a thread in a round; the round of the
  /// nest that is written out, -1 in a loop.
  llvm::DenseMap<mlir::Value, int64_t> ownStates;
  int64_t round = -1;
  std::optional<DebugLocations> debugLocations;

  /// The row that nests of the statement read, cached in dynamic shared memory.
  struct Row {
    /// By read: its slot, and whether it takes the element from memory, being the first.
    llvm::DenseMap<mlir::Operation *, std::pair<unsigned, bool>> slotOf;
    llvm::DenseSet<mlir::Operation *> nests; // that read any of it
    llvm::SmallVector<unsigned> bytes;       // by slot: of a vector
    llvm::SmallVector<llvm::Value *> bases;  // by slot: of the first
    int64_t vectors = 0, rounds = 0;         // of the row; of a thread
    unsigned ahead = 1;                      // rounds that are loaded together
    llvm::SmallVector<std::pair<tgl::ReadOp, tgl::AxesOp>>
        sources; // by slot: the first read, its nest
    llvm::SmallVector<llvm::DenseSet<mlir::Operation *>>
        lastNests; // by slot: nests after which it is free
    /// The next row is copied where this one was (DeviceRowCopies.cpp); its axes of the statement,
    /// and whether it exists.
    bool copies = false;
    /// Vectors begin at multiples of their length in memory, wherever a row does: so many elements
    /// before it.
    bool isShifted = false;
    std::pair<tgl::ReadOp, tgl::AxesOp> shiftedBy; // a read that says how many
    llvm::Value *shift = nullptr, *nextShift = nullptr;
    bool atEdge = false; // vectors of the round that is emitted may hang over
    std::optional<LaneChoice> lane;
    int64_t terms = 0; // of the row
    llvm::SmallVector<std::pair<mlir::Value, llvm::Value *>> next;
    llvm::Value *hasNext = nullptr;
    llvm::DenseMap<unsigned, llvm::Value *> *loaded =
        nullptr;                  // by slot, in the round that is emitted
    llvm::Value *round = nullptr; // that one
    /// By operation: the slot where its value replaces the element, or where later nests find it.
    llvm::DenseMap<mlir::Operation *, unsigned> storedTo, foundIn;
    std::optional<ClusterAnswer> answer;
  } row;
  llvm::Value *rank = nullptr;     // of the block in its cluster
  llvm::Value *rowPhase = nullptr; // rows that the cluster has done, modulo 4
  /// By reduction: two barriers, at which blocks of a cluster have its parts (DeviceClusters.cpp).
  llvm::MapVector<mlir::Operation *, llvm::GlobalVariable *> clusterBarriers;
  llvm::Value *columnSlice = nullptr; // among those of a column
  llvm::Value *isPoint = nullptr;     // whether what these threads do exists; null: always
  llvm::Value *writes = nullptr;      // whether results are written; null: always
  /// Nests of a thread that are written out, so that what several of them read stays in its
  /// registers.
  llvm::DenseSet<mlir::Operation *> unrolled;

  /// Points of a thread along one axis of the statement and along the last one, whose windows
  /// overlap (DeviceWindows.cpp).
  struct WindowTile {
    unsigned axis = 0, points = 1;
    unsigned slack = 0; ///< points that a line's first tile may begin before it
    unsigned along = 0, wide = 1;
  } windows;
  std::vector<Window> windowReads;
  /// By read and displacement from where a tile's first point is and axes of the sum are 0.
  std::map<std::pair<mlir::Operation *, llvm::SmallVector<int64_t>>, llvm::Value *> windowElements;
  llvm::Value *windowFirst = nullptr;            ///< of the tile's points along the last axis
  std::pair<int64_t, int64_t> windowPoint{0, 0}; ///< of the tile, which is being written out
  unsigned windowVector(Window &window, int64_t &offColumn);
  std::optional<int64_t> windowSteps(tgl::WriteOp write);
  bool writesVectors(tgl::WriteOp write);
  std::optional<std::pair<int64_t, int64_t>> tileRangeOf(const tgl::ValueExpr &expr);
  void loadWindow(Window &window);
  bool emitInWindow(mlir::Operation *op);
  void storeVector(tgl::WriteOp write, llvm::Value *vector);
  /// Raster order of points (Rasterize.cpp): chunks of vectors, each for all points that read the
  /// same elements.
  struct Raster {
    int64_t repeats = 0, vectors = 0, chunk = 0; ///< 0: by their numbers
  } raster;
  /// A register tile for a transpose: points along what is written by points along what is read
  /// (TransposeTile.cpp).
  struct TransposeTile {
    unsigned across = 0;
    llvm::DenseMap<mlir::Operation *, llvm::SmallVector<llvm::Value *>>
        rows;           ///< by read: vectors along the other axis
    int64_t point = -1; ///< of that, which is being written out
  } transposeTile;
  void planTransposeTiles(tgl::ParallelOp op, llvm::SmallVectorImpl<unsigned> &outer,
                          std::optional<LaneChoice> &lane);
  void emitTransposeTile(tgl::ParallelOp op);
  bool emitInTransposeTile(mlir::Operation *op);
  void planRaster(tgl::ParallelOp op, llvm::ArrayRef<unsigned> outer,
                  const std::optional<LaneChoice> &lane);
  llvm::Value *rasterized(llvm::Value *number, llvm::Value *count);

  bool inWindows = false; ///< all of a tile is being written out

  /// Points of a thread's tile along an axis.
  int64_t pointsAlong(tgl::AxesOp op, unsigned axis) {
    if (op.getOperation() != statement.getOperation())
      return 1;
    return (axis == windows.axis ? windows.points : 1) * (axis == windows.along ? windows.wide : 1);
  }
  /// Tiles along lines of memory, and what their windows read of those (WindowRow.cpp): by read.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<WindowRow>> windowRows;
  int64_t windowRowPoint = -1; ///< the point of such a tile that is being written out
  llvm::SmallVector<llvm::Value *> windowRowResults;
  void planWindowRows(tgl::ParallelOp op, llvm::ArrayRef<unsigned> outer, int64_t steps);
  llvm::Value *emitWindowRowStart(tgl::ParallelOp op, llvm::Value *first);
  llvm::Value *emitWindowRowAddress(tgl::ReadOp read, const WindowRow &run);
  llvm::Value *emitWindowRowsInside(tgl::ParallelOp op);
  void loadWindowRows(tgl::ParallelOp op);
  bool emitInWindowRow(mlir::Operation *op);
  void emitWindowRowTiles(tgl::ParallelOp op, llvm::Value *first);
  void emitWindowRowTile(tgl::ParallelOp op);
  unsigned partialBytes(tgl::ParallelOp op);
  std::pair<unsigned, unsigned> splitOfLongColumn(tgl::ParallelOp op);
  unsigned splitOfKeptColumn(tgl::ParallelOp op);
  bool maySplitColumns(tgl::ParallelOp op) const;
  void planColumnSplit(tgl::ParallelOp op, DeviceShape &wanted);
  void forSplitPoints(tgl::AxesOp nest, llvm::function_ref<void(llvm::Value *exists)> body);
  void emitSplitParallel(tgl::ParallelOp op);
  Accumulator emitSplitTerms(tgl::ReduceOp op);
  Accumulator combineColumnSplit(tgl::ReduceOp op, const Accumulator &own);
  Accumulator emitSplitColumn(tgl::ReduceOp op);
  void planWindows(tgl::ParallelOp op, llvm::ArrayRef<unsigned> outer,
                   const std::optional<LaneChoice> &lane);
  void emitWindows(tgl::ParallelOp op);
  Accumulator emitWindowRows(tgl::ReduceOp op);
  bool hasRowShape(tgl::AxesOp nest);
  bool isSameRow(tgl::AxesOp first, tgl::AxesOp second);
  void planRow(tgl::ParallelOp op, llvm::ArrayRef<unsigned> outer, DeviceShape &wanted);
  std::optional<LaneChoice> laneOf(tgl::AxesOp nest);
  std::pair<int64_t, int64_t> wholeRounds() const;
  unsigned blocksAsked(int64_t asked, unsigned largest, int64_t most, int64_t vectors,
                       llvm::function_ref<int64_t(unsigned)> bytesWith);
  /// Nests of a thread's point that read the same column.
  struct Column {
    llvm::SmallVector<tgl::AxesOp> nests; ///< none: there is no such column
    int64_t values = 0;                   ///< of the column that they read more than once
  };
  Column findColumn(tgl::ParallelOp op);
  unsigned planColumn(tgl::ParallelOp op);
  void planRowValues(llvm::ArrayRef<tgl::AxesOp> nests, llvm::ArrayRef<unsigned> walks);
  bool isSameInRow(mlir::Value first, tgl::AxesOp firstNest, mlir::Value second,
                   tgl::AxesOp secondNest);
  bool emitKept(mlir::Operation *op);
  bool canPrefetchRows(tgl::ParallelOp op, const std::optional<LaneChoice> &lane);
  std::optional<LaneChoice> planShift(tgl::ParallelOp op, llvm::ArrayRef<tgl::AxesOp> nests);
  llvm::Value *emitShift();
  void atNextRow(tgl::AxesOp axes, llvm::ArrayRef<unsigned> outer, llvm::Value *number,
                 llvm::Value *count);
  void prefetch(unsigned slot, llvm::Value *round, llvm::Value *number, llvm::Value *exists);
  void prefetchFirstRow();
  RowDistribution rowDistribution() const { return {shape.team, shape.cluster}; }
  llvm::Value *rowSlot(unsigned slot, llvm::Value *round);
  void allocateClusterBarriers(tgl::ParallelOp op);
  Accumulator combineCluster(tgl::ReduceOp op, Accumulator accumulator);

  void emitPlaced(mlir::Operation *op);
  bool emitFastDivision(mlir::Operation *op);
  void begin(tgl::ParallelOp op, const llvm::Twine &name, const Inputs &inputs, unsigned threads);
  void returnUnlessFlagged(const IndexExpr &behind);

  llvm::Value *readSreg(llvm::Intrinsic::ID id, unsigned limit);
  /// All threads of the team, and what they wrote.
  void barrier();
  bool exchanges(mlir::Operation *op);
  void splitAxes(tgl::AxesOp op, llvm::SmallVectorImpl<unsigned> &box,
                 llvm::SmallVectorImpl<unsigned> &rest);
  llvm::Value *extent(tgl::AxesOp op, unsigned axis);
  llvm::Value *countOf(tgl::AxesOp op, llvm::ArrayRef<unsigned> axes,
                       const std::optional<LaneChoice> &lane = std::nullopt);
  void setAxes(tgl::AxesOp op, llvm::ArrayRef<unsigned> axes, llvm::Value *number,
               const std::optional<LaneChoice> &lane, llvm::function_ref<void()> body);
  /// The body of distribute and distributeRow. Without `exists` (i1; null: true) `number` repeats
  /// the last index, and the results must not count.
  using DistributedBody = llvm::function_ref<llvm::SmallVector<llvm::Value *>(
      llvm::Value *number, llvm::Value *exists, llvm::ArrayRef<llvm::Value *> carried)>;
  /// Distributes the vectors of a cached row over the team, for one nest or several at once.
  llvm::SmallVector<llvm::Value *> distributeRow(llvm::ArrayRef<tgl::AxesOp> nests,
                                                 const std::optional<LaneChoice> &lane,
                                                 llvm::ArrayRef<llvm::Value *> inits,
                                                 DistributedBody body);
  /// Distributes `count` indices over the team and carries the results of `body`; loads of `ahead`
  /// indices are in flight together.
  llvm::SmallVector<llvm::Value *> distribute(llvm::Value *count,
                                              llvm::ArrayRef<llvm::Value *> inits,
                                              DistributedBody body, unsigned ahead = 1);
  unsigned numbersAhead(llvm::ArrayRef<tgl::ReduceOp> together, unsigned width);
  llvm::Value *shuffle(llvm::Value *value, llvm::Intrinsic::ID id, llvm::Value *lane,
                       unsigned clamp);
  /// Vectors of so many steps of the loop are single accesses.
  static unsigned vectorOf(const PrefixLoop &prefix);
  /// Combines two totals by the operation of a loop that carries one.
  llvm::Value *combineWith(mlir::Operation *op, llvm::Value *lhs, llvm::Value *rhs);
  static llvm::Constant *identityOf(mlir::Operation *op, llvm::Type *type);
  std::pair<llvm::Value *, llvm::Value *> scanTeam(mlir::Operation *op, llvm::Value *own,
                                                   llvm::GlobalVariable *totals);
  llvm::SmallVector<tgl::ReduceOp> takeTogether(tgl::ReduceOp first);
  Accumulator combineWarp(tgl::ReduceOp op, Accumulator accumulator, unsigned threads) {
    return combineWarp(op.getKind(), std::move(accumulator), threads);
  }
  Accumulator combineTeam(tgl::ReduceOp op, Accumulator accumulator);
  void allocateTemporaries();
  void planStates();
  llvm::Value *allocateState(tgl::TempOp temp);
  bool emitOwnState(mlir::Operation *op);
  llvm::GlobalVariable *shared(llvm::Type *type, const llvm::Twine &name);
  llvm::GlobalVariable *sortSpace(uint64_t words);
  llvm::GlobalVariable *sortedWords = nullptr;
};

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_DEVICEEMITTER_H
