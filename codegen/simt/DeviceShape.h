//===- DeviceShape.h - How points are distributed over threads ----*- C++ -*-===//
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
#ifndef TEGULA_CODEGEN_SIMT_DEVICESHAPE_H
#define TEGULA_CODEGEN_SIMT_DEVICESHAPE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Value.h"

namespace tegula {

/// How the points of a statement are distributed over threads.
struct DeviceShape {
  unsigned team = 1;        ///< threads for a point: 1, part of a warp, one, or a whole block
  unsigned threads = 256;   ///< of a block
  unsigned lanes = 1;       ///< points of a thread side by side (teams of one alone)
  unsigned rounds = 1;      ///< and such points (vectors) in a tile of windows
  int64_t units = 0;        ///< vectors of all points where some are not full; 0: all are
  unsigned cluster = 1;     ///< blocks that share a point (teams that are whole blocks)
  unsigned sharedBytes = 0; ///< dynamic shared memory of a block
  unsigned columnSplit = 1; ///< threads of a block that split a column (teams of one only)
  bool byThread() const { return team == 1; }
  bool isPartOfWarp() const { return !byThread() && team < 32; }
  /// Points (vectors of points) that a block does at a time.
  unsigned unitsPerBlock() const { return threads / team / columnSplit; }
};

/// Points of a thread's tile along one axis of the statement and along another, which it takes one
/// after another.
struct PointTile {
  unsigned axis = 0, points = 1;
  unsigned slack = 0; ///< points that a line's first tile may begin before it
  unsigned along = 0, wide = 1;
};

/// The body of a distribution. Without `exists` (i1; null: true) `number` repeats the last index,
/// and the results must not count.
using DistributedBody = llvm::function_ref<llvm::SmallVector<llvm::Value *>(
    llvm::Value *number, llvm::Value *exists, llvm::ArrayRef<llvm::Value *> carried)>;

} // namespace tegula

#endif // TEGULA_CODEGEN_SIMT_DEVICESHAPE_H
