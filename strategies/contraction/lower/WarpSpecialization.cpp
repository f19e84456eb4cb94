//===- WarpSpecialization.cpp - Producer and consumer warps -------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Half of a block's threads, the producers, load elements, convert and store them (or a third,
// where a launch before has done so and they copy); the others multiply, and run the epilogue. A
// stage of shared memory goes from one to the other and back by a pair of barriers (StageRings.h).
// While some of the producers' warps wait for elements the others convert theirs.
//
//===----------------------------------------------------------------------===//
#include "strategies/contraction/lower/WarpSpecialization.h"

#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace llvm;
using namespace tegula;

/// The threads of the block that do not multiply do `body` and end; what follows is the others'.
void WarpSpecialization::runProducers(function_ref<void()> body) {
  Function *function = b.GetInsertBlock()->getParent();
  BasicBlock *producer = BasicBlock::Create(b.getContext(), "producer", function);
  BasicBlock *consumer = BasicBlock::Create(b.getContext(), "consumer", function);
  b.CreateCondBr(b.CreateICmpUGE(here.thread, i32(numbers.threads())), producer, consumer);
  b.SetInsertPoint(producer);
  body();
  b.CreateRetVoid();
  b.SetInsertPoint(consumer);
}

/// Producers do their part of all products and end.
void WarpSpecialization::start(function_ref<void()> produceAll) {
  // Registers move between roles only where the number at the start is fixed.
  b.GetInsertBlock()->getParent()->addFnAttr("nvvm.minctasm", "1");
  WarpRoleRegisters registers = numbers.roleRegisters();
  stageRings.makeRings();
  runProducers([&] {
    SaveAndRestore own(here.thread, b.CreateSub(here.thread, i32(numbers.threads())));
    SaveAndRestore number(context.consumerBarrier, unsigned(ProducersOnly));
    if (numbers.usesBulkLoads())
      stageRings.initStageBarriers();
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_setmaxnreg_dec_sync_aligned_u32,
                      {i32(registers.producer)});
    if (!numbers.usesBulkLoads())
      return produceAll();
    e.emitIf(b.CreateICmpULT(here.thread, i32(numbers.barrierThreads() - numbers.threads())), [&] {
      stageRings.arriveAt(i32(BarriersAreReady));
      prologue.skipPrologueStages();
      if (numbers.makesTmaDescriptors()) // by the thread that has boxes copied
        tmaDescriptors.makeTmaDescriptors();
      if (numbers.usesTma())
        tmaDescriptors.acquireTmaDescriptors();
      produceAll();
    });
  });
  prologue.issuePrologueLoads();
  b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_setmaxnreg_inc_sync_aligned_u32,
                    {i32(registers.consumer)});
  if (numbers.usesBulkLoads()) // the barriers of stages are there
    stageRings.waitAt(i32(BarriersAreReady));
  if (numbers.usesHaloTile())
    haloLoads.storeTapOffsets();
}
