//===- ConsumerMainloop.cpp - Mainloops of consumer warps ---------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Consumers wait for a stage, multiply it and release it. Accumulators stay in the registers of the
// tensor cores' products, or are promoted to f32 registers after each step.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/ConsumerMainloop.h"

#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;

/// `body` for each of the tile's stages when it is there, with what `body` made of the one before;
/// what it makes of the last.
ConsumerMainloop::Accumulators
ConsumerMainloop::forStages(const WgmmaProduct &product, Accumulators accumulators,
                            function_ref<Accumulators(Value *, Value *, ArrayRef<Value *>)> body) {
  unsigned numAccumulators = accumulators.size();
  accumulators.append(context.prologueLoads);
  Accumulators last = e.emitLoop(
      i64(0), numStages(product), i64(1), accumulators,
      [&](Value *number, ArrayRef<Value *> carried) {
        Value *stage = stageRings.awaitStage(product, number),
              *inBlock = b.CreateTrunc(stageNumber(product, number), b.getInt32Ty());
        SmallVector<Value *> copies =
            prologue.awaitPrologueLoad(inBlock, carried.drop_front(numAccumulators));
        Accumulators next = body(number, stage, carried.take_front(numAccumulators));
        next.append(copies);
        return next;
      },
      "stage");
  last.truncate(numAccumulators);
  return last;
}

/// Sums of stages one after the other, those of the next begun while one's are under way.
ConsumerMainloop::Accumulators
ConsumerMainloop::wgmmaMainloopByStages(const WgmmaProduct &product) {
  Accumulators zeros(warpgroupColumns(tile) / 2, zeroAccumulator());
  Accumulators last =
      forStages(product, zeros, [&](Value *number, Value *stage, ArrayRef<Value *> current) {
        Value *before = b.CreateSub(number, i64(1));
        Accumulators accumulators =
            warpgroups.multiplyTerms(product, stageRings.stageAddress(product, stage), current);
        async::awaitProducts(b, current.front());
        e.emitIf(b.CreateICmpSGE(before, i64(0)), [&] { stageRings.release(product, before); });
        return accumulators;
      });
  Accumulators accumulators = async::readProducts(b, last);
  if (product.stagesInAll) // another tile's may wait for it
    stageRings.release(product, b.CreateSub(numStages(product), i64(1)));
  return accumulators;
}

/// Whether registers hold sums and those of a step's stages, so that one's are added while the next
/// are under way.
bool ConsumerMainloop::hasRoomForStages(const WgmmaProduct &product) {
  constexpr unsigned ofPlaces = 40;
  return (1 + product.substeps) * warpgroupColumns(tile) / 2 + ofPlaces <=
         numbers.roleRegisters().consumer;
}

/// Sums of one stage or a step's, each added to those before in registers. Tensor cores cut off
/// what does not fit: of positive sums of a step, 64 points, a part of 2.7e-7, of a stage's one of
/// 8e-8. A long sum of f32 loses more by its own roundings, unless it is in parts: then these
/// average out, and what is cut off does not. Of a short sum a stage is waited for at once, which
/// is faster than two together: 0.96 of the time for 512 x 512 x 512 (H200).
ConsumerMainloop::Accumulators ConsumerMainloop::wgmmaMainloopBySteps(const WgmmaProduct &product) {
  constexpr int64_t shortSum = 512;
  std::optional<int64_t> points =
      tgl::knownPoints(cast<tgl::AxesOp>(tgl::ReduceOp(product.reduce).getOperation()));
  bool isShort = points && *points <= shortSum, addsEach = isShort || tile.splits > 1;
  unsigned together = isShort || (addsEach && !hasRoomForStages(product)) ? 1 : product.substeps;
  SmallVector<Value *> zeros(warpgroupColumns(tile) / 2, ConstantFP::get(b.getFloatTy(), 0));
  auto addStages = [&](Value *first, ArrayRef<Value *> current) {
    Accumulators accumulators(current);
    SmallVector<Accumulators> partial;
    for (unsigned n = 0; n < together; ++n) {
      Value *stage = stageRings.awaitStage(product, b.CreateAdd(first, i64(n)));
      Accumulators before = n && !addsEach ? partial.back() : Accumulators();
      partial.push_back(
          warpgroups.multiplyTerms(product, stageRings.stageAddress(product, stage), before));
    }
    for (unsigned n = 0; n < together; ++n) {
      bool isAdded = addsEach || n + 1 == together;
      Accumulators added = isAdded ? async::readProducts(b, partial[n]) : Accumulators();
      if (!isAdded)
        async::awaitProducts(b, partial[n].front());
      stageRings.release(product, b.CreateAdd(first, i64(n)));
      for (auto [number, one] : enumerate(added))
        accumulators[number] = b.CreateFAdd(accumulators[number], one);
    }
    return accumulators;
  };
  return e.emitLoop(
      i64(0), product.kLoop.steps, i64(1), zeros,
      [&](Value *step, ArrayRef<Value *> current) {
        Accumulators accumulators(current);
        for (unsigned substep = 0; substep < product.substeps; substep += together)
          accumulators = addStages(
              b.CreateAdd(b.CreateMul(step, i64(product.substeps)), i64(substep)), accumulators);
        return accumulators;
      },
      "step");
}

/// Shared memory is free for sums.
ConsumerMainloop::Accumulators
ConsumerMainloop::consume(const WgmmaProduct &product, AccuracyFlags &flags, bool flagsPerThread) {
  if (numbers.isPrepacked() && numbers.usesSplitPrecision())
    prepackedLoads.loadScales(product);
  Accumulators accumulators = numbers.usesHaloTile()         ? haloMainloop.haloMainloop(product)
                              : numbers.areBytes()           ? byteMainloop(product)
                              : product.promotesAccumulators ? wgmmaMainloopBySteps(product)
                                                             : wgmmaMainloopByStages(product);
  if (!numbers.usesSplitPrecision())
    return accumulators;
  if (numbers.isPrepacked() &&
      numbers.usesBulkLoads()) // else all have met since scales were stored
    barrier();
  flags = accuracy.flagInaccurate(product, accumulators);
  precision.unscale(product, accumulators);
  flags.isInaccurate = accuracy.isAnyNotFinite(accumulators, flags.isInaccurate, flagsPerThread);
  return accumulators;
}
