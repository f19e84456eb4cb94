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
// of them at a time, and while it adds another one's products are under way.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/ConsumerMainloop.h"

using namespace llvm;
using namespace tegula;

/// The most columns whose sums a warpgroup has in registers beside those of all.
static constexpr unsigned maxPartialColumns = 128;

ConsumerMainloop::Accumulators ConsumerMainloop::byteMainloop(const WgmmaProduct &product) {
  if (product.type == MmaType::I8)
    return wgmmaMainloopByStages(product);
  unsigned all = warpgroupColumns(tile), part = all / divideCeil(all, maxPartialColumns);
  Accumulators zeros(all / 2, zeroAccumulator());
  return forStages(product, zeros, [&](Value *number, Value *stage, ArrayRef<Value *> current) {
    Accumulators next;
    for (unsigned first = 0; first < all; first += part) {
      Accumulators partial = warpgroups.multiplyTerms(
          product, stageRings.stageAddress(product, stage), {}, first, part);
      partial = async::readProducts(b, partial);
      if (first + part == all)
        stageRings.release(product, number);
      for (auto [sum, added] : zip_equal(current.slice(first / 2, part / 2), partial))
        next.push_back(b.CreateFAdd(sum, added));
    }
    return next;
  });
}
