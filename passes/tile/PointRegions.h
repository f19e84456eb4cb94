//===- PointRegions.h - Regions that compute a point ------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Clones what a statement computes at a point into the region of an op of the tile dialect.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_TILE_POINTREGIONS_H
#define TEGULA_PASSES_TILE_POINTREGIONS_H

#include "ir/tgl/TglUtils.h"
#include "ir/tile/Tile.h"
#include "mlir/IR/IRMapping.h"

namespace tegula::tile {

/// Sets the axes of `packed`, slowest first, to what the number of a point of all of them says.
void mapPackedAxes(mlir::OpBuilder &builder, tgl::AxesOp axes, llvm::ArrayRef<unsigned> packed,
                   mlir::Value number, mlir::IRMapping &inside);

/// Clones what computes the value inside of `around`, where that is not mapped yet. The value
/// there.
mlir::Value cloneValue(mlir::OpBuilder &builder, mlir::Value value, mlir::Operation *around,
                       mlir::IRMapping &inside);

/// Folds index arithmetic into subscripts, and erases what is not used.
void finishPoint(mlir::Block &point);

/// Names of a region's arguments; those after the last have none.
void setPointNames(PointsOp points, llvm::ArrayRef<llvm::StringRef> names);

} // namespace tegula::tile

#endif // TEGULA_PASSES_TILE_POINTREGIONS_H
