//===- Tile.h - The tile dialect ----------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Dialect, types, attributes and operations; TileDialect.td and TileOps.td say what they mean.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_TILE_TILE_H
#define TEGULA_IR_TILE_TILE_H

#include "ir/tgl/Tgl.h"

#include "ir/tile/TileDialect.h.inc"
#include "ir/tile/TileEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/tile/TileAttributes.h.inc"

namespace tegula::tile {

/// The layout of accumulators, `#tile.mma` or `#tile.wgmma`: which warps have which fragments of
/// 16 x 8 of a tile.
class FragmentLayout : public mlir::Attribute {
public:
  using Attribute::Attribute;
  static bool classof(mlir::Attribute attribute) {
    return llvm::isa<MmaLayoutAttr, WgmmaLayoutAttr>(attribute);
  }

  int64_t getWarpRows() const;
  int64_t getWarpColumns() const;
  int64_t getWarpSlices() const;
  int64_t getThreads() const;
  /// Whether warps have slices of the sum.
  bool isSliced() const { return getWarpSlices() > 1; }
  /// Whether products are under way until they are waited for.
  bool isAsynchronous() const { return llvm::isa<WgmmaLayoutAttr>(*this); }
};

/// Whether elements of the type have 8 bits: f8, i8 and u8, all of which are numbers of bf16 and of
/// f16.
bool isByte(mlir::Type element);

} // namespace tegula::tile

#define GET_TYPEDEF_CLASSES
#include "ir/tile/TileTypes.h.inc"

#include "ir/tile/TileInterfaces.h.inc"
#define GET_OP_CLASSES
#include "ir/tile/TileOps.h.inc"

namespace tegula::tile {

/// Whether the expression is a multiple of `number` wherever loop variables, axes and sizes are: it
/// moves by multiples along each, from one.
bool isMultipleEverywhere(tgl::ValueExpr expr, int64_t number);

/// Whether neighbours along the axis are inside where one is that reads at the same place but for
/// the axis: what data adds to a subscript is in none that the axis is in.
bool isInsideTogether(tgl::ReadOp read, mlir::BlockArgument axis);

} // namespace tegula::tile

#endif // TEGULA_IR_TILE_TILE_H
