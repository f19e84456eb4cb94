//===- CountGroups.cpp - Computes the group counts of cp.async and wgmma waits ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A wait of the hardware (cp.async.wait_group, wgmma.wait_group; PTX ISA) is until at most N of the
// groups that a thread has committed are under way, which finish in their order. Here a wait says
// what it is for, and N is the fewest commits that come after that on any path:
//
//   %a = call i32 @tegula.cp.async.commit()                  call void
//   @llvm.nvvm.cp.async.commit.group() %b = call i32 @tegula.cp.async.commit()       becomes call
//   void @llvm.nvvm.cp.async.commit.group() call void @tegula.cp.async.await(i32 %a) call void
//   @llvm.nvvm.cp.async.wait.group(i32 1)
//
// In a loop that waits for what it started three iterations before these are the two commits in
// between, whether they are an iteration's or those before the loop. A wait for what nothing is
// under way of goes.
//
//===----------------------------------------------------------------------===//
#include "codegen/async/Operations.h"
#include "codegen/nvgpu/Wgmma.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::async;

/// Waits until at most `groups` are under way.
static void replaceWait(CallInst &wait, Kind kind, unsigned groups) {
  IRBuilder<> b(&wait);
  if (kind == Kind::Copies)
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_cp_async_wait_group, {b.getInt32(groups)});
  else if (isRead(wait))
    wait.replaceAllUsesWith(waitTyingAccumulators(b, SmallVector<Value *>(wait.args()), groups));
  else
    b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_wgmma_wait_group_sync_aligned,
                      {b.getInt64(groups)});
}

/// Of a wait for nothing, what was read is what was there.
static void forward(CallInst &wait) {
  for (User *user : make_early_inc_range(wait.users())) {
    auto *element = cast<ExtractValueInst>(user);
    element->replaceAllUsesWith(wait.getArgOperand(element->getIndices().front()));
    element->eraseFromParent();
  }
}

static bool countGroups(Function &function, Kind kind) {
  SmallVector<CallInst *> waits, commits;
  for (Instruction &instruction : instructions(function)) {
    if (isWait(instruction, kind))
      waits.push_back(cast<CallInst>(&instruction));
    else if (isCommit(instruction, kind))
      commits.push_back(cast<CallInst>(&instruction));
  }
  Commits known(function, kind);
  // All are counted before any is replaced: what one reads another may wait for.
  SmallVector<std::optional<unsigned>> since =
      map_to_vector(waits, [&](CallInst *wait) { return known.minCommitsSinceWaitedFor(*wait); });
  for (auto [wait, commitsSince] : zip_equal(waits, since)) {
    unsigned own = kind == Kind::Products; // a product's own commit comes after it
    if (commitsSince)
      replaceWait(*wait, kind, *commitsSince - own);
    else if (isRead(*wait))
      forward(*wait);
    wait->eraseFromParent();
  }
  if (kind == Kind::Copies)
    for (CallInst *commit : commits) {
      IRBuilder<> b(commit);
      b.CreateIntrinsic(b.getVoidTy(), Intrinsic::nvvm_cp_async_commit_group, {});
      commit->replaceAllUsesWith(PoisonValue::get(commit->getType()));
      commit->eraseFromParent();
    }
  return !waits.empty() || !commits.empty();
}

PreservedAnalyses CountGroupsPass::run(Function &function, FunctionAnalysisManager &) {
  bool changed = false;
  for (Kind kind : {Kind::Copies, Kind::Products})
    changed |= countGroups(function, kind);
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}
