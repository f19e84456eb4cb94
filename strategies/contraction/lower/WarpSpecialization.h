//===- WarpSpecialization.h - Producer and consumer warps -------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Producer and consumer warps.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_WARPSPECIALIZATION_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_WARPSPECIALIZATION_H

#include "strategies/contraction/lower/load/HaloTile.h"
#include "strategies/contraction/lower/load/PrologueLoads.h"
#include "strategies/contraction/lower/load/StageRings.h"
#include "strategies/contraction/lower/load/TmaDescriptors.h"

namespace tegula {

/// Splits the threads of a block into producers and consumers.
class WarpSpecialization : public ContractionCode {
public:
  explicit WarpSpecialization(ContractionContext &context)
      : ContractionCode(context), stageRings(context), prologue(context), tmaDescriptors(context),
        haloLoads(context) {}
  void runProducers(llvm::function_ref<void()> body);
  void start(llvm::function_ref<void()> produceAll);

private:
  StageRings stageRings;
  PrologueLoads prologue;
  TmaDescriptors tmaDescriptors;
  HaloLoads haloLoads;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_WARPSPECIALIZATION_H
