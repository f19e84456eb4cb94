//===- LaunchWork.h - What a launch asks of the device ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counted on a scheduled statement, at known sizes: bytes, accesses, operations by unit, atomics,
// how many threads there are and how long one of them is busy. What data decide is estimated, and
// marked (`isEstimate`). ExpectedTime.h makes a time of it.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_EXPECTED_LAUNCHWORK_H
#define TEGULA_STRATEGIES_EXPECTED_LAUNCHWORK_H

#include "strategies/Strategy.h"
#include "llvm/ADT/MapVector.h"

namespace tegula {

struct LaunchWork {
  std::string strategy;
  LaunchUnit unit = LaunchUnit::Lanes32;
  /// Times that loops around the launch run it.
  double runs = 1;
  /// Points of the statement's own axes; threads that share one (1: a thread has whole points);
  /// points that a thread takes as a vector.
  double points = 1, team = 1, vector = 1, blockThreads = 256;
  /// Registers of a thread, or its part of shared memory, for rows that its team reads again.
  double heldRegisters = 0;
  double columnSplit = 1; ///< threads that share the terms of a point, beside those of a team

  /// Bytes of each element that is read or written, once; of what is read, those that earlier
  /// launches have left in the second-level cache.
  double bytesRead = 0, bytesWritten = 0, bytesCached = 0;

  /// 32-byte sectors that warps ask the first-level caches and shared memory for, at least four an
  /// access; bytes that the first-level caches ask the second for.
  double sectors = 0, cacheBytes = 0;
  /// Instructions of lanes, with the number that an elementary function takes; of f64 beside.
  double instructions = 0, doubles = 0;
  /// Instructions for what tile loops of few rows read, in tiles of 16 rows.
  double tileInstructions = 0;
  /// Of reductions over a product's columns by warpgroups.
  double columnInstructions = 0;
  /// Multiplications and additions of sums of products, each pair as one.
  double products = 0;
  /// Operations on floats as the program has them, functions as one, and steps of reductions.
  double operations = 0;
  double atomics = 0, atomicTargets = 0;
  /// Cycles that one point takes where nothing waits for others: dependent instructions and loads.
  double chain = 0;
  /// Of sorts: elements, those of a row, and bytes of a key.
  double sorted = 0, sortedRow = 0, keyBytes = 0;
  /// Device launches of one run; passes over the data that is sorted.
  double launches = 1, passes = 1;
  /// Blocks that are busy, where the strategy says so; 0: as many as points and teams make.
  double blocks = 0;
  /// Clocks of a multiprocessor by the strategy's own model.
  std::optional<double> clocks;
  /// Products of tiles that the strategy does not skip, as a share of all.
  double computed = 1;
  /// 1 where lanes and tensor cores of a tile loop's block take turns.
  double takesTurns = 0;
  bool isEstimate = false;

  /// The counts and their names, for programs.
  static llvm::ArrayRef<std::pair<llvm::StringRef, double LaunchWork::*>> counts();
};

/// Counts the statements of a scheduled kernel, in order.
class LaunchWorkCounter {
public:
  /// Nothing where sizes are not known. `match` may be null: general code.
  std::optional<LaunchWork> count(tgl::ParallelOp statement, const StatementMatch *match);

  /// What a launch touches of a tensor, in bytes, each element once.
  struct Traffic {
    double read = 0, written = 0;
    double size = 0;    ///< of the whole tensor
    bool moves = false; ///< with the steps of a loop around the launch
  };
  using TrafficOfTensors = llvm::MapVector<mlir::Value, Traffic>;

private:
  void takeFromCache(const TrafficOfTensors &traffic, LaunchWork &work);

  /// The bytes that had been touched when a tensor was touched last, and in all.
  llvm::DenseMap<mlir::Value, double> touched;
  double bytes = 0;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_EXPECTED_LAUNCHWORK_H
