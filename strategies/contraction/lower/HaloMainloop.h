//===- HaloMainloop.h - Mainloop of convolutions that read ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Mainloop of convolutions that read halo tiles.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_CONTRACTION_LOWER_HALOMAINLOOP_H
#define TEGULA_STRATEGIES_CONTRACTION_LOWER_HALOMAINLOOP_H

#include "strategies/contraction/lower/WgmmaMainloop.h"
#include "strategies/contraction/lower/load/HaloTile.h"
#include "strategies/contraction/lower/load/StageRings.h"

namespace tegula {

/// Multiplies the stages of A and the halo tiles of B.
class HaloMainloop : public ContractionCode {
public:
  explicit HaloMainloop(ContractionContext &context)
      : ContractionCode(context), stageRings(context), haloLoads(context), warpgroups(context) {}
  Accumulators haloMainloop(const WgmmaProduct &product);

private:
  Accumulators multiplyHalo(const WgmmaProduct &product, Value *inBlock, Value *haloBuffer,
                            Value *inGroup, llvm::ArrayRef<Value *> accumulators);

  StageRings stageRings;
  HaloLoads haloLoads;
  WgmmaMainloop warpgroups;
};

} // namespace tegula

#endif // TEGULA_STRATEGIES_CONTRACTION_LOWER_HALOMAINLOOP_H
