//===- ColumnSplit.h - Columns that threads of a block share, or keep -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Points whose terms are far apart in memory: the terms of one are split over threads of a block,
// or what several nests read of it stays in registers (ColumnSplit.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_SIMT_COLUMNSPLIT_H
#define TEGULA_CODEGEN_SIMT_COLUMNSPLIT_H

#include "codegen/common/Accumulators.h"
#include "codegen/simt/DeviceShape.h"
#include "ir/tgl/Tgl.h"
#include "llvm/IR/IRBuilder.h"

namespace tegula {

class DeviceEmitter;

class ColumnSplit {
public:
  explicit ColumnSplit(DeviceEmitter &e);

  /// Sets the threads of `wanted` that split a column.
  void plan(tgl::ParallelOp op, DeviceShape &wanted);
  /// Plans columns that stay in registers; points side by side that a thread has room for then,
  /// 0: there are none.
  unsigned planKept(tgl::ParallelOp op);
  /// Whether threads that share columns of the statement are enough for the memory, few as its
  /// points may be.
  bool keepsMemoryBusy(tgl::ParallelOp op);

  llvm::Value *slice = nullptr; ///< of the terms of a column: which this thread takes

  void emitParallel(tgl::ParallelOp op);
  Accumulator emitReduce(tgl::ReduceOp op);

private:
  DeviceEmitter &e;
  llvm::IRBuilder<> &b;

  /// Nests of a thread's point that read the same column.
  struct Column {
    llvm::SmallVector<tgl::AxesOp> nests; ///< none: there is no such column
    int64_t values = 0;                   ///< of the column that they read more than once
  };
  Column findColumn(tgl::ParallelOp op);

  unsigned partialBytes(tgl::ParallelOp op);
  std::pair<unsigned, unsigned> splitOfLongColumn(tgl::ParallelOp op);
  unsigned splitOfKeptColumn(tgl::ParallelOp op);
  bool maySplitColumns(tgl::ParallelOp op) const;
  void forSplitPoints(tgl::AxesOp nest, llvm::function_ref<void(llvm::Value *exists)> body);
  Accumulator emitTerms(tgl::ReduceOp op);
  Accumulator combineParts(tgl::ReduceOp op, const Accumulator &own);
};

/// `first`, and reductions of the thread that are walked together with it (ColumnsTogether.cpp).
llvm::SmallVector<tgl::ReduceOp> columnsTogether(DeviceEmitter &e, tgl::ReduceOp first);
/// Emits them, where the first stands.
void emitColumnsTogether(DeviceEmitter &e, llvm::ArrayRef<tgl::ReduceOp> together);

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_COLUMNSPLIT_H
