//===- PersistentProducer.h - What producer warps of a per ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What producer warps of a persistent block do.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_PERSISTENTPRODUCER_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_PERSISTENTPRODUCER_H

#include "strategies/contraction/lower/block/PersistentScheduler.h"
#include "strategies/contraction/lower/load/Producer.h"
#include "strategies/contraction/lower/load/StageRings.h"
#include "strategies/contraction/lower/load/SwizzledSharedStore.h"

namespace tegula {

/// Loads the tiles of a persistent block, one after the other.
class PersistentProducer : public ContractionCode {
public:
  explicit PersistentProducer(ContractionContext &context)
      : ContractionCode(context), scheduler(context), wgmmaLoads(context), producer(context),
        stageRings(context) {}
  void producePersistentTiles();

private:
  bool hasOneTile(const TileDim &group) const;
  WgmmaProduct setMovingTile(Value *which);
  void produceShortTiles(unsigned count);

  TileScheduler scheduler;
  WgmmaLoads wgmmaLoads;
  Producer producer;
  StageRings stageRings;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_PERSISTENTPRODUCER_H
