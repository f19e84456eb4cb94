//===- PrologueLoads.cpp - Pipeline prologue: the first stages by cp.async ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block that makes the maps of its operands (TmaDescriptors.cpp) takes about a microsecond for
// it, and no box comes before. Those who multiply have nothing else to do then: they copy the first
// stages of the block's first tile, 16 bytes at a time, to where boxes would bring them, as many as
// the ring or the tile has:
//
//   producer's thread    leave these stages; make maps; bring the others
//   consumers            start the copies of all of them, a group for each; for each of the tile's
//   stages:
//                        if it is one of them wait for its group, publish it, meet; multiply
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/load/PrologueLoads.h"

#include "llvm/Support/SaveAndRestore.h"

using namespace llvm;
using namespace tegula;

/// How many of a block's stages come so: none of them is in its second tile. Extents of operands
/// with maps are known. Operands of products that share a tile come as boxes alone.
unsigned PrologueLoads::numPrologueStages() {
  if (!e.options.prologueLoads || !numbers.makesTmaDescriptors() || tile.hasOneMainloop())
    return 0;
  SaveAndRestore<std::optional<TailSlice>> none(context.tailSlice,
                                                std::nullopt); // it is a whole tile
  return std::min<uint64_t>(
      cast<ConstantInt>(numStages(wgmmaLoads.makeWgmmaProduct(0)))->getZExtValue(),
      numbers.ringStages());
}

/// By producers' first thread, once the ring's barriers are made.
void PrologueLoads::skipPrologueStages() {
  unsigned count = numPrologueStages();
  if (count == 0)
    return;
  e.emitIf(b.CreateICmpEQ(here.thread, i32(0)), [&] {
    for (unsigned number = 0; number < count; ++number)
      async::leave(b, context.rings.front(), i32(number));
  });
}

/// Starts their copies, by all who multiply.
void PrologueLoads::issuePrologueLoads() {
  unsigned count = numPrologueStages();
  if (count == 0)
    return;
  scheduler.setTileOfBlock(i64(0));
  context.tailSlice.reset(); // it is a whole one
  withRecomputedIndices([&] {
    WgmmaProduct product = wgmmaLoads.makeWgmmaProduct(0);
    product.a.distributeOver(numbers.threads());
    product.b.distributeOver(numbers.threads());
    assert(product.a.isCopied && product.b.isCopied && "what has a map lies in vectors");
    e.keepNextLoopRolled = true;
    context.prologueLoads = e.emitLoop(
        i64(0), i64(count), i64(1), SmallVector<Value *>(count, async::noCopies(b)),
        [&](Value *number, ArrayRef<Value *> underWay) {
          SmallVector<Value *> copies(underWay.drop_front());
          wgmmaLoads.copyChunks(
              product, number,
              stageRings.stageAddress(product, b.CreateTrunc(number, b.getInt32Ty())));
          copies.push_back(async::commitCopies(b));
          return copies;
        },
        "first");
  });
}

/// Stage `number` (i32) of all that go through the ring: if it is one of them, waits until its
/// copies, the first of `copies`, have come for all who multiply. What comes back is those under
/// way then, with a group of none at the end, so that each wait is for a group with as many behind
/// it.
SmallVector<Value *> PrologueLoads::awaitPrologueLoad(Value *number, ArrayRef<Value *> copies) {
  if (copies.empty())
    return {};
  auto await = [&] {
    async::awaitCopies(b, copies.front());
    SmallVector<Value *> others(copies.drop_front());
    others.push_back(async::commitCopies(b));
    async::publish(b);
    barrier();
    return others;
  };
  return e.emitIfElse(b.CreateICmpULT(number, i32(copies.size())), await, copies);
}
