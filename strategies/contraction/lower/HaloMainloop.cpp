//===- HaloMainloop.cpp - Mainloop of convolutions that read halo tiles -===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stage of A is in the ring; B is read from the group's halo tile, at an address for each tap
// (load/HaloTile.cpp).
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/HaloMainloop.h"

using namespace llvm;
using namespace tegula;

/// Starts the products of stage `inGroup` (i32) of a group, the `inBlock`-th of the block,
/// `accumulators` (none: 0) added.
HaloMainloop::Accumulators HaloMainloop::multiplyHalo(const WgmmaProduct &product, Value *inBlock,
                                                      Value *haloBuffer, Value *inGroup,
                                                      ArrayRef<Value *> accumulators) {
  Wgmma warps(b, product.type == MmaType::BF16);
  Value *stage = stageRings.inRing(inBlock);
  const WgmmaSharedLayout &row = product.a.shared;
  unsigned steps = row.depth() / Wgmma::stepDepth;
  SmallVector<Value *> offsets;
  for (unsigned step = 0; step < steps; ++step) {
    Value *number = b.CreateAdd(b.CreateMul(inGroup, i32(steps)), i32(step));
    offsets.push_back(
        b.CreateAlignedLoad(b.getInt32Ty(), haloLoads.tapOffsetsAt(number), Align(4)));
  }
  TileCoord first = warpgroupCorner(b, tile, here.thread);
  Value *haloStart = b.CreatePtrToInt(haloBuffer, b.getInt32Ty());
  haloStart =
      b.CreateAdd(haloStart, b.CreateMul(first.column, i32(ContractionNumbers::haloChunkBytes)));
  Value *rowAddress = b.CreatePtrToInt(stageRings.stageAddress(product, stage), b.getInt32Ty());
  unsigned term = numbers.halo->haloPixels(tile.columns) * ContractionNumbers::haloChunkBytes;
  async::wait(b, context.rings[product.number], inBlock, i32(0));
  Accumulators result(accumulators.begin(), accumulators.end());
  auto multiplyAll = [&](unsigned aTerm, unsigned bTerm) {
    for (unsigned step = 0; step < steps; ++step) {
      Value *rows = warps.descriptor(row, rowAddress, first.row, aTerm, step);
      Value *columns = warps.coreDescriptor(haloStart, offsets[step], bTerm * term);
      result = warps.multiply(result, warpgroupColumns(tile), rows, row.kMajor, columns,
                              /*bKMajor=*/true);
    }
  };
  warpgroups.forTermPairs(product, multiplyAll);
  async::commitProducts(b);
  return result;
}

/// Group by group; where sums are to keep f32's accuracy tensor cores add up no more than 64
/// points.
HaloMainloop::Accumulators HaloMainloop::haloMainloop(const WgmmaProduct &product) {
  unsigned count = product.substeps;
  SmallVector<Value *> zeros(warpgroupColumns(tile) / 2, ConstantFP::get(b.getFloatTy(), 0));
  Value *total = product.stagesInAll ? product.stagesInAll : numStages(product);
  total = b.CreateTrunc(total, b.getInt32Ty());
  auto sumUpGroup = [&](Value *group, ArrayRef<Value *> current) {
    Value *groupInBlock = haloLoads.groupNumber(product, group),
          *haloBuffer = haloLoads.haloAddress(groupInBlock);
    // Of the group's first stage and of all; numbers of 32 bits, as registers are few.
    Value *firstStage = b.CreateTrunc(b.CreateMul(groupInBlock, i64(count)), b.getInt32Ty());
    auto multiply = [&](Value *inGroup, ArrayRef<Value *> accumulators) {
      return multiplyHalo(product, b.CreateAdd(firstStage, inGroup), haloBuffer, inGroup,
                          accumulators);
    };
    auto giveBack = [&](Value *inGroup) { // unless nobody waits for it
      Value *number = b.CreateAdd(firstStage, inGroup);
      e.emitIf(b.CreateICmpULT(b.CreateAdd(number, i32(numbers.ringStages())), total),
               [&] { async::release(b, context.rings[product.number], number); });
    };
    auto addStages = [&](Value *first, unsigned many, ArrayRef<Value *> accumulators) {
      SmallVector<Accumulators> partial{Accumulators()};
      Accumulators next;
      for (unsigned n = 0; n < many; ++n)
        partial.push_back(multiply(b.CreateAdd(first, i32(n)), partial.back()));
      for (unsigned n = 0; n + 1 < many; ++n) {
        async::awaitProducts(b, partial[n + 1].front());
        giveBack(b.CreateAdd(first, i32(n)));
      }
      Accumulators ready = async::readProducts(b, partial.back());
      giveBack(b.CreateAdd(first, i32(many - 1)));
      for (auto [sum, added] : zip_equal(accumulators, ready))
        next.push_back(b.CreateFAdd(sum, added));
      return next;
    };
    Accumulators accumulators(current);
    e.keepNextLoopRolled = true;
    if (product.promotesAccumulators) {
      constexpr unsigned together = 2;
      accumulators = e.emitLoop(
          i64(0), i64(count / together), i64(1), accumulators,
          [&](Value *pair, ArrayRef<Value *> before) {
            return addStages(b.CreateMul(b.CreateTrunc(pair, b.getInt32Ty()), i32(together)),
                             together, before);
          },
          "pair");
      if (count % together)
        accumulators = addStages(i32(count - 1), 1, accumulators);
    } else {
      accumulators = e.emitLoop(
          i64(0), i64(count), i64(1), accumulators,
          [&](Value *number, ArrayRef<Value *> before) {
            Value *inGroup = b.CreateTrunc(number, b.getInt32Ty());
            Accumulators next = multiply(inGroup, before);
            async::awaitProducts(b, before.front());
            e.emitIf(b.CreateICmpNE(inGroup, i32(0)),
                     [&] { giveBack(b.CreateSub(inGroup, i32(1))); });
            return next;
          },
          "stage");
      accumulators = async::readProducts(b, accumulators);
      giveBack(i32(count - 1));
    }
    Value *nextFirst = b.CreateAdd(firstStage, i32(ContractionNumbers::haloBuffers * count));
    e.emitIf(b.CreateICmpULT(nextFirst, total), [&] {
      async::release(b, context.haloRing, b.CreateTrunc(groupInBlock, b.getInt32Ty()));
    });
    return accumulators;
  };
  return e.emitLoop(i64(0), product.kLoop.steps, i64(1), zeros, sumUpGroup, "group");
}
