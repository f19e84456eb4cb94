//===- PlaceFences.cpp - Inserts the proxy fences that asynchronous operations need ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products and copies in bulk reach shared memory by a proxy of their own, and registers besides
// other instructions. What was done in the ordinary way comes before them by a fence (PTX ISA,
// "Proxies" and "wgmma.fence"):
//
//   proxy     a ring whose stages threads store to, or copy to themselves, and from which products
//   read: before a commit where
//             the ring's fillers publish, else after a wait. A stage that copies in bulk fill needs
//             none; who fills one that is left to users publishes it. Barriers of counted rings,
//             which copies tell: after they are made.
//   registers before products that follow each other in a block: sums go from one to the next in
//   registers that nothing
//             else touches, all others may be new.
//
// Where shared memory changes its use outside of rings, code generation says `publish`.
//
//===----------------------------------------------------------------------===//
#include "codegen/async/Operations.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::async;

/// The fence goes before this instruction; null: there is none.
static Instruction *placeOfProxyFence(Instruction &instruction, RingOp kind, bool hasProducts) {
  if (kind == RingOp::Init)
    return instruction.getNextNode();
  if (!hasProducts || (kind != RingOp::Commit && kind != RingOp::Wait))
    return nullptr;
  Ring ring = ringOf(cast<CallInst>(instruction));
  if (ring.isCounted || ring.shape.fillersPublish != (kind == RingOp::Commit))
    return nullptr;
  return kind == RingOp::Commit ? &instruction : instruction.getNextNode();
}

/// The first of products that follow each other without another one's end, or a block's.
static SmallVector<Instruction *> firstProducts(Function &function) {
  SmallVector<Instruction *> found;
  for (BasicBlock &block : function) {
    bool isAfterFence = false;
    for (Instruction &instruction : block) {
      if (isProduct(instruction)) {
        if (!isAfterFence)
          found.push_back(&instruction);
        isAfterFence = true;
      } else if (isCommit(instruction, Kind::Products)) {
        isAfterFence = false;
      }
    }
  }
  return found;
}

PreservedAnalyses PlaceFencesPass::run(Function &function, FunctionAnalysisManager &) {
  SmallVector<Instruction *> products = firstProducts(function), places;
  for (Instruction &instruction : instructions(function))
    if (std::optional<RingOp> kind = ringOp(instruction))
      if (Instruction *place = placeOfProxyFence(instruction, *kind, !products.empty()))
        places.push_back(place);
  for (Instruction *place : places) {
    IRBuilder<> b(place);
    publish(b);
  }
  for (Instruction *product : products) {
    IRBuilder<> b(product);
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_wgmma_fence_sync_aligned, {});
  }
  return places.empty() && products.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
}
