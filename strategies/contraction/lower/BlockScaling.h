//===- BlockScaling.h - Scales of blocks of a sum ---------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Multiplies the sums of a step by its block's scales while they are promoted to f32 registers.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCKSCALING_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCKSCALING_H

#include "strategies/contraction/lower/block/TileIndices.h"

namespace tegula {

/// The scales of a thread's accumulators.
class BlockScaling : public ContractionCode {
public:
  /// Of accumulators that lie `places` from element `first` of the tile. The sum's steps have
  /// `depth` points.
  BlockScaling(ContractionContext &context, const ContractionProduct &product, const KLoop &sum,
               unsigned depth, TileCoord first, llvm::ArrayRef<FragmentStep> places);

  /// Different scales of the thread; 0: there are none.
  unsigned numScales() const { return rows.starts.size() + columns.starts.size(); }
  /// Loads those of the block's step `number` (i64); of its last step where there is no such one.
  Accumulators load(Value *number);
  /// sum + partial * scale for accumulators from number `firstNumber` on; without scales sum +
  /// partial.
  Accumulators promote(llvm::ArrayRef<Value *> loaded, unsigned firstNumber,
                       llvm::ArrayRef<Value *> sums, llvm::ArrayRef<Value *> partial) const;

private:
  /// The rows or columns of a thread that share no scale.
  struct Side {
    const ContractionSide *side;
    const TileDim *group;
    Value *first;                        ///< i32: the thread's first row or column in the tile
    llvm::SmallVector<unsigned> starts;  ///< each scale's, from `first` on
    llvm::SmallVector<unsigned> scaleOf; ///< each accumulator's; empty: there are no scales
  };
  Side describe(const ContractionSide &side, const TileDim &group, Value *first,
                llvm::ArrayRef<unsigned> places);

  const ContractionProduct &product;
  const KLoop &sum;
  unsigned depth;
  TileIndices indices;
  Side rows, columns;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCKSCALING_H
