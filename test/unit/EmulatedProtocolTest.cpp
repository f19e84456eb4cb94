//===- EmulatedProtocolTest.cpp - Kernels with one synchronisation wrong -----------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every barrier, wait and fence of kernels whose roles work side by side is left out, has another
// number or waits for less, one at a time; of a cluster's barrier also both halves. One run must
// find it, in whichever order its threads take turns. What is not found changes no result and was
// not needed: waits at the end that nothing follows, barriers beside others, copies' waits for
// empty groups. How many there are is told with each kernel: more of it is a hole of the emulator.
//
//===----------------------------------------------------------------------===//
#include "EmulatedProgram.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;
using namespace tegula;

namespace {

constexpr const char *bytesText = R"(
kernel product(a: f8e4m3[M, K], b: f8e4m3[N, K]) -> (c: f32[M, N]) { c[i, j] = sum(a[i, k] * b[j, k] for k) }
)";
constexpr const char *wordsText = R"(
kernel product(a: bf16[M, K], b: bf16[K, N]) -> (c: bf16[M, N]) { c[i, j] = sum(a[i, k] * b[k, j] for k) }
)";
/// Blocks of a cluster share a row. Floats of other blocks are counted, integers are waited for by
/// all.
constexpr const char *clustersText = R"(
kernel rows(x: i8[M, N]) -> (y: f32[M, N]) {
  m[i] = max(x[i, j] for j)
  s[i] = sum(where(x[i, j] < m[i], 1.0, 0.0) for j)
  y[i, j] = 2 * x[i, j] + m[i] - s[i]
  schedule { cluster 2 }
}
)";

enum class Damage { Drop, DropMeeting, Renumber, WaitForLess };
constexpr StringLiteral damages[] = {"drop", "drop the meeting of", "renumber", "wait for less"};

bool isAsm(const CallInst &call, StringRef text) {
  auto *code = dyn_cast<InlineAsm>(call.getCalledOperand());
  return code && StringRef(code->getAsmString()).starts_with(text);
}

/// The operand that is the number of a block's barrier.
bool hasNumber(const CallInst &call) {
  switch (call.getIntrinsicID()) {
  case Intrinsic::nvvm_barrier_cta_sync_aligned_count:
  case Intrinsic::nvvm_barrier_cta_arrive_aligned_count:
  case Intrinsic::nvvm_barrier_cta_red_or_aligned_count:
    return true;
  default:
    return false;
  }
}

/// The operand that says how many groups may stay under way; nothing: it is no such wait.
std::optional<unsigned> groupsOperand(const CallInst &call) {
  if (call.getIntrinsicID() == Intrinsic::nvvm_cp_async_wait_group ||
      call.getIntrinsicID() == Intrinsic::nvvm_wgmma_wait_group_sync_aligned ||
      isAsm(call, "wgmma.wait_group"))
    return 0;
  return std::nullopt;
}

bool canDrop(const CallInst &call) {
  switch (call.getIntrinsicID()) {
  case Intrinsic::nvvm_barrier_cta_sync_aligned_all:
  case Intrinsic::nvvm_barrier_cta_sync_aligned_count:
  case Intrinsic::nvvm_barrier_cta_arrive_aligned_count:
  case Intrinsic::nvvm_bar_warp_sync:
  case Intrinsic::nvvm_barrier_cluster_arrive_aligned:
  case Intrinsic::nvvm_barrier_cluster_wait_aligned:
  case Intrinsic::nvvm_cp_async_wait_group:
  case Intrinsic::nvvm_cp_async_wait_all:
  case Intrinsic::nvvm_cp_async_commit_group:
  case Intrinsic::nvvm_mbarrier_init_shared:
  case Intrinsic::nvvm_mbarrier_arrive_expect_tx_scope_cta_space_cta:
  case Intrinsic::nvvm_mbarrier_try_wait_parity_scope_cluster_space_cta:
  case Intrinsic::nvvm_wgmma_wait_group_sync_aligned:
  case Intrinsic::nvvm_wgmma_commit_group_sync_aligned:
    return true;
  default:
    return isAsm(call, "wgmma.wait_group") || isAsm(call, "fence.proxy.async");
  }
}

/// Whether threads come to the barrier of their cluster, for which they wait then.
bool meetsCluster(const CallInst &call) {
  return call.getIntrinsicID() == Intrinsic::nvvm_barrier_cluster_arrive_aligned;
}

bool canDo(const CallInst &call, Damage damage) {
  return damage == Damage::Drop          ? canDrop(call)
         : damage == Damage::DropMeeting ? meetsCluster(call)
         : damage == Damage::Renumber    ? hasNumber(call)
                                         : groupsOperand(call).has_value();
}

/// The wait that comes after the arrival in the text.
CallInst &clusterWaitAfter(CallInst &arrival) {
  auto it = inst_begin(arrival.getFunction());
  while (&*it != &arrival)
    ++it;
  for (;; ++it)
    if (auto *call = dyn_cast<CallInst>(&*it);
        call && call->getIntrinsicID() == Intrinsic::nvvm_barrier_cluster_wait_aligned)
      return *call;
}

void damageCall(CallInst &call, Damage damage) {
  IRBuilder<> b(&call);
  if (damage == Damage::Renumber)
    return call.setArgOperand(0, b.CreateAdd(call.getArgOperand(0), b.getInt32(1)));
  if (damage == Damage::WaitForLess) {
    Value *groups = call.getArgOperand(*groupsOperand(call));
    return call.setArgOperand(
        *groupsOperand(call),
        ConstantInt::get(groups->getType(), cast<ConstantInt>(groups)->getZExtValue() + 1));
  }
  if (damage == Damage::DropMeeting)
    clusterWaitAfter(call).eraseFromParent();
  if (isAsm(call, "wgmma.wait_group")) { // its results are the operands after the first
    for (User *user : make_early_inc_range(call.users())) {
      auto *extract = cast<ExtractValueInst>(user);
      extract->replaceAllUsesWith(call.getArgOperand(1 + extract->getIndices().front()));
      extract->eraseFromParent();
    }
  }
  if (call.getType()->isIntegerTy(1))
    call.replaceAllUsesWith(b.getTrue());
  else if (!call.use_empty())
    call.replaceAllUsesWith(PoisonValue::get(call.getType()));
  call.eraseFromParent();
}

/// The call with this number among those that `damage` can be done to.
CallInst *findCall(llvm::Module &module, Damage damage, unsigned number) {
  unsigned next = 0;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (auto *call = dyn_cast<CallInst>(&instruction);
          call && canDo(*call, damage) && next++ == number)
        return call;
  return nullptr;
}

struct Mutants {
  unsigned made = 0, found = 0;
  std::vector<std::string> redundant, renamed;
};

Mutants damageOneByOne(const EmulatedProgram &program) {
  RunOfProgram run(program);
  LLVMContext context;
  std::unique_ptr<llvm::Module> whole = run.parse(context);
  auto emulateWhole = [&] {
    std::unique_ptr<llvm::Module> copy = CloneModule(*whole);
    return cantFail(emulate(*copy));
  };
  std::vector<RunOfProgram::Bytes> expected = run.run(*emulateWhole(), 0);
  EXPECT_FALSE(run.kind) << run.message;
  std::vector<RunOfProgram::Bytes> again = run.run(*emulateWhole(), 1);
  EXPECT_FALSE(run.kind) << run.message;
  EXPECT_TRUE(again == expected);
  auto runsUpTo = [&](llvm::Module &copy, Instruction &instruction) {
    IRBuilder<> b(&instruction);
    b.CreateStore(b.getInt32(0), ConstantPointerNull::get(PointerType::get(copy.getContext(), 1)))
        ->setVolatile(true);
    run.run(*cantFail(emulate(copy)), 0);
    return run.kind == EmulatorError::OutOfBounds;
  };
  StringSet<> launched;
  for (Function &function : *whole)
    if (!function.isDeclaration()) {
      std::unique_ptr<llvm::Module> copy = CloneModule(*whole);
      if (runsUpTo(*copy,
                   *copy->getFunction(function.getName())->getEntryBlock().getFirstInsertionPt()))
        launched.insert(function.getName());
    }
  Mutants mutants;
  for (Damage damage : {Damage::Drop, Damage::DropMeeting, Damage::Renumber, Damage::WaitForLess})
    for (unsigned number = 0;; ++number) {
      std::unique_ptr<llvm::Module> copy = CloneModule(*whole);
      CallInst *call = findCall(*copy, damage, number);
      if (!call)
        break;
      if (!launched.contains(call->getFunction()->getName()))
        continue;
      std::string text;
      raw_string_ostream(text) << damages[unsigned(damage)] << " " << number << " in "
                               << call->getFunction()->getName() << ":" << *call;
      bool mayHaveAnyNumber =
          damage == Damage::Renumber &&
          call->getIntrinsicID() != Intrinsic::nvvm_barrier_cta_arrive_aligned_count;
      bool isOfSums = isAsm(*call, "wgmma.wait_group") ||
                      call->getIntrinsicID() == Intrinsic::nvvm_wgmma_commit_group_sync_aligned;
      damageCall(*call, damage);
      std::vector<RunOfProgram::Bytes> got = run.run(*cantFail(emulate(*copy)), 0);
      // A sum that is read too early is no number.
      bool isFound = run.kind || (isOfSums && got != expected);
      if (!isFound) {
        std::unique_ptr<llvm::Module> again = CloneModule(*whole);
        if (!runsUpTo(*again, *findCall(*again, damage, number)))
          continue;
      }
      ++mutants.made;
      mutants.found += isFound;
      if (isFound)
        continue;
      EXPECT_TRUE(got == expected) << text << ": other results, and nothing is found";
      // Another number that is free then, for all who come: they come by this one instruction.
      (mayHaveAnyNumber ? mutants.renamed : mutants.redundant).push_back(text);
    }
  return mutants;
}

class Protocol : public ::testing::TestWithParam<EmulatedProgram> {};

TEST_P(Protocol, IsFoundWrong) {
  Mutants mutants = damageOneByOne(GetParam());
  EXPECT_GT(mutants.found, 0u);
  EXPECT_EQ(mutants.redundant.size(), GetParam().redundant) << join(mutants.redundant, "\n");
  std::cout << GetParam().name << ": " << mutants.found << " of " << mutants.made << " found, "
            << mutants.renamed.size() << " have another number that is free, "
            << mutants.redundant.size() << " are not needed\n"
            << join(mutants.redundant, "\n") << '\n';
}

/// What adds up the parts of a sum starts while they are made.
TEST(EarlyLaunch, WaitsForTheOneBefore) {
  RunOfProgram run({"parts", brainText, {{"M", 16}, {"N", 136}, {"K", 1544}}, "16x128/3"});
  LLVMContext context;
  std::unique_ptr<llvm::Module> code = run.parse(context);
  run.run(*cantFail(emulate(*CloneModule(*code))), 0);
  EXPECT_FALSE(run.kind) << run.message;
  SmallVector<CallInst *> waits;
  for (Function &function : *code)
    for (Instruction &instruction : instructions(function))
      if (auto *call = dyn_cast<CallInst>(&instruction);
          call && call->getIntrinsicID() == Intrinsic::nvvm_griddepcontrol_wait)
        waits.push_back(call);
  ASSERT_EQ(waits.size(), 1u);
  waits.front()->eraseFromParent();
  run.run(*cantFail(emulate(*code)), 0);
  EXPECT_EQ(run.kind, EmulatorError::Race);
  EXPECT_NE(run.message.find("before the thread waits for the launch before"), std::string::npos)
      << run.message;
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, Protocol,
    ::testing::Values(
        EmulatedProgram{"attention",
                        attentionText(/*isCausal=*/false),
                        {{"G", 66}, {"S", 129}, {"N", 136}, {"D", 16}},
                        "",
                        5,
                        0,
                        true},
        EmulatedProgram{
            "split", productText, {{"M", 60}, {"N", 70}, {"K", 300}}, "64x128-warpgroups", 1},
        EmulatedProgram{
            "brain", brainText, {{"M", 136}, {"N", 264}, {"K", 1544}}, "128x128-warpgroups/3", 2},
        EmulatedProgram{
            "pairs", brainText, {{"M", 136}, {"N", 72}, {"K", 1032}}, "128x128-warpgroups/2", 2},
        EmulatedProgram{"pairs_of_planes",
                        productText,
                        {{"M", 60}, {"N", 70}, {"K", 520}},
                        "64x128-packed/2",
                        3},
        EmulatedProgram{
            "boxes", brainText, {{"M", 136}, {"N", 264}, {"K", 328}}, "128x256-warpgroups", 2},
        EmulatedProgram{
            "tails", brainText, {{"M", 136}, {"N", 264}, {"K", 520}}, "128x256-tail", 3},
        EmulatedProgram{
            "words", wordsText, {{"M", 136}, {"N", 264}, {"K", 72}}, "128x256-warpgroups", 2},
        EmulatedProgram{
            "planes", productText, {{"M", 60}, {"N", 70}, {"K", 300}}, "64x128-packed", 3},
        EmulatedProgram{"tiles", brainText, {{"M", 261}, {"N", 650}, {"K", 96}}, "64x256-packed"},
        EmulatedProgram{
            "bytes", bytesText, {{"M", 136}, {"N", 264}, {"K", 528}}, "128x256-warpgroups", 2},
        EmulatedProgram{"steps", stepsText, {{"T", 5}, {"B", 2}, {"H", 256}}, "", 2},
        EmulatedProgram{"clusters", clustersText, {{"M", 3}, {"N", 20000}}, "", 1}),
    [](const auto &info) { return info.param.name; });

} // namespace
