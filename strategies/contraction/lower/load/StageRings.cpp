//===- StageRings.cpp - The ring of stages between producer and consumer ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Producers acquire a stage, fill it and commit it; consumers wait for it, multiply and release it.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/load/StageRings.h"

#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

/// The stage of `number` (i32) among all that go through the ring.
Value *StageRings::inRing(Value *number) {
  unsigned stages = numbers.ringStages();
  return isPowerOf2_32(stages) ? b.CreateAnd(number, i32(stages - 1))
                               : b.CreateURem(number, i32(stages));
}

/// Of the ring.
Value *StageRings::followingStage(Value *number, unsigned by) {
  return inRing(b.CreateAdd(number, i32(by)));
}

Value *StageRings::stageAddress(const WgmmaProduct &product, Value *number) {
  return here.sharedAt(b.CreateMul(number, i32(product.stageBytes())));
}

/// How many stages the tile has, where the ring has room for all of them; 0: it has not, or nobody
/// knows.
unsigned StageRings::shortTileStages(const WgmmaProduct &product) {
  auto *known = dyn_cast<ConstantInt>(numStages(product));
  return known && known->getSExtValue() <= numbers.ringStages() ? known->getSExtValue() : 0;
}

//===----------------------------------------------------------------------===//
// Barriers of both roles
//===----------------------------------------------------------------------===//

/// Announces to the other role that barrier `number` (i32) is reached; or waits for the other.
void StageRings::arriveAt(Value *number) {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_arrive_aligned_count,
                    {number, i32(numbers.barrierThreads())});
}

void StageRings::waitAt(Value *number) {
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_count,
                    {number, i32(numbers.barrierThreads())});
}

/// Shared memory is free for the next product.
void StageRings::releaseProducers() {
  if (numbers.usesBulkLoads()) // what it was used for comes before copies, which have a proxy of
                               // their own
    async::publish(b);
  arriveAt(i32(SharedIsFree));
}

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

/// The ring of each product, the same barriers for all, as one begins when the other has ended.
/// Where consumers add up in between each warpgroup goes on by itself, so that one's products are
/// under way while the other adds. Consumers publish where a producer would wait for loads; of a
/// tile of few stages none are under way.
void StageRings::makeRings() {
  context.rings.clear();
  for (unsigned number = 0; number < numbers.numMainloops(); ++number) {
    async::RingShape shape{FirstRing,
                           numbers.ringStages(),
                           1,
                           numbers.barrierThreads() - numbers.threads(),
                           numbers.threads(),
                           false};
    if (numbers.usesBulkLoads()) {
      unsigned bytes = number * numbers.ringStages() * 8;
      context.rings.push_back(
          async::makeCountedRing(b, shape, here.sharedAt(i32(memory.barriersBase() + bytes))));
      continue;
    }
    shape.groups = numbers.signalsPerWarpgroup() ? numbers.threads() / Wgmma::threads : 1;
    shape.fillersPublish = hasShortTiles(wgmmaLoads.makeWgmmaProduct(number));
    context.rings.push_back(async::makeRing(b, shape));
  }
  if (numbers.usesHaloTile()) // that a patch is there stages tell
    context.haloRing =
        async::makeRing(b, {FirstRing + 2 * numbers.ringStages(), ContractionNumbers::haloBuffers,
                            0, numbers.producerThreads(), numbers.threads(), false});
}

/// By producers' first thread: others may use them after a barrier.
void StageRings::initStageBarriers() {
  e.emitIf(b.CreateICmpEQ(here.thread, i32(0)), [&] {
    for (Value *ring : context.rings)
      async::initRing(b, ring);
  });
}

/// Waits for the tile's stage `number` (i64); where it is in the ring (i32).
Value *StageRings::awaitStage(const WgmmaProduct &product, Value *number) {
  Value *inBlock = b.CreateTrunc(stageNumber(product, number), b.getInt32Ty()),
        *stage = inRing(inBlock);
  Value *group =
      numbers.signalsPerWarpgroup() ? b.CreateUDiv(here.thread, i32(Wgmma::threads)) : i32(0);
  async::wait(b, context.rings[product.number], inBlock, group);
  return stage;
}

/// Gives the tile's stage `number` (i64) back, unless nobody waits for it.
void StageRings::release(const WgmmaProduct &product, Value *number) {
  Value *inBlock = stageNumber(product, number),
        *last = b.CreateAdd(inBlock, i64(numbers.ringStages()));
  e.emitIf(
      b.CreateICmpSLT(last, product.stagesInAll ? product.stagesInAll : numStages(product)), [&] {
        async::release(b, context.rings[product.number], b.CreateTrunc(inBlock, b.getInt32Ty()));
      });
}
