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

CheckedMainloop::Accumulators
CheckedMainloop::sumParts(unsigned number, function_ref<Accumulators(MmaProduct &product)> ofPart) {
  auto sumPart = [&] {
    MmaProduct product = mma.makeMmaProduct(number);
    return ofPart(product);
  };
  if (tile.splits == tile.sumParts())
    return sumPart();
  e.keepNextLoopRolled = true;
  SmallVector<Value *> zeros(tile.rows * tile.columns / numbers.threads(), zeroAccumulator());
  return e.emitLoop(
      i64(0), i64(tile.parts), i64(1), zeros,
      [&](Value *part, ArrayRef<Value *> before) {
        context.split = part;
        Accumulators sums = sumPart();
        barrier(); // the next part's first stages go where its last are
        for (auto [sum, total] : zip_equal(sums, before))
          sum = addAccumulators(total, sum);
        return sums;
      },
      "part");
}

/// By warps.
void CheckedMainloop::emitMma(unsigned number, unsigned base, function_ref<void()> afterExact) {
  const ProductOperands &how = products[number];
  bool hasTerms = how.a.terms + how.b.terms > 2;
  Accumulators fast = sumParts(number, [&](MmaProduct &product) {
    context.note(product);
    return mma.mmaMainloop(product, Path::Fast);
  });
  if (!hasTerms) {
    barrier(); // shared memory is free once all have summed up
    return mma.storeAccumulators(fast, base);
  }
  Value *isInaccurate = accuracy.isAnyNotFinite(fast); // waits for all
  // What a sum is may depend on others of the tile only where no size has to be invariant. Of a sum
  // in parts those that are finite stay, by whichever block they are added.
  bool isFree = tgl::Invariance::of(tgl::ParallelOp(numbers.plan.op)).isFree();
  bool keepsParts = !isFree && tile.splits < tile.sumParts();
  auto again = [&] {
    return sumParts(number, [&](MmaProduct &product) {
      Accumulators before = fast;
      if (keepsParts) {
        before = mma.mmaMainloop(product, Path::Fast);
        barrier();
      }
      Accumulators exact = mma.mmaMainloop(product, Path::Exact);
      barrier();
      for (auto [sum, its] : zip_equal(exact, before))
        if (!isFree)
          sum = b.CreateSelect(isFinite(b, its), its, sum);
      return exact;
    });
  };
  mma.storeAccumulators(e.emitIfElse(isInaccurate, again, fast), base);
  if (afterExact)
    e.emitIf(isInaccurate, [&] {
      barrier();
      afterExact();
    });
}

/// `afterExact`: where they are not, or may not be, once they have been stored.
void CheckedMainloop::emitCheckedMainloop(unsigned number, function_ref<void()> afterExact) {
  unsigned base = here.accumulatorsBase(number);
  if (!numbers.usesWgmma())
    return emitMma(number, base, afterExact);
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
    MmaProduct product = mma.makeMmaProduct(number);
    Accumulators exact = mma.mmaMainloop(product, Path::Exact);
    barrier(); // shared memory is free once all have summed up
    mma.storeAccumulators(exact, base);
    if (afterExact) {
      barrier();
      afterExact();
    }
  });
}
