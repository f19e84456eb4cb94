//===- SplitKTail.h - Split-K of the last partial wave: th ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Split-K of the last partial wave: the K slices of persistent blocks.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_SPLITKTAIL_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_SPLITKTAIL_H

#include "strategies/contraction/lower/block/TileIndices.h"

namespace tegula {

/// The whole tiles of a persistent block, and then its K slice of a remaining tile.
class TailScheduler : public ContractionCode {
public:
  explicit TailScheduler(ContractionContext &context)
      : ContractionCode(context), indices(context) {}
  Value *numTilesOfBlock(const SplitKTail &tail);
  void setTileOfBlock(const SplitKTail &tail, Value *which);
  Value *numStagesOfBlock(const SplitKTail &tail);
  void storeTailSlice(const SplitKTail &tail, llvm::ArrayRef<Value *> accumulators);

private:
  Value *hasTailSlice(const SplitKTail &tail);
  Value *stagesOfSlice(const SplitKTail &tail, Value *number);

  TileIndices indices;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_SPLITKTAIL_H
