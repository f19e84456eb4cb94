//===- EmulatorPhasesTest.cpp - Which phase an arrival counts for, and what waits show -----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code that runs well in one order of execution and would not in another; next to each the right
// form.
//
//===----------------------------------------------------------------------===//
#include "EmulatorFixture.h"

using namespace llvm;
using namespace tegula;

namespace {

constexpr auto phase = EmulatorError::UnorderedPhase;

std::string arriveAt(unsigned barrier, unsigned count = 64) {
  return "call void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32 " + std::to_string(barrier) +
         ", i32 " + std::to_string(count) + ")\n";
}
std::string waitAt(unsigned barrier, unsigned count = 64) {
  return "call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 " + std::to_string(barrier) +
         ", i32 " + std::to_string(count) + ")\n";
}
/// The first warp does one thing, the second another.
std::string roles(const std::string &first, const std::string &second) {
  return "%isFirst = icmp ult i32 %i, 32\nbr i1 %isFirst, label %one, label %two\none:\n" + first +
         "br label %end\ntwo:\n" + second + "br label %end\nend:";
}

TEST_F(Emulator, FindsAnArrivalThatMayBeOfThePhaseBefore) {
  // Three warps: two announce themselves at each of two phases. If the first is quick, its second
  // announcement is counted with its first.
  auto text = [](const std::string &between) {
    return R"(
    %isLast = icmp uge i32 %i, 64
    br i1 %isLast, label %wait, label %announce
  announce:
    )" + arriveAt(1, 96) +
           between + arriveAt(1, 96) + R"(
    br label %end
  wait:
    )" + waitAt(1, 96) +
           (between.empty() ? "" : arriveAt(2, 96)) + waitAt(1, 96) + R"(
    br label %end
  end:)";
  };
  x.resize(96);
  for (uint64_t seed : {0, 1, 2}) {
    options.seed = seed;
    EXPECT_EQ(run(text(""), 1, 96), phase) << failure;
    run(text(waitAt(2, 96)), 1, 96);
    expectGood();
  }
}

TEST_F(Emulator, FindsAnArrivalThatRunsAhead) {
  // Warp 0 announces two stages by one barrier. Nothing can run ahead where warp 1 gives the first
  // one back.
  run(roles(arriveAt(1) + waitAt(2) + arriveAt(1), waitAt(1) + arriveAt(2) + waitAt(1)));
  expectGood();
  // Where both meet between them it is the same.
  run(roles(arriveAt(1) + waitAt(3) + arriveAt(1), waitAt(1) + waitAt(3) + waitAt(1)));
  expectGood();
  // An announcement by the third barrier is no turn: warp 0 does not wait for warp 1.
  EXPECT_EQ(run(roles(arriveAt(1) + arriveAt(3) + arriveAt(1), waitAt(1) + waitAt(3) + waitAt(1))),
            phase);
  EXPECT_THAT(failure, HasSubstr("comes to phase 1 of barrier 1, in another order of execution to "
                                 "the phase before: thread "));
}

const std::string token = "call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr "
                          "addrspace(3) @t, i32 0)\n";
std::string lookFor(unsigned parity) {
  return "call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cluster.space.cta(ptr addrspace(3) @t, "
         "i32 " +
         std::to_string(parity) + ")\n";
}
/// A barrier that counts one thread; what one lane of each of two warps does with it.
std::string lanes(const std::string &first, const std::string &second) {
  return R"(
    %is0 = icmp eq i32 %i, 0
    br i1 %is0, label %make, label %made
  make:
    call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @t, i32 1)
    br label %made
  made:
    call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
    )" + roles(first, second);
}
std::string onlyLane0(const std::string &text, const std::string &name) {
  return "%lane" + name + " = and i32 %i, 31\n%own" + name + " = icmp eq i32 %lane" + name +
         ", 0\nbr i1 %own" + name + ", label %do" + name + ", label %after" + name + "\ndo" + name +
         ":\n" + text + "br label %after" + name + "\nafter" + name + ":\n";
}

TEST_F(Emulator, FindsAWaitThatMayBeForAnotherPhase) {
  auto arrive = [](const std::string &name) {
    return onlyLane0("%token" + name + " = " + token, name);
  };
  auto look = [](const std::string &name, unsigned parity) {
    return "%look" + name + " = " + lookFor(parity);
  };
  // Each phase is waited for before the next one's arrival.
  run(lanes(arrive("a") + waitAt(1) + arrive("b"), look("c", 0) + waitAt(1) + look("d", 1)));
  expectGood();
  // Two arrivals, one after the other: who waits for the first phase may come when the second has
  // ended.
  EXPECT_EQ(
      run(lanes(arrive("a") + arriveAt(1) + arrive("b"), look("c", 0) + waitAt(1) + look("d", 1))),
      phase);
  EXPECT_THAT(failure, HasSubstr("the barrier at byte 0 of 't'"));
  // A wait for the second phase before it is known that the first has ended.
  std::optional<EmulatorError::Kind> early = run(lanes(arrive("a") + arrive("b"), look("d", 1)));
  EXPECT_TRUE(early == phase) << failure;
}

//===----------------------------------------------------------------------===//
// What is under way
//===----------------------------------------------------------------------===//

TEST_F(Emulator, FindsAnAccessToWhatIsBeingCopied) {
  auto text = [](StringRef before, StringRef after) {
    return ("store i32 7, ptr addrspace(3) %own\n"
            "call void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3) %own, ptr "
            "addrspace(1) %at)\n"
            "call void @llvm.nvvm.cp.async.commit.group()\n" +
            before + "\ncall void @llvm.nvvm.cp.async.wait.group(i32 0)\n" + after)
        .str();
  };
  run(text("", "%v = load i32, ptr addrspace(3) %own"));
  expectGood();
  // Its own thread's read of what was there, though it is defined; a barrier is no wait; the source
  // changes.
  EXPECT_EQ(run(text("%v = load i32, ptr addrspace(3) %own", "")), EmulatorError::Race);
  EXPECT_THAT(failure, HasSubstr("a write under way by thread"));
  EXPECT_EQ(run(text("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n%v = load i32, ptr "
                     "addrspace(3) %other",
                     "")),
            EmulatorError::Race);
  EXPECT_EQ(run(text("store i32 1, ptr addrspace(1) %at", "")), EmulatorError::Race);
  // The second of two copies is still under way.
  EXPECT_EQ(run(R"(
    store i32 7, ptr addrspace(3) %own
    call void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3) %own, ptr addrspace(1) %at)
    call void @llvm.nvvm.cp.async.commit.group()
    call void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3) %own, ptr addrspace(1) %at)
    call void @llvm.nvvm.cp.async.commit.group())"),
            EmulatorError::Race);
}

/// A product of 64 x 8 x 16 numbers of two bytes; both operands are the first bytes of shared
/// memory, in the swizzle of 128 bytes.
std::string product(StringRef fence, StringRef beforeWait, StringRef wait, StringRef after) {
  return (R"(
    %zero = getelementptr i32, ptr addrspace(3) @ring, i32 %i
    br label %fill
  fill:
    %n = phi i32 [ %i, %0 ], [ %next, %fill ]
    %place = getelementptr i32, ptr addrspace(3) @ring, i32 %n
    store i32 1006648320, ptr addrspace(3) %place
    %next = add i32 %n, 128
    %more = icmp ult i32 %next, 2048
    br i1 %more, label %fill, label %filled
  filled:
    )" + fence +
          R"(
    call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
    %address = ptrtoint ptr addrspace(3) @ring to i32
    %masked = and i32 %address, 262143
    %start = lshr i32 %masked, 4
    %low = or i32 %start, 65536
    %wide = zext i32 %low to i64
    %d = or i64 %wide, 4611686293305294848
    call void @llvm.nvvm.wgmma.fence.sync.aligned()
    %sums = call {float, float, float, float} asm sideeffect "{ .reg .pred p; setp.ne.b32 p, $6, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, $4, $5, p, 1, 1, $7, $8; }", "=f,=f,=f,=f,l,l,n,n,n,~{memory}"(i64 %d, i64 %d, i32 0, i32 0, i32 0)
    call void @llvm.nvvm.wgmma.commit_group.sync.aligned()
    %s0 = extractvalue {float, float, float, float} %sums, 0
    )" + beforeWait +
          R"(
    %r0 = call float asm sideeffect "wgmma.wait_group.sync.aligned $1;", "=f,n,0,~{memory}"(i32 )" +
          wait + R"(, float %s0)
    )" + after)
      .str();
}

TEST_F(Emulator, ShowsSumsAfterTheWaitAndOperandsAfterTheFence) {
  const char *fence =
      "call void asm sideeffect \"fence.proxy.async.shared::cta;\", \"~{memory}\"()";
  const char *keep = "%r = fptosi float %r0 to i32\nstore i32 %r, ptr addrspace(1) %at";
  x.resize(128);
  run(product(fence, "", "0", keep), 1, 128);
  expectGood();
  EXPECT_EQ(x[0], 16); // of ones
  // Before the wait, and where it waits for nothing, there is no number.
  run(product(fence,
              "%early = fcmp uno float %s0, 0.0\n%e = zext i1 %early to i32\nstore i32 %e, ptr "
              "addrspace(1) %at",
              "0", ""),
      1, 128);
  expectGood();
  EXPECT_EQ(x[0], 1);
  run(product(fence, "", "1",
              "%late = fcmp uno float %r0, 0.0\n%e = zext i1 %late to i32\nstore i32 %e, ptr "
              "addrspace(1) %at"),
      1, 128);
  expectGood();
  EXPECT_EQ(x[0], 1);
  // Operands change before the wait, by their reader's own hand.
  EXPECT_EQ(run(product(fence, "store i32 0, ptr addrspace(3) %zero", "0", ""), 1, 128),
            EmulatorError::Race);
  EXPECT_EQ(run(product("", "", "0", ""), 1, 128), EmulatorError::MissingFence);
  EXPECT_THAT(failure, HasSubstr("no fence.proxy.async is between that and a write by thread"));
}

} // namespace
