//===- WindowTiles.h - Register tiles of overlapping windows ------*- C++ -*-===//
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
#ifndef TEGULA_CODEGEN_SIMT_WINDOWTILES_H
#define TEGULA_CODEGEN_SIMT_WINDOWTILES_H

#include "codegen/simt/WindowRows.h"
#include <map>

namespace tegula {

class DeviceEmitter;

class WindowTiles {
public:
  explicit WindowTiles(DeviceEmitter &e);

  /// Sets the thread's tile of points.
  void plan(tgl::ParallelOp op, llvm::ArrayRef<unsigned> outer,
            const std::optional<LaneChoice> &lane);
  bool isPlanned() const { return rows.isPlanned() || !windowReads.empty(); }
  /// Emits the points of a tile.
  void emit(tgl::ParallelOp op) { rows.isPlanned() ? rows.emit(op) : emitTile(op); }
  /// Emits an operation of a point whose elements are in registers; false where they are not.
  bool emitIn(mlir::Operation *op) { return rows.emitIn(op) || emitInTile(op); }
  /// A reduction of a point of the tile, line by line.
  Accumulator emitReduce(tgl::ReduceOp op);

  /// The elements of a tensor that a read of a reduction covers, by dim.
  struct Window {
    tgl::ReadOp read;
    llvm::SmallVector<tgl::ValueExpr> subscripts; ///< where axes of the reduction are 0
    llvm::SmallVector<int64_t> dims, strides;
    llvm::DenseMap<mlir::Value, llvm::SmallVector<int64_t>> steps; ///< by axis
    llvm::SmallVector<llvm::SmallVector<int64_t>> terms;           ///< displacements
  };

private:
  DeviceEmitter &e;
  llvm::IRBuilder<> &b;
  WindowRows rows;
  std::vector<Window> windowReads;
  /// By read and displacement from where a tile's first point is and axes of the sum are 0.
  std::map<std::pair<mlir::Operation *, llvm::SmallVector<int64_t>>, llvm::Value *> windowElements;
  llvm::Value *windowFirst = nullptr;            ///< of the tile's points along the last axis
  std::pair<int64_t, int64_t> windowPoint{0, 0}; ///< of the tile, which is being written out
  llvm::SmallVector<llvm::Value *> results;      ///< of the vector that is being written out

  void emitTile(tgl::ParallelOp op);
  bool emitInTile(mlir::Operation *op);
  unsigned windowVector(Window &window, int64_t &offColumn);
  std::optional<int64_t> windowSteps(tgl::WriteOp write);
  bool writesVectors(tgl::WriteOp write);
  std::optional<std::pair<int64_t, int64_t>> tileRangeOf(const tgl::ValueExpr &expr);
  void loadWindow(Window &window);
};

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_WINDOWTILES_H
