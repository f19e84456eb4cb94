//===- ConsumerMainloop.h - Mainloops of consumer warps ---------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Mainloops of consumer warps.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_CONSUMERMAINLOOP_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_CONSUMERMAINLOOP_H

#include "strategies/contraction/lower/AccuracyCheck.h"
#include "strategies/contraction/lower/HaloMainloop.h"
#include "strategies/contraction/lower/WgmmaMainloop.h"
#include "strategies/contraction/lower/load/PrepackedLoads.h"
#include "strategies/contraction/lower/load/PrologueLoads.h"
#include "strategies/contraction/lower/load/SplitPrecision.h"
#include "strategies/contraction/lower/load/StageRings.h"

namespace tegula {

/// The mainloop of a tile whose stages producer warps load.
class ConsumerMainloop : public ContractionCode {
public:
  explicit ConsumerMainloop(ContractionContext &context)
      : ContractionCode(context), stageRings(context), prologue(context), warpgroups(context),
        prepackedLoads(context), haloMainloop(context), accuracy(context), precision(context) {}
  Accumulators consume(const WgmmaProduct &product, AccuracyFlags &flags,
                       bool flagsPerThread = false);

private:
  Accumulators forStages(const WgmmaProduct &product, Accumulators accumulators,
                         llvm::function_ref<Accumulators(Value *number, Value *stage,
                                                         llvm::ArrayRef<Value *> accumulators)>
                             body);
  Accumulators wgmmaMainloopByStages(const WgmmaProduct &product);
  bool hasRoomForStages(const WgmmaProduct &product);
  Accumulators wgmmaMainloopBySteps(const WgmmaProduct &product);
  Accumulators byteMainloop(const WgmmaProduct &product);

  StageRings stageRings;
  PrologueLoads prologue;
  WgmmaMainloop warpgroups;
  PrepackedLoads prepackedLoads;
  HaloMainloop haloMainloop;
  AccuracyCheck accuracy;
  SplitPrecision precision;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_CONSUMERMAINLOOP_H
