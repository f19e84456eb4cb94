//===- BulkLoad.cpp - Loads operands by cp.async.bulk ---------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Planes of packed operands (PrepackOperands.cpp) lie in memory as the bytes of a stage. One thread
// has each side brought by one instruction (cp.async.bulk; PTX ISA, "Data Movement and Conversion
// Instructions: Bulk copy"), so that producers need next to no registers and no places of their
// own:
//
//   one thread of the producers, for each stage:  wait until it is empty (named barrier); tell its
//   barrier in
//                                                 shared memory how many bytes come; start the
//                                                 copies
//   each warp that multiplies:                    wait for the phase of the stage's barrier;
//   multiply; empty
//
// Operands that nothing is done to come in the same way, as boxes of their tensors
// (TmaDescriptors.cpp).
//
// A barrier in shared memory is waited for, not met at: warpgroups that multiply go on by
// themselves, so one's products are under way while the other adds up. The barriers come after all
// else in shared memory, a set for each product, as their phases go on where a block's products
// begin with an empty ring.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/load/BulkLoad.h"

#include "llvm/IR/InlineAsm.h"

using namespace llvm;
using namespace tegula;

/// Starts the copy of so many bytes, which `barrier` counts.
void BulkLoads::loadBulk(Value *to, Value *from, unsigned bytes, Value *barrier) {
  auto *type = FunctionType::get(
      b.getVoidTy(), {b.getInt32Ty(), from->getType(), b.getInt32Ty(), b.getInt32Ty()}, false);
  InlineAsm *copy = InlineAsm::get(
      type,
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, "
      "[$3];",
      "r,l,r,r,~{memory}", /*hasSideEffects=*/true);
  b.CreateCall(copy, {b.CreatePtrToInt(to, b.getInt32Ty()), from, i32(bytes),
                      b.CreatePtrToInt(barrier, b.getInt32Ty())});
}

/// Has a tile's stages brought, in the order of all that go through the ring.
void BulkLoads::produceBulkLoads(const WgmmaProduct &product) {
  IndexExpr bytes = 0;
  std::vector<PrepackedOperand> sides;
  if (numbers.isPrepacked())
    sides = numbers.prepackedOperands(bytes);
  Value *isFirst = b.CreateICmpEQ(here.thread, i32(0)), *begin = i64(0);
  if (unsigned left = prologue.numPrologueStages()) // of the block's first tile
    begin = b.CreateSelect(b.CreateICmpEQ(product.stagesBefore, i64(0)), i64(left), begin);
  e.keepNextLoopRolled = true;
  e.emitLoop(
      begin, numStages(product), i64(1), {},
      [&](Value *number, ArrayRef<Value *>) {
        Value *inBlock = b.CreateTrunc(stageNumber(product, number), b.getInt32Ty()),
              *stage = stageRings.inRing(inBlock);
        Value *step =
            indices.stepInKLoop(product.kLoop, b.CreateUDiv(number, i64(product.substeps)));
        Value *inSum = b.CreateAdd(b.CreateMul(step, i64(product.substeps)),
                                   b.CreateURem(number, i64(product.substeps)));
        SmallVector<Value *> planes; // where they lie
        for (bool ofRows : {true, false})
          if (numbers.isPrepacked())
            planes.push_back(prepackedLoads.prepackedTermsOf(
                ofRows ? product.a : product.b, sides[2 * product.number + !ofRows], inSum));
        async::acquire(b, context.rings[product.number], inBlock);
        e.emitIf(isFirst, [&] {
          Value *barrier =
              async::expectBytes(b, context.rings[product.number], inBlock, product.stageBytes());
          Value *base = stageRings.stageAddress(product, stage);
          if (numbers.usesTma())
            return tmaDescriptors.loadStage(product, inSum, base, barrier);
          for (auto [operand, plane] : zip_equal(std::array{&product.a, &product.b}, planes))
            loadBulk(b.CreateInBoundsGEP(b.getInt8Ty(), base, i32(operand->offset)), plane,
                     operand->shared.bytes(), barrier);
        });
        return SmallVector<Value *>();
      },
      "stage");
}
