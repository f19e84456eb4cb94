//===- ByteSums.cpp - Sums of products of bytes by warpgroups --------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Producers copy bytes as they lie in memory, or as a launch before has ordered them: lines along the sum, 128 points
// of it a stage.
//
// Sums of integers are exact, modulo 2^32, and stay in the registers of the tensor cores' products. Of f8 Hopper's
// tensor cores keep 14 bits of what they add up (DeepSeek-V3, arXiv 2412.19437, section 3.3.2), so a stage is summed
// up from 0 and added to f32 sums: errors do not grow with the length of a sum. A warpgroup has no registers for two
// sets of sums of 256 columns; it takes 128 of them at a time, and while it adds another one's products are under way.
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceContraction.h"

using namespace llvm;
using namespace tegula;

/// The most columns whose sums a warpgroup has in registers beside those of all.
static constexpr unsigned mostPartial = 128;

DeviceContraction::Sums DeviceContraction::sumUpBytes(const PlaneProduct &product) {
  if (product.type == Multiplicand::I8)
    return sumUpStages(product);
  unsigned all = groupColumns(tile), part = all / divideCeil(all, mostPartial);
  Sums zeros(all / 2, zeroSum());
  return forStages(product, zeros, [&](Value *number, Value *stage, ArrayRef<Value *> current) {
    Sums next;
    for (unsigned first = 0; first < all; first += part) {
      Sums partial = multiplyPlanes(product, planeStage(product, stage), {}, first, part);
      partial = async::readProducts(b, partial);
      if (first + part == all)
        release(product, number);
      for (auto [sum, added] : zip_equal(current.slice(first / 2, part / 2), partial))
        next.push_back(b.CreateFAdd(sum, added));
    }
    return next;
  });
}
