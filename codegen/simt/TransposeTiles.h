//===- TransposeTiles.h - Register tiles for transposes -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A register tile: points along what is written by points along what is read, or is written too
// (TransposeTiles.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_SIMT_TRANSPOSETILES_H
#define TEGULA_CODEGEN_SIMT_TRANSPOSETILES_H

#include "codegen/common/LaneChoices.h"
#include "codegen/simt/Rasterize.h"
#include "llvm/ADT/DenseMap.h"

namespace tegula {

class DeviceEmitter;

/// A square of points that one thread takes.
struct TransposeTile {
  unsigned across, along;                      ///< axes: what most accesses lie along, and others
  unsigned side;                               ///< points along either
  llvm::SmallVector<mlir::Operation *> turned; ///< accesses whose vectors lie along `along`
};
/// Nothing where all lie along one axis, or the statement has fewer points or more in it than a
/// thread takes.
std::optional<TransposeTile> chooseTransposeTile(tgl::ParallelOp op);

class TransposeTiles {
public:
  explicit TransposeTiles(DeviceEmitter &e);

  /// Sets the thread's tile of points, the order of axes, lanes and points.
  void plan(tgl::ParallelOp op, llvm::SmallVectorImpl<unsigned> &outer,
            std::optional<LaneChoice> &lane, Raster &raster);
  bool isPlanned() const { return !rows.empty() || !columns.empty(); }
  /// Emits the points of a tile.
  void emit(tgl::ParallelOp op);
  /// Emits a read whose vectors are in registers, or keeps there what is written; false where
  /// neither is so.
  bool emitIn(mlir::Operation *op);

private:
  void storeColumns(tgl::WriteOp write, llvm::ArrayRef<llvm::Value *> kept, mlir::Value along,
                    llvm::Value *first);

  DeviceEmitter &e;
  llvm::IRBuilder<> &b;
  unsigned across = 0;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<llvm::Value *>>
      rows,           ///< by read: vectors along the other axis
      columns;        ///< by write: vectors of its points, which are turned when all are there
  int64_t point = -1; ///< of that, which is being written out
};

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_TRANSPOSETILES_H
