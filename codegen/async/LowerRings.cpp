//===- LowerRings.cpp - Lowers rings of stages to named barriers and mbarriers ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A ring's stage n has two barriers, at which one side arrives and the other waits (bar.arrive,
// bar.sync; PTX ISA, "Parallel Synchronization and Communication Instructions"). Of a ring of four
// stages, two groups of 128 users and 32 fillers, from barrier 4 on:
//
//   acquire n    if (n >= 4) bar.sync 12 + n % 4, 288
//   commit n     bar.arrive 4 + n % 4, 160; bar.arrive 8 + n % 4, 160
//   wait n, g    bar.sync 4 + 4 g + n % 4, 160
//   release n    bar.arrive 12 + n % 4, 288
//
// Where copies in bulk fill stages a barrier in shared memory counts their bytes (mbarrier): users
// look at it until its phase n / 4 is over, so that warps go on one by one. Of a stage that is left
// to its users no bytes are expected.
//
//===----------------------------------------------------------------------===//
#include "codegen/async/Operations.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::async;

namespace {
/// What becomes of one operation.
class Lowering {
public:
  explicit Lowering(CallInst &op) : op(op), ring(ringOf(op)), b(&op) {}

  void run(RingOp kind) {
    switch (kind) {
    case RingOp::Acquire:
      acquire();
      break;
    case RingOp::Commit:
      for (unsigned group = 0; group < ring.shape.groups; ++group)
        arriveAt(b.CreateAdd(stage(), i32(ring.shape.first + group * ring.shape.stages)),
                 groupThreads());
      break;
    case RingOp::Wait:
      ring.isCounted ? look() : waitForGroup();
      break;
    case RingOp::Release:
      arriveAt(emptyBarrier(), allThreads());
      break;
    case RingOp::Init: {
      SmallVector<Value *> barriers;
      for (unsigned number = 0; number < ring.shape.stages; ++number)
        barriers.push_back(barrierAt(i32(number)));
      initCounts(b, barriers);
      break;
    }
    case RingOp::Expect: {
      Value *barrier = barrierAt(stage());
      expect(b, barrier, op.getArgOperand(2));
      op.replaceAllUsesWith(barrier);
      break;
    }
    case RingOp::Leave: // the barrier's phase is over at once
      expect(b, barrierAt(stage()), i32(0));
      break;
    case RingOp::Make:
    case RingOp::MakeCounted:
      llvm_unreachable("goes when nothing uses it any more");
    }
    op.eraseFromParent();
  }

private:
  Value *i32(unsigned value) { return b.getInt32(value); }
  unsigned allThreads() const { return ring.shape.fillers + ring.shape.users; }
  unsigned groupThreads() const {
    return ring.shape.fillers + ring.shape.users / ring.shape.groups;
  }
  Value *number() const { return op.getArgOperand(1); }

  /// In the ring, of the operation's number.
  Value *stage() {
    unsigned stages = ring.shape.stages;
    return isPowerOf2_32(stages) ? b.CreateAnd(number(), i32(stages - 1))
                                 : b.CreateURem(number(), i32(stages));
  }
  Value *emptyBarrier() { return b.CreateAdd(stage(), i32(ring.firstEmpty())); }
  Value *barrierAt(Value *stage) {
    return b.CreateInBoundsGEP(b.getInt8Ty(), ring.barriers(), b.CreateShl(stage, i32(3)));
  }

  void arriveAt(Value *barrier, unsigned threads) {
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_arrive_aligned_count,
                      {barrier, i32(threads)});
  }
  void waitAt(Value *barrier, unsigned threads) {
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_barrier_cta_sync_aligned_count,
                      {barrier, i32(threads)});
  }

  /// The ring's first stages are empty.
  void acquire() {
    Value *barrier = emptyBarrier();
    b.SetInsertPoint(SplitBlockAndInsertIfThen(b.CreateICmpSGE(number(), i32(ring.shape.stages)),
                                               op.getIterator(),
                                               /*Unreachable=*/false));
    waitAt(barrier, allThreads());
  }

  void waitForGroup() {
    Value *first = b.CreateAdd(b.CreateMul(op.getArgOperand(2), i32(ring.shape.stages)),
                               i32(ring.shape.first));
    waitAt(b.CreateAdd(stage(), first), groupThreads());
  }

  void look() {
    Value *parity = b.CreateAnd(b.CreateUDiv(number(), i32(ring.shape.stages)), i32(1)),
          *barrier = barrierAt(stage());
    BasicBlock *before = op.getParent(), *after = before->splitBasicBlock(op.getIterator(), "full");
    before->getTerminator()->eraseFromParent();
    b.SetInsertPoint(before);
    awaitPhase(b, barrier, parity, /*ofCluster=*/false);
    b.CreateBr(after);
  }

  CallInst &op;
  Ring ring;
  IRBuilder<> b;
};
} // namespace

PreservedAnalyses LowerRingsPass::run(Function &function, FunctionAnalysisManager &) {
  SmallVector<std::pair<CallInst *, RingOp>> ops;
  SmallVector<CallInst *> rings;
  for (Instruction &instruction : instructions(function))
    if (std::optional<RingOp> kind = ringOp(instruction)) {
      auto *op = cast<CallInst>(&instruction);
      if (kind == RingOp::Make || kind == RingOp::MakeCounted)
        rings.push_back(op);
      else
        ops.push_back({op, *kind});
    }
  for (auto [op, kind] : ops)
    Lowering(*op).run(kind);
  for (CallInst *ring : rings)
    ring->eraseFromParent();
  return rings.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
}
