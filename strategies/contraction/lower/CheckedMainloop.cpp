//===- CheckedMainloop.cpp - The mainloop of a tile: fast, or exact wher ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Accumulators go to their place in shared memory; other threads see them after a barrier.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/CheckedMainloop.h"

using namespace llvm;
using namespace tegula;

/// `afterExact`: where they are not, or may not be, once they have been stored.
void CheckedMainloop::emitCheckedMainloop(unsigned number, function_ref<void()> afterExact) {
  MmaProduct product = mma.makeMmaProduct(number);
  unsigned base = here.accumulatorsBase(number);
  bool hasTerms = product.a.how->terms + product.b.how->terms > 2;
  // Shared memory is free once all have summed up.
  auto emitPath = [&](Path path) {
    Accumulators accumulators = mma.mmaMainloop(product, path);
    barrier();
    return accumulators;
  };
  auto recompute = [&] {
    barrier();
    afterExact();
  };
  if (!numbers.usesWgmma()) {
    context.note(product);
    if (!hasTerms)
      return mma.storeAccumulators(emitPath(Path::Fast), base);
    Accumulators accumulators = mma.mmaMainloop(product, Path::Fast);
    Value *isInaccurate = accuracy.isAnyNotFinite(accumulators); // waits for all
    mma.storeAccumulators(
        e.emitIfElse(isInaccurate, [&] { return emitPath(Path::Exact); }, accumulators), base);
    if (afterExact)
      e.emitIf(isInaccurate, recompute);
    return;
  }
  WgmmaProduct wgmma = wgmmaLoads.makeWgmmaProduct(number);
  context.note(wgmma);
  AccuracyFlags flags;
  Accumulators fast = numbers.isWarpSpecialized() ? consumer.consume(wgmma, flags)
                                                  : warpgroups.wgmmaMainloop(wgmma);
  if (!flags.isInaccurate) {
    barrier();
    return warpgroups.storeWgmmaAccumulators(fast, base);
  }
  e.emitIf(b.CreateNot(flags.isInaccurate), [&] {
    warpgroups.storeWgmmaAccumulators(fast, base);
    accuracy.recomputeFlagged(wgmma, flags, base);
  });
  e.emitIf(flags.isInaccurate, [&] {
    mma.storeAccumulators(emitPath(Path::Exact), base);
    if (afterExact)
      recompute();
  });
}
