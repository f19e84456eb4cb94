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
// (RowCache.h).
//
// What a feature keeps and emits is its own class (RowCache, ColumnSplit, WindowTiles,
// TransposeTiles, PrivateTemporaries, ClusterReduction, TeamSort), which sees the function that is
// being filled and none of the others.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_SIMT_DEVICEEMITTER_H
#define TEGULA_CODEGEN_SIMT_DEVICEEMITTER_H

#include "codegen/common/DebugLocations.h"
#include "codegen/common/Emitter.h"
#include "codegen/common/Plan.h"
#include "codegen/nvgpu/Fragments.h"
#include "codegen/nvgpu/TileLayout.h"
#include "codegen/simt/DeviceShape.h"
#include "llvm/ADT/SetVector.h"

namespace tegula {

class ClusterReduction;
class ColumnSplit;
class PrivateTemporaries;
class RowCache;
class SegmentedCombines;
class TeamSort;
class TransposeTiles;
class WindowTiles;

class DeviceEmitter : public Emitter {
public:
  /// Threads that run in step.
  static constexpr unsigned warp = 32;
  /// Rounds of a team that are written out; longer ones are loops.
  static constexpr int64_t maxRounds = 8;
  /// Bytes of a block that are on their way from memory together: so many blocks as one
  /// multiprocessor holds keep its share of the memory busy.
  static constexpr unsigned bytesAtOnce = 1 << 16;
  /// Bytes of the widest access of a thread.
  static constexpr unsigned accessBytes = 16;

  DeviceEmitter(llvm::Module &module, const EmitterOptions &options, std::vector<ErrorSite> &sites);
  ~DeviceEmitter() override;

  //===--- Functions (DeviceFunction.cpp) ---===//

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

  /// A function of so many threads a block, for the statement, that `body` fills, given its
  /// workspace.
  void emitTileFunction(tgl::ParallelOp op, const llvm::Twine &name, const Inputs &inputs,
                        unsigned threads, llvm::function_ref<void(llvm::Value *workspace)> body);

  /// Layout of the row that emitFunction caches in shared memory; nothing if it caches none.
  std::optional<RowLayout> rowLayout(llvm::StringRef name) const;
  /// Where the kernel's schedule asks for clusters, and emitFunction was for a row that several
  /// nests read.
  const std::optional<ClusterAnswer> &clusterAnswer() const;

  /// Whether threads that share columns of the statement are enough for the memory, few as its
  /// points may be.
  bool columnsKeepMemoryBusy(tgl::ParallelOp op);

  /// Whether the launch starts while the one before runs, and waits for it.
  bool usesDependentLaunch = false;

  //===--- The function that is being filled ---===//

  llvm::Function *function = nullptr;
  tgl::ParallelOp statement;
  DeviceShape shape;
  PointTile pointTile;
  /// i64: number in the team; of the team (or thread) on the device, and how many of them there
  /// are.
  llvm::Value *thread = nullptr, *unit = nullptr, *units = nullptr;
  llvm::Value *workspace = nullptr;
  /// Whether the current code is per thread: its points are distributed already, and no barrier may
  /// be emitted.
  bool perThread = false;
  /// Tensors that the statement both reads and writes: barriers surround these accesses.
  llvm::DenseSet<mlir::Value> exchanged;
  llvm::Value *rank = nullptr;     // of the block in its cluster
  llvm::Value *rowPhase = nullptr; // rows that the cluster has done, modulo 4
  llvm::Value *isPoint = nullptr;  // whether what these threads do exists; null: always
  llvm::Value *writes = nullptr;   // whether results are written; null: always
  tgl::ParallelOp filling;         // the nest at hand, where it writes results and temporaries
  /// Nests of a thread that are written out, so that what several of them read stays in its
  /// registers.
  llvm::DenseSet<mlir::Operation *> unrolled;

  bool inWindows = false; ///< all of a tile of windows is being written out
  int64_t round = -1;     ///< of a nest that is written out, -1 in a loop

  /// Emits a nest for threads of which some may have no point: these write no results.
  void emitOfPoint(tgl::ParallelOp nest, llvm::function_ref<void()> body);

  llvm::GlobalVariable *shared(llvm::Type *type, const llvm::Twine &name);
  /// The block's dynamic shared memory.
  llvm::Value *dynamicShared();
  /// Whether the nest reads a row that is kept in shared memory.
  bool isCachedRow(mlir::Operation *nest) const;
  /// Whether the operation accesses tensors that the statement both reads and writes.
  bool exchanges(mlir::Operation *op);

  //===--- Threads and their points (DistributePoints.cpp) ---===//

  llvm::Value *readSreg(llvm::Intrinsic::ID id, unsigned limit);
  /// All threads of the team, and what they wrote.
  void barrier();
  /// Points of a thread's tile along an axis.
  int64_t pointsAlong(tgl::AxesOp op, unsigned axis) {
    if (op.getOperation() != statement.getOperation())
      return 1;
    return (axis == pointTile.axis ? pointTile.points : 1) *
           (axis == pointTile.along ? pointTile.wide : 1);
  }
  llvm::Value *extent(tgl::AxesOp op, unsigned axis);
  llvm::Value *countOf(tgl::AxesOp op, llvm::ArrayRef<unsigned> axes,
                       const std::optional<LaneChoice> &lane = std::nullopt);
  void setAxes(tgl::AxesOp op, llvm::ArrayRef<unsigned> axes, llvm::Value *number,
               const std::optional<LaneChoice> &lane, llvm::function_ref<void()> body);
  /// Distributes `count` indices over the team and carries the results of `body`; loads of `ahead`
  /// indices are in flight together.
  llvm::SmallVector<llvm::Value *> distribute(llvm::Value *count,
                                              llvm::ArrayRef<llvm::Value *> inits,
                                              DistributedBody body, unsigned ahead = 1);

  //===--- Reductions (DeviceReduce.cpp) ---===//

  /// Reductions after `first` over the same points, which are computed where it stands.
  llvm::SmallVector<tgl::ReduceOp> takeTogether(tgl::ReduceOp first);
  llvm::Value *shuffle(llvm::Value *value, llvm::Intrinsic::ID id, llvm::Value *lane,
                       unsigned clamp);
  /// Combines the accumulators of so many neighbouring threads of a warp: all get the result.
  Accumulator combineWarp(tgl::ReduceKind kind, Accumulator accumulator, unsigned threads);

  Accumulator combineWarp(tgl::ReduceOp op, Accumulator accumulator, unsigned threads) {
    return combineWarp(op.getKind(), std::move(accumulator), threads);
  }

  //===--- Operations (DeviceEmitter.cpp) ---===//

  void emitOp(mlir::Operation *op) override;
  void emitParallel(tgl::ParallelOp op) override;
  void emitReduce(tgl::ReduceOp op) override;
  Accumulator emitReduceNest(tgl::ReduceOp op) override;
  BlockedSum blockedSumOf(tgl::ReduceOp op, unsigned axis) override;
  void emitFor(tgl::ForOp op) override;
  void emitSteps(llvm::Value *count, llvm::function_ref<void(llvm::Value *)> body) override;
  void emitTemp(tgl::TempOp op) override;
  void emitSort(tgl::SortOp op) override;

private:
  std::optional<DebugLocations> debugLocations;
  /// Reductions that were computed together with one before them.
  llvm::DenseSet<mlir::Operation *> reducedBefore;
  std::unique_ptr<RowCache> rows;
  std::unique_ptr<ColumnSplit> columns;
  std::unique_ptr<WindowTiles> windows;
  std::unique_ptr<TransposeTiles> transposes;
  std::unique_ptr<PrivateTemporaries> temporaries;
  std::unique_ptr<ClusterReduction> clusters;
  std::unique_ptr<TeamSort> sorts;
  std::unique_ptr<SegmentedCombines> segments;

  bool takesSinglePoints() const;
  llvm::Value *stepTogether(llvm::Value *number, llvm::Value *inside, llvm::Value *count);
  std::optional<LaneChoice> takeRaggedLanes(tgl::ParallelOp op, llvm::ArrayRef<unsigned> outer,
                                            DeviceShape &wanted);
  llvm::Value *countVectors(tgl::AxesOp op, const LaneChoice &lane);
  void withRest(tgl::AxesOp op, const LaneChoice &lane, llvm::Value *base,
                llvm::function_ref<void()> body);
  void begin(tgl::ParallelOp op, const llvm::Twine &name, const Inputs &inputs, unsigned threads);
  void returnUnlessFlagged(const IndexExpr &behind);
  void emitPlaced(mlir::Operation *op);
  Accumulator emitColumn(tgl::ReduceOp op);
  unsigned numbersAhead(llvm::ArrayRef<tgl::ReduceOp> together, unsigned width);
  Accumulator combineTeam(tgl::ReduceOp op, Accumulator accumulator);
  Accumulator combineCluster(tgl::ReduceOp op, Accumulator accumulator);
};

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_DEVICEEMITTER_H
