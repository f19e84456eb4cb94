//===- SegmentedCombines.h - Runs of equal targets in a warp ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `y[row[z]] += v[z]*x[col[z]]`: where rows are sorted, or come in runs, threads side by side add
// to the same element, one after the other. A warp in which two neighbours meet combines each run
// of equal targets by shuffles, and the last thread of a run alone adds to memory. A warp without
// such neighbours adds as ever: it asks once.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_SIMT_SEGMENTEDCOMBINES_H
#define TEGULA_CODEGEN_SIMT_SEGMENTEDCOMBINES_H

#include "ir/tgl/Tgl.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/Value.h"

namespace tegula {

class DeviceEmitter;

class SegmentedCombines {
public:
  explicit SegmentedCombines(DeviceEmitter &e) : e(e) {}

  /// Takes the combining writes of a statement whose points are a thread each, the last of `outer`
  /// the fastest, where data alone tells neighbours' targets apart.
  void plan(tgl::ParallelOp op, llvm::ArrayRef<unsigned> outer);
  /// Whether any is taken: then all threads of a warp have to come to each write.
  bool isPlanned() const { return !taken.empty(); }
  /// Emits the operation if it is one of these.
  bool emitIn(mlir::Operation *op);

private:
  llvm::Value *combineRuns(tgl::ReduceKind kind, llvm::Value *value, llvm::Value *lane,
                           llvm::Value *first);

  DeviceEmitter &e;
  llvm::DenseSet<mlir::Operation *> taken;
};

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_SEGMENTEDCOMBINES_H
