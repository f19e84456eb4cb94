//===- ByteMainloop.cpp - Mainloop of 8-bit operands (wgmma) --------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Producers copy bytes as they lie in memory, or as a launch before has ordered them: lines along
// the sum, 128 points of it a stage.
//
// Sums of integers are exact, modulo 2^32, and stay in the registers of the tensor cores' products.
// Of f8 Hopper's tensor cores keep 14 bits of what they add up (DeepSeek-V3, arXiv 2412.19437,
// section 3.3.2), so a stage is summed up from 0 and added to f32 sums: errors do not grow with the
// length of a sum. A warpgroup has no registers for two sets of sums of 256 columns; it takes 128
// of them at a time, and while it adds another one's products are under way. Scales of blocks of
// the sum multiply a stage's sums as they are added.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/BlockScaling.h"
#include "strategies/contraction/lower/ConsumerMainloop.h"

using namespace llvm;
using namespace tegula;

/// The most columns whose sums a warpgroup has in registers beside those of all.
static constexpr unsigned maxPartialColumns = 128;

/// The most scales that are loaded a stage ahead, a register each.
static constexpr unsigned maxScalesAhead = 8;

ConsumerMainloop::Accumulators ConsumerMainloop::byteMainloop(const WgmmaProduct &product) {
  if (product.type == MmaType::I8)
    return wgmmaMainloopByStages(product);
  unsigned all = warpgroupColumns(tile), part = all / divideCeil(all, maxPartialColumns);
  TileCoord corner = wgmmaAccumulatorAt(b, tile, here.thread, here.lane, i32(0));
  SmallVector<FragmentStep> places;
  for (unsigned n = 0; n < all / 2; ++n)
    places.push_back({n / 2 % 2 * 8, n / 4 * 8 + n % 2});
  BlockScaling scaling(context, plan.products[product.number], product.kLoop,
                       product.a.shared.depth(), corner, places);
  // Few scales are loaded a stage ahead: sums that waited for loads would need registers beside the
  // next part's.
  bool loadsAhead = scaling.numScales() <= maxScalesAhead;
  Accumulators carried(all / 2, zeroAccumulator());
  if (loadsAhead)
    carried.append(scaling.load(i64(0)));
  carried =
      forStages(product, carried, [&](Value *number, Value *stage, ArrayRef<Value *> current) {
        Accumulators scales(current.drop_front(all / 2)), next;
        Accumulators following = scaling.load(loadsAhead ? b.CreateAdd(number, i64(1)) : number);
        if (!loadsAhead)
          std::swap(scales, following);
        for (unsigned first = 0; first < all; first += part) {
          Accumulators partial = warpgroups.multiplyTerms(
              product, stageRings.stageAddress(product, stage), {}, first, part);
          partial = async::readProducts(b, partial);
          if (first + part == all)
            stageRings.release(product, number);
          next.append(
              scaling.promote(scales, first / 2, current.slice(first / 2, part / 2), partial));
        }
        next.append(following);
        return next;
      });
  carried.truncate(all / 2);
  return carried;
}
