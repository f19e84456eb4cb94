//===- StatementWalk.h - Counts the work of a scheduled statement -*- C++ -*- ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Follows what one thread does, loop by loop: what does not vary with a loop is computed before it,
// what has been computed is not computed again, neighbours of a vector are accessed together.
// Beside instructions and accesses it adds up how long the thread waits for its own results.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_EXPECTED_STATEMENTWALK_H
#define TEGULA_STRATEGIES_EXPECTED_STATEMENTWALK_H

#include "ir/tgl/TglUtils.h"
#include "passes/analysis/RegisterTiles.h"
#include "strategies/expected/Footprint.h"
#include "strategies/expected/LaunchWork.h"
#include "strategies/expected/Threads.h"
#include "llvm/ADT/DenseSet.h"

namespace tegula {

class StatementWalk {
public:
  using Traffic = LaunchWorkCounter::Traffic;

  /// `rowsTogether`: rows of a product that share what lanes compute of its factors; 0: tensor
  /// cores take factors as they are, and what is inside of products is no work of lanes.
  StatementWalk(tgl::ParallelOp statement, LaunchWork &work, StatementThreads threads,
                bool isGeneral, std::optional<double> rowsTogether);

  /// False where a size is not known.
  bool count();

  LaunchWorkCounter::TrafficOfTensors traffic;

private:
  /// Loops around a place, of which a value varies with some: a bit each, the outermost first.
  using Levels = uint64_t;
  struct Level {
    mlir::Value axis;
    double extent; ///< points
    double turns;  ///< steps of one thread
  };

  tgl::ParallelOp statement;
  LaunchWork &work;
  StatementThreads threads;
  bool isGeneral;
  std::optional<double> rowsTogether;

  //===--- Loops ---===//

  llvm::SmallVector<Level> levels;
  llvm::DenseMap<mlir::Value, int64_t> middles;
  llvm::DenseMap<mlir::Value, double> extents;
  llvm::DenseMap<mlir::Value, Levels> varies;
  llvm::DenseSet<mlir::Value> outerLoops; ///< variables of loops around the launch
  bool isKnown = true;

  std::optional<int64_t> valueOf(const tgl::ValueExpr &expr) const;
  std::optional<int64_t> valueOf(mlir::Value value) const;
  std::optional<int64_t> mostOf(const tgl::ValueExpr &bound) const;
  double estimateExtent(mlir::Value axis, const tgl::AxisRange &range, mlir::Operation *owner);
  void enter(mlir::Value axis, const tgl::AxisRange &range, mlir::Operation *owner);
  bool hasUnknownTile(const tgl::AxisRange &range) const;
  Levels levelsOf(mlir::ValueRange values) const;
  Levels allLevels() const { return (Levels(1) << levels.size()) - 1; }
  double pointsAround() const;
  /// How often one thread comes to what varies so, a vector at a time.
  double turnsOf(Levels levels) const;
  /// Elements of a thread's vector of what varies so.
  double lanesOf(Levels own) const;
  double threadsInAll() const;
  bool isBeforeLoop(Levels own) const;

  //===--- Lanes and teams ---===//

  mlir::Value lane;      ///< the axis of vectors, null: none
  double width = 1;      ///< of vectors
  bool isShared = false; ///< inside of a nest that the team has dealt out
  double dealing = 0;    ///< threads that a nest is dealt out to: the team, or a part of it
  std::optional<RegisterTile> tile; ///< of the nest around (codegen/simt/PointTiles.h)
  tgl::AxesOp tiledNest;
  double sharedInTile(Levels own) const;
  double neighboursInTile(const tgl::ValueExpr &offset, double bytes) const;
  double enterTile(tgl::ParallelOp nest, const RegisterTile &own);
  llvm::SmallVector<ThreadAxis> neighbours; ///< axes along which threads of a warp stand

  //===--- What is computed once ---===//

  llvm::DenseMap<mlir::Value, size_t> names;          ///< of values: equal ones have one
  llvm::SmallVector<llvm::DenseSet<size_t>> computed; ///< by nest
  llvm::DenseSet<size_t> rowsRead;
  llvm::DenseSet<size_t> heldRows;   ///< that a team has in registers or shared memory
  llvm::DenseSet<size_t> piecesRead; ///< rows, in whichever groups nests go through them
  size_t nameOfRow(tgl::ReadOp read) const;
  llvm::DenseMap<mlir::Value, unsigned> versions; ///< of tensors that the statement writes
  llvm::DenseMap<mlir::Value, double> sharedBy;   ///< neighbours in a tile that have the same value
  double neighboursOf(mlir::ValueRange operands) const;
  double neighboursOf(tgl::ReadOp read) const;
  llvm::DenseSet<mlir::Value> numbers; ///< that axes alone decide, inside of tiles
  size_t nameOf(mlir::Value value);
  size_t nameOf(mlir::Operation *op);
  /// Whether the operation repeats one that the thread has done.
  bool isRepeated(mlir::Operation *op);

  //===--- Memory ---===//

  llvm::SetVector<mlir::Value> written;
  llvm::DenseSet<size_t> windows; ///< accesses that the second-level cache has been asked for
  enum class Place { Registers, Shared, Workspace, Memory };
  Place placeOf(mlir::Value tensor) const;
  llvm::DenseMap<mlir::Value, double> drawnAgain; ///< bytes
  void countQuotients(const ThreadAccess &access);
  double termsOfWindow(const tgl::ValueExpr &offset, int64_t step) const;
  double pointsInBlock(mlir::Value value) const;
  double blocksThatAsk(double bytesOfBlock, Levels own) const;
  double access(mlir::Operation *op, mlir::Value tensor, ThreadAccess access, Levels own,
                double Traffic::*way, double instructions);
  void addTraffic(mlir::Value tensor, const ThreadAccess &access, Levels own, double Traffic::*way);
  Levels levelsOfAccess(mlir::Operation *op, mlir::Value tensor) const;

  //===--- Time ---===//

  llvm::DenseMap<mlir::Value, double> ready; ///< cycles, of values and of tensors that are written
  double readyAt(mlir::ValueRange values) const;

  /// Counts the operations from cycle `begin` on, and returns when the last is done.
  double visitBlock(mlir::Block &block, double begin);
  double visit(mlir::Operation &op, double begin);
  double visitRead(tgl::ReadOp read, double begin);
  double rowBytes(Levels own, double bytes) const;
  void hold(tgl::ReadOp read, double row);
  double blocksThatHold(double elements) const;
  double visitHeldRow(tgl::ReadOp read, Levels own, double bytes);
  double visitWrite(tgl::WriteOp write, double begin);
  double visitSort(tgl::SortOp sort, double begin);
  double visitPlain(mlir::Operation &op, double begin);
  double visitNest(tgl::AxesOp axes, double begin);
  double visitLoop(tgl::ForOp loop, double begin);
  double visitTiles(tgl::TilesOp tiles, double begin);
  void keepFactors(const LaunchWork &before, double points);
  double combineTeam(double team);
  double longestOfWarp(tgl::AxesOp axes) const;
  double timeOfTurns(mlir::Operation *op, double turns, double each) const;

  /// What reductions have computed, for those that threads walk together with them.
  llvm::DenseMap<mlir::Operation *, llvm::DenseSet<size_t>> computedInSums;
  bool areWalkedTogether(tgl::ReduceOp first, tgl::ReduceOp second);

  /// A loop whose steps load ahead of them (codegen/llvm/PrefetchSteps.h).
  struct LoadsAhead {
    mlir::Value step;     ///< its variable
    size_t level = 0;     ///< of it
    double registers = 0; ///< of what is on its way
    double latency = 0;   ///< of the slowest load, in cycles
  };
  std::optional<LoadsAhead> loadsAhead;
  bool isAhead(tgl::ReadOp read) const;
  void loadAhead(Levels own, double bytes, double latency);
  double waitForLoads() const;
  bool loadsStepsAhead(tgl::ForOp loop) const;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_EXPECTED_STATEMENTWALK_H
