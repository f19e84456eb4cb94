//===- Threads.h - How general code deals points out -*- C++ -*- ----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The decisions of general code (codegen/simt): a thread or a team for a point, and the axes that
// become vectors.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_EXPECTED_THREADS_H
#define TEGULA_STRATEGIES_EXPECTED_THREADS_H

#include "codegen/common/LaneChoices.h"

namespace tegula {

struct StatementThreads {
  double team = 1;        ///< threads that share a point
  double block = 256;     ///< threads of a block
  double vector = 1;      ///< points that a thread takes side by side
  double columnSplit = 1; ///< threads that share a column (codegen/simt/ColumnSplit.h)
  mlir::Value lane;       ///< the axis along which it does; null: none
  /// The axes of a square of points of a thread that turns it; null: none.
  mlir::Value across, along;

  /// Of a strategy that has its points in tiles: one after another.
  StatementThreads() = default;
  /// Of general code.
  explicit StatementThreads(tgl::ParallelOp statement);

  /// The vectors of a nest inside.
  std::optional<LaneChoice> laneOf(tgl::AxesOp nest);

private:
  LaneChoices choices;
  bool hasLanes = false;

  void findColumnSplit(tgl::ParallelOp statement);
  static bool columnsKeepMemoryBusy(tgl::ParallelOp statement);
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_EXPECTED_THREADS_H
