//===- TileIndices.h - Which tile, which points of K and w ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which tile, which points of K and which elements of the operands a block has.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_TILEINDICES_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_TILEINDICES_H

#include "strategies/contraction/lower/block/ContractionContext.h"

namespace tegula {

/// Sets the axes of the statement and of its K loops to the points of a tile.
class TileIndices : public ContractionCode {
public:
  explicit TileIndices(ContractionContext &context) : ContractionCode(context) {}
  /// A point of a K axis in groups of channels: its channel and tap (i64), and whether the tap
  /// exists (i1).
  struct GroupedPoint {
    Value *channel, *tap, *isTap;
  };
  void setTile(Value *number);
  GroupedPoint groupedPoint(const KOrder &order, Value *k);
  void setPoint(tgl::ReduceOp reduce, const KLoop &sum, bool collapses, Value *k);
  Value *existsAt(tgl::ReduceOp reduce, const KLoop &sum, Value *k);
  Value *stepInKLoop(const KLoop &sum, Value *number);
  KLoop makeKLoop(tgl::ReduceOp reduce, int64_t depth, const KOrder &order, unsigned together = 1);
  Value *valueAt(tgl::ReduceOp reduce, const KLoop &sum, const ContractionSide &side,
                 const TileDim &group, Value *k, Value *number);
  Value *narrow(MmaType type, const ContractionOperand &how, Value *value);
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_TILEINDICES_H
