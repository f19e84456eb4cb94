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

#include "ir/tgl/Invariance.h"

using namespace llvm;
using namespace tegula;

static Value *isFinite(IRBuilderBase &b, Value *sum) {
  return b.CreateFCmpOLT(b.CreateUnaryIntrinsic(Intrinsic::fabs, sum),
                         ConstantFP::getInfinity(sum->getType()));
}

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
    // What a sum is may depend on others of the tile only where no size has to be invariant.
    bool isFree = tgl::Invariance::of(tgl::ParallelOp(numbers.plan.op)).isFree();
    auto again = [&] {
      Accumulators exact = emitPath(Path::Exact);
      for (auto [sum, fast] : zip_equal(exact, accumulators))
        if (!isFree)
          sum = b.CreateSelect(isFinite(b, fast), fast, sum);
      return exact;
    };
    mma.storeAccumulators(e.emitIfElse(isInaccurate, again, accumulators), base);
    if (afterExact)
      e.emitIf(isInaccurate, recompute);
    return;
  }
  WgmmaProduct wgmma = wgmmaLoads.makeWgmmaProduct(number);
  context.note(wgmma);
  AccuracyFlags flags;
  Accumulators fast = numbers.isWarpSpecialized() ? consumer.consume(wgmma, flags)
                      : numbers.usesBF16Terms()   ? warpgroups.wgmmaMainloopOfTerms(wgmma)
                                                  : warpgroups.wgmmaMainloop(wgmma);
  // Terms of bf16 hold every element: there are no sums to be computed again one by one.
  if (numbers.usesBF16Terms())
    flags.isInaccurate = accuracy.isAnyNotFinite(fast);
  if (!flags.isInaccurate) {
    barrier();
    return warpgroups.storeWgmmaAccumulators(fast, base);
  }
  e.emitIf(b.CreateNot(flags.isInaccurate), [&] {
    warpgroups.storeWgmmaAccumulators(fast, base);
    if (flags.flagged)
      accuracy.recomputeFlagged(wgmma, flags, base);
  });
  e.emitIf(flags.isInaccurate, [&] {
    mma.storeAccumulators(emitPath(Path::Exact), base);
    if (afterExact)
      recompute();
  });
}
