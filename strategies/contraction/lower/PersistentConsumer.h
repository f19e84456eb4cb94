//===- PersistentConsumer.h - What consumer warps of a per ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What consumer warps of a persistent block do.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_PERSISTENTCONSUMER_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_PERSISTENTCONSUMER_H

#include "strategies/contraction/lower/CheckedMainloop.h"
#include "strategies/contraction/lower/Epilogue.h"
#include "strategies/contraction/lower/load/Producer.h"

namespace tegula {

/// Multiplies the tiles of a persistent block and runs their epilogues.
class PersistentConsumer : public ContractionCode {
public:
  explicit PersistentConsumer(ContractionContext &context);
  /// By the threads that multiply, once WarpSpecialization has split the block.
  void emit();

private:
  unsigned flaggedTilesBase() const;
  Value *flaggedTilesWord(Value *which);
  void clearFlags();
  void flagTile(Value *which, Value *isInaccurate);
  Value *isTileFlagged(Value *which);

  void synchronize();
  void freeAccumulators();
  void emitEpilogue(unsigned first = 0);
  void finishTile(llvm::ArrayRef<Value *> accumulators);

  void emitTiles(Value *numTiles);
  void emitCheckedTiles(Value *numTiles);
  Value *emitFast(Value *which, Value *numTiles);
  void emitExact();
  Value *emitFastOrExact(Value *which, Value *numTiles, Value *isFirst, Value *isRecomputed);

  TileScheduler scheduler;
  TailScheduler tailScheduler;
  WgmmaLoads wgmmaLoads;
  StageRings stageRings;
  ConsumerMainloop consumer;
  WgmmaMainloop warpgroups;
  MmaMainloop mma;
  AccuracyCheck accuracy;
  Epilogue epilogue;
  bool byWarps;        ///< whether each warp runs the epilogue for its own accumulators
  bool flagsPerThread; ///< whether threads flag tiles without a vote of the block
  bool inBulk;         ///< whether the epilogue stores by cp.async.bulk
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_PERSISTENTCONSUMER_H
