//===- WgmmaMainloop.cpp - Mainloop of warpgroup MMAs (wgmma) -------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step's products are under way while the copies of a later one are, and while elements of the
// next are loaded and stored. Sums of values of f32 are ConsumerMainloop.cpp's.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/WgmmaMainloop.h"

#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;

//===----------------------------------------------------------------------===//
// Accumulators
//===----------------------------------------------------------------------===//

void WgmmaMainloop::storeWgmmaAccumulators(ArrayRef<Value *> accumulators, unsigned base) {
  // Places are a constant from the first, which the optimiser does not see.
  TileCoord first = wgmmaAccumulatorAt(b, tile, here.thread, here.lane, i32(0));
  Value *inGroup = b.CreateSub(first.column, warpgroupCorner(b, tile, here.thread).column);
  Value *place =
      here.accumulatorAddress(first.row, b.CreateAdd(here.epilogueCorner(), inGroup), base);
  for (unsigned number = 0; number < accumulators.size(); number += 2) {
    unsigned further = number / 2 % 2 * 8 * memory.accumulatorsPitch() + number / 4 * 8;
    storePair(accumulators[number], accumulators[number + 1],
              b.CreateConstInBoundsGEP1_32(b.getInt8Ty(), place, further * 4));
  }
}

WgmmaMainloop::Accumulators WgmmaMainloop::multiplyTerms(const WgmmaProduct &product, Value *stage,
                                                         ArrayRef<Value *> accumulators) {
  return multiplyTerms(product, stage, accumulators, 0, warpgroupColumns(tile));
}

void WgmmaMainloop::forTermPairs(const WgmmaProduct &product,
                                 function_ref<void(unsigned aTerm, unsigned bTerm)> multiply) {
  // Small products first: what is cut off is as small as the sum so far.
  for (unsigned plane = product.planes() - 1; plane > 0; --plane)
    multiply(product.a.planes > 1 ? plane : 0, product.b.planes > 1 ? plane : 0);
  if (product.b.terms > 1)
    multiply(0, 1);
  if (product.a.terms > 1)
    multiply(1, 0);
  multiply(0, 0);
}

/// Starts the products of a stage, `accumulators` (none: 0) added.
WgmmaMainloop::Accumulators WgmmaMainloop::multiplyTerms(const WgmmaProduct &product, Value *stage,
                                                         ArrayRef<Value *> accumulators,
                                                         unsigned firstColumn, unsigned columns) {
  Wgmma warps = wgmmaLoads.wgmmaFor(product);
  TileCoord first = warpgroupCorner(b, tile, here.thread);
  Value *address = b.CreatePtrToInt(stage, b.getInt32Ty());
  Accumulators result(accumulators.begin(), accumulators.end());
  auto multiply = [&](unsigned step, unsigned aTerm, unsigned bTerm) {
    const WgmmaSharedLayout &row = product.a.shared, &column = product.b.shared;
    auto descriptor = [&](const WgmmaOperand &operand, Value *line, unsigned term, unsigned bytes) {
      bool hasPlanes = operand.planes > 1; // else terms lie beside each other
      return warps.descriptor(operand.shared, b.CreateAdd(address, i32(operand.offset)), line,
                              hasPlanes ? 0 : term, step,
                              bytes + (hasPlanes ? term * operand.shared.bytes() : 0));
    };
    Value *aDescriptor = descriptor(product.a, first.row, aTerm, 0);
    Value *bDescriptor =
        descriptor(product.b, first.column, bTerm, firstColumn * WgmmaSharedLayout::lineBytes);
    result = warps.multiply(result, columns, aDescriptor, row.kMajor, bDescriptor, column.kMajor);
  };
  unsigned steps = WgmmaSharedLayout::lineBytes / product.a.shared.terms / Wgmma::stepBytes;
  auto multiplyAll = [&](unsigned aTerm, unsigned bTerm) {
    for (unsigned step = 0; step < steps; ++step)
      multiply(step, aTerm, bTerm);
  };
  forTermPairs(product, multiplyAll);
  async::commitProducts(b);
  return result;
}

/// Of terms of bf16: a step's sums begin with 0 and are added to those before in registers, since
/// tensor cores cut off more than f32 does. Elements of the next step are split and stored while
/// they are under way. There are two stages.
WgmmaMainloop::Accumulators WgmmaMainloop::wgmmaMainloopOfTerms(const WgmmaProduct &product) {
  Value *total = product.kLoop.steps;
  bool copies = product.copies();
  auto stageAt = [&](Value *stage) { return stageRings.stageAddress(product, stage); };
  auto copy = [&](Value *number, Value *stage) {
    e.emitIf(b.CreateICmpSLT(number, total), [&] {
      wgmmaLoads.copyChunks(product, indices.stepInKLoop(product.kLoop, number), stageAt(stage));
    });
    return async::commitCopies(b);
  };
  unsigned numAccumulators = warpgroupColumns(tile) / 2;
  SmallVector<Value *> carried{i32(0)};
  carried.append(numAccumulators, ConstantFP::get(b.getFloatTy(), 0));
  if (copies)
    carried.push_back(copy(i64(0), i32(0)));
  SmallVector<Value *> chunks = wgmmaLoads.loadChunks(
      product, indices.stepInKLoop(product.kLoop, i64(0))); // there is at least one step
  wgmmaLoads.storeChunks(product, chunks, {}, stageAt(i32(0)));
  async::publish(b);
  carried.append(wgmmaLoads.loadNext(product, i64(1)));
  SmallVector<Value *> last = e.emitLoop(
      i64(0), total, i64(1), carried,
      [&](Value *number, ArrayRef<Value *> current) {
        Value *stage = current.front(), *other = stageRings.followingStage(stage, 1);
        SmallVector<Value *> next{other};
        if (copies) {
          async::awaitCopies(b, current[1 + numAccumulators]);
          async::publish(b);
        }
        barrier(); // this step's tiles are there; those of the step before have been multiplied
        Accumulators partial = multiplyTerms(product, stageAt(stage), {});
        Value *following = b.CreateAdd(number, i64(1)),
              *copied = copies ? copy(following, other) : nullptr;
        e.emitIf(b.CreateICmpSLT(following, total), [&] {
          wgmmaLoads.storeChunks(product, current.drop_front(1 + numAccumulators + copies), {},
                                 stageAt(other));
          async::publish(b);
        });
        SmallVector<Value *> chunks = wgmmaLoads.loadNext(product, b.CreateAdd(number, i64(2)));
        for (auto [sum, before] :
             zip_equal(async::readProducts(b, partial), current.slice(1, numAccumulators)))
          next.push_back(b.CreateFAdd(before, sum));
        if (copies)
          next.push_back(copied);
        next.append(chunks);
        return next;
      },
      "step");
  if (copies)
    async::awaitAllCopies(b);
  return Accumulators(ArrayRef(last).slice(1, numAccumulators));
}

/// Of 16-bit numbers; shared memory is free for sums after a barrier.
WgmmaMainloop::Accumulators WgmmaMainloop::wgmmaMainloop(const WgmmaProduct &product) {
  Wgmma warps(b, product.type == MmaType::BF16);
  unsigned ahead = numbers.ringStages() - 2;
  bool copies = product.copies(), evaluates = product.evaluates();
  Value *total = product.kLoop.steps;
  auto copy = [&](Value *number, Value *stage) {
    e.emitIf(b.CreateICmpSLT(number, total), [&] {
      wgmmaLoads.copyChunks(product, indices.stepInKLoop(product.kLoop, number),
                            stageRings.stageAddress(product, stage));
    });
    return async::commitCopies(b);
  };
  SmallVector<Value *> ofStages; // copies under way, of the next stage first
  for (unsigned number = 0; copies && number < ahead; ++number)
    ofStages.push_back(copy(i64(number), i32(number)));
  SmallVector<Value *> chunks;
  if (evaluates) {
    chunks = wgmmaLoads.loadChunks(
        product, indices.stepInKLoop(product.kLoop, i64(0))); // there is at least one step
    wgmmaLoads.storeChunks(product, chunks, {}, stageRings.stageAddress(product, i32(0)));
    async::publish(b);
    chunks = wgmmaLoads.loadNext(product, i64(1));
  }

  // Carried: the stage; sums; copies; the next step's units.
  unsigned numAccumulators = warpgroupColumns(tile) / 2, numCopies = ofStages.size(),
           numChunks = chunks.size();
  SmallVector<Value *> carried{i32(0)};
  carried.append(numAccumulators, ConstantFP::get(b.getFloatTy(), 0));
  carried.append(ofStages);
  carried.append(chunks);
  SmallVector<Value *> last = e.emitLoop(
      i64(0), total, i64(1), carried,
      [&](Value *number, ArrayRef<Value *> current) {
        Value *stage = current.front();
        ArrayRef<Value *> before = current.slice(1, numAccumulators);
        SmallVector<Value *> ofStages(current.slice(1 + numAccumulators, numCopies)),
            chunks(current.take_back(numChunks));
        if (copies) {
          async::awaitCopies(b, ofStages.front());
          async::publish(b);
        }
        barrier(); // this step's tiles are there; those of two steps before have been multiplied
        Accumulators accumulators =
            multiplyTerms(product, stageRings.stageAddress(product, stage), before);
        if (copies) {
          ofStages.erase(ofStages.begin());
          ofStages.push_back(
              copy(b.CreateAdd(number, i64(ahead)), stageRings.followingStage(stage, ahead)));
        }
        if (evaluates) {
          e.emitIf(b.CreateICmpSLT(b.CreateAdd(number, i64(1)), total), [&] {
            wgmmaLoads.storeChunks(
                product, chunks, {},
                stageRings.stageAddress(product, stageRings.followingStage(stage, 1)));
            async::publish(b);
          });
          chunks = wgmmaLoads.loadNext(product, b.CreateAdd(number, i64(2)));
        }
        async::awaitProducts(b, before.front());
        SmallVector<Value *> next{stageRings.followingStage(stage, 1)};
        next.append(accumulators);
        next.append(ofStages);
        next.append(chunks);
        return next;
      },
      "step");
  if (copies)
    async::awaitAllCopies(b);
  return async::readProducts(b, ArrayRef(last).slice(1, numAccumulators));
}
