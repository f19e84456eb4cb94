//===- WindowRows.h - Sliding windows along a row -----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_SIMT_WINDOWROWS_H
#define TEGULA_CODEGEN_SIMT_WINDOWROWS_H

#include "codegen/common/Accumulators.h"
#include "codegen/common/LaneChoices.h"
#include "codegen/simt/DeviceShape.h"
#include "ir/tgl/Tgl.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IRBuilder.h"

namespace tegula {

class DeviceEmitter;

/// Neighbouring elements that the sliding windows of a tile read, in registers.
struct WindowRow {
  int64_t first, length; ///< from where the tile's first point is and axes of the sum are 0
  llvm::SmallVector<int64_t> position; ///< of these axes, at the first
  llvm::SmallVector<llvm::Value *> elements;
};

class WindowRows {
public:
  explicit WindowRows(DeviceEmitter &e);

  /// Sets the thread's tile of points, where it takes less than `steps` (in hundredths).
  void plan(tgl::ParallelOp op, llvm::ArrayRef<unsigned> outer, int64_t steps);
  void clear() { rows.clear(); }
  bool isPlanned() const { return !rows.empty(); }
  /// Emits the points of a tile.
  void emit(tgl::ParallelOp op);
  /// Emits an operation of a point whose elements are in registers; false where they are not.
  bool emitIn(mlir::Operation *op);

private:
  DeviceEmitter &e;
  llvm::IRBuilder<> &b;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<WindowRow>> rows; ///< by read
  int64_t point = -1; ///< of the tile, which is being written out
  llvm::SmallVector<llvm::Value *> results;

  llvm::Value *emitStart(tgl::ParallelOp op, llvm::Value *first);
  llvm::Value *emitAddress(tgl::ReadOp read, const WindowRow &run);
  llvm::Value *emitInside(tgl::ParallelOp op);
  void loadRows(tgl::ParallelOp op);
  void emitTiles(tgl::ParallelOp op, llvm::Value *first);
};

/// Stores the vector at the present axes, where the write's element is its first.
void storeVector(DeviceEmitter &e, tgl::WriteOp write, llvm::Value *vector);

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_WINDOWROWS_H
