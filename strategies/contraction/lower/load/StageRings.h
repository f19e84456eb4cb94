//===- StageRings.h - The ring of stages between producer -------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ring of stages between producer and consumer warps.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_STAGERINGS_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_STAGERINGS_H

#include "strategies/contraction/lower/load/SwizzledSharedStore.h"

namespace tegula {

/// The ring of stages of each product, and the named barriers of the two roles.
class StageRings : public ContractionCode {
public:
  explicit StageRings(ContractionContext &context)
      : ContractionCode(context), wgmmaLoads(context) {}
  Value *inRing(Value *number);
  Value *followingStage(Value *number, unsigned by);
  Value *stageAddress(const WgmmaProduct &product, Value *number);
  unsigned shortTileStages(const WgmmaProduct &product);
  void arriveAt(Value *number);
  void waitAt(Value *number);
  void releaseProducers();
  void makeRings();
  void initStageBarriers();
  Value *awaitStage(const WgmmaProduct &product, Value *number);
  void release(const WgmmaProduct &product, Value *number);
  bool hasShortTiles(const WgmmaProduct &product) {
    return !numbers.hasCopyProducers() && shortTileStages(product);
  }

private:
  WgmmaLoads wgmmaLoads;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_STAGERINGS_H
