//===- PersistentScheduler.h - The tile scheduler of persi ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tile scheduler of persistent blocks.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_PERSISTENTSCHEDULER_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_PERSISTENTSCHEDULER_H

#include "strategies/contraction/lower/block/SplitKTail.h"
#include "strategies/contraction/lower/block/TileIndices.h"

namespace tegula {

/// The tiles of a persistent block, one after the other.
class TileScheduler : public ContractionCode {
public:
  explicit TileScheduler(ContractionContext &context)
      : ContractionCode(context), indices(context), tailScheduler(context) {}
  Value *numTilesOfBlock();
  void setTileOfBlock(Value *which);
  void setStages(WgmmaProduct &product, Value *which);

private:
  TileIndices indices;
  TailScheduler tailScheduler;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_BLOCK_PERSISTENTSCHEDULER_H
