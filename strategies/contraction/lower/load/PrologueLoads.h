//===- PrologueLoads.h - Pipeline prologue: the first stag ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Pipeline prologue: the first stages by cp.async.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_PROLOGUELOADS_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_PROLOGUELOADS_H

#include "strategies/contraction/lower/block/PersistentScheduler.h"
#include "strategies/contraction/lower/load/StageRings.h"
#include "strategies/contraction/lower/load/SwizzledSharedStore.h"

namespace tegula {

/// The first stages of a block, which consumers load while a producer makes TMA descriptors.
class PrologueLoads : public ContractionCode {
public:
  explicit PrologueLoads(ContractionContext &context)
      : ContractionCode(context), wgmmaLoads(context), scheduler(context), stageRings(context) {}
  unsigned numPrologueStages();
  void skipPrologueStages();
  void issuePrologueLoads();
  llvm::SmallVector<Value *> awaitPrologueLoad(Value *number, llvm::ArrayRef<Value *> copies);

private:
  WgmmaLoads wgmmaLoads;
  TileScheduler scheduler;
  StageRings stageRings;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_LOAD_PROLOGUELOADS_H
