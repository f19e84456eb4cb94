//===- EmulatorCopiesTest.cpp - Copies that threads wait for ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "EmulatorFixture.h"

using namespace llvm;
using namespace tegula;

namespace {

//===----------------------------------------------------------------------===//
// By threads
//===----------------------------------------------------------------------===//

TEST_F(Emulator, CopiesWhenTheGroupIsWaitedFor) {
  auto text = [](StringRef wait) {
    return (R"(
    call void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3) %own, ptr addrspace(1) %at)
    call void @llvm.nvvm.cp.async.commit.group()
    )" + wait +
            R"(
    call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
    %v = load i32, ptr addrspace(3) %other
    %to = getelementptr i32, ptr addrspace(1) %y, i32 %i
    store i32 %v, ptr addrspace(1) %to)")
        .str();
  };
  for (int i = 0; i < 64; ++i)
    x[i] = 100 + i;
  run(text("call void @llvm.nvvm.cp.async.wait.group(i32 0)"));
  expectGood();
  EXPECT_EQ(y[7], 106);
  EXPECT_EQ(run(text("")), EmulatorError::Undefined);
  EXPECT_EQ(run(text("call void @llvm.nvvm.cp.async.wait.group(i32 1)")), EmulatorError::Undefined);
  // The wait is the copying thread's alone: without a barrier after it the others race with the
  // copy.
  EXPECT_EQ(run(R"(
    call void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3) %own, ptr addrspace(1) %at)
    call void @llvm.nvvm.cp.async.commit.group()
    call void @llvm.nvvm.cp.async.wait.group(i32 0)
    %v = load i32, ptr addrspace(3) %other)"),
            EmulatorError::Undefined);
}

TEST_F(Emulator, FillsWhatACopyLeavesOut) {
  x = {1, 2, 3, 4};
  run(R"(
    call void @llvm.nvvm.cp.async.ca.shared.global.16.s(ptr addrspace(3) @s, ptr addrspace(1) %x, i32 8)
    call void @llvm.nvvm.cp.async.commit.group()
    call void @llvm.nvvm.cp.async.wait.group(i32 0)
    %v = load <4 x i32>, ptr addrspace(3) @s
    store <4 x i32> %v, ptr addrspace(1) %y)",
      1, 1);
  expectGood();
  EXPECT_THAT(ArrayRef(y).take_front(4), ::testing::ElementsAre(1, 2, 0, 0));
  EXPECT_EQ(run(R"(
    %odd = getelementptr i32, ptr addrspace(1) %x, i32 1
    call void @llvm.nvvm.cp.async.ca.shared.global.16.s(ptr addrspace(3) @s, ptr addrspace(1) %odd, i32 8))",
                1, 1),
            EmulatorError::Misaligned);
}

//===----------------------------------------------------------------------===//
// In bulk
//===----------------------------------------------------------------------===//

// One thread has x brought to shared memory, all wait for its bytes.
TEST_F(Emulator, BringsBytesInBulk) {
  const std::string look = R"(
    %ended = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cluster.space.cta(ptr addrspace(3) @t, i32 0)
    br i1 %ended, label %complete, label %look
  )";
  auto text = [](unsigned expected, unsigned bytes, const std::string &look,
                 const std::string &before = "",
                 const std::string &after = "%got = load i32, ptr addrspace(3) %other") {
    return before + R"(
    %first = icmp eq i32 %i, 0
    br i1 %first, label %make, label %made
  make:
    call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @t, i32 1)
    br label %made
  made:
    call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
    br i1 %first, label %bring, label %look
  bring:
    %token = call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) @t, i32 )" +
           std::to_string(expected) + R"()
    %to = ptrtoint ptr addrspace(3) @s to i32
    %barrier = ptrtoint ptr addrspace(3) @t to i32
    call void asm sideeffect "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];",
      "r,l,r,r,~{memory}"(i32 %to, ptr addrspace(1) %x, i32 )" +
           std::to_string(bytes) + R"(, i32 %barrier)
    br label %look
  look:
    )" + look +
           R"(
  complete:
    )" + after +
           R"(
    %z = getelementptr i32, ptr addrspace(1) %y, i32 %i
    store i32 %got, ptr addrspace(1) %z)";
  };
  for (uint64_t seed : {0, 1, 2}) {
    options.seed = seed;
    for (int i = 0; i < 64; ++i)
      x[i] = 3 * i;
    run(text(256, 256, look));
    expectGood();
    for (int i = 0; i < 64; ++i)
      EXPECT_EQ(y[i], 3 * (i ^ 1));
  }
  options.seed = 0;
  std::optional<EmulatorError::Kind> early = run(text(256, 256, "br label %complete"));
  EXPECT_TRUE(early == EmulatorError::Undefined || early == EmulatorError::Race);
  // Nobody waits at all.
  run(text(256, 256, "br label %complete", "", "%got = add i32 %i, 0"));
  EXPECT_THAT(failure, HasSubstr("a bulk copy is under way when its block ends"));
  // More bytes than come, an odd number of them, more than there are.
  EXPECT_EQ(run(text(272, 256, look)), EmulatorError::DivergentBarrier);
  EXPECT_EQ(run(text(24, 24, look)), EmulatorError::Misaligned);
  EXPECT_EQ(run(text(512, 512, look)), EmulatorError::OutOfBounds);
  // Into what others have used; into what they still use.
  const std::string use =
      "store i32 %i, ptr addrspace(3) %own\n%used = load i32, ptr addrspace(3) %own\n";
  EXPECT_EQ(run(text(256, 256, look, use)), std::nullopt);
  expectGood();
  EXPECT_EQ(run(text(256, 256, "%late = load i32, ptr addrspace(3) %own\n" + look, use)),
            EmulatorError::Race);
}

// 256 bytes to both sides of byte 1024 of a ring.
TEST_F(Emulator, BringsBytesAcrossPages) {
  auto text = [](StringRef look, unsigned first) {
    return R"(
    %place = add i32 %i, 224
    %mine = getelementptr i32, ptr addrspace(3) @ring, i32 %place
    store i32 0, ptr addrspace(3) %mine
    %isFirst = icmp eq i32 %i, 0
    br i1 %isFirst, label %make, label %made
  make:
    call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @t, i32 1)
    br label %made
  made:
    call void asm sideeffect "fence.proxy.async.shared::cta;", "~{memory}"()
    call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
    br i1 %isFirst, label %bring, label %brought
  bring:
    %token = call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) @t, i32 256)
    %to = ptrtoint ptr addrspace(3) %mine to i32
    %barrier = ptrtoint ptr addrspace(3) @t to i32
    call void asm sideeffect "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];",
      "r,l,r,r,~{memory}"(i32 %to, ptr addrspace(1) %x, i32 256, i32 %barrier)
    br label %brought
  brought:
    %early = icmp uge i32 %i, )" +
           std::to_string(first) + R"(
    br i1 %early, label %complete, label %look
  look:
    )" + look.str() +
           R"(
  complete:
    %got = load i32, ptr addrspace(3) %mine
    %z = getelementptr i32, ptr addrspace(1) %y, i32 %i
    store i32 %got, ptr addrspace(1) %z)";
  };
  const StringRef look = R"(
    %ended = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cluster.space.cta(ptr addrspace(3) @t, i32 0)
    br i1 %ended, label %complete, label %look)";
  for (int i = 0; i < 64; ++i)
    x[i] = 7 * i;
  run(text(look, 64));
  expectGood();
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(y[i], 7 * i);
  for (unsigned early : {0, 32, 63}) { // the last alone does not wait
    EXPECT_EQ(run(text(look, early)), EmulatorError::Race);
    EXPECT_THAT(failure, HasSubstr("race on 'ring'"));
  }
}

// A thread has 16 bytes of shared memory stored, and changes them.
TEST_F(Emulator, StoresInBulkWhatIsThereUpToTheWait) {
  auto text = [](unsigned bytes, StringRef wait, StringRef end) {
    return R"(
    %v = load i32, ptr addrspace(1) %at
    store i32 %v, ptr addrspace(3) %own
    call void @llvm.nvvm.bar.warp.sync(i32 -1)
    %inFour = and i32 %i, 3
    %first = icmp eq i32 %inFour, 0
    br i1 %first, label %give, label %given
  give:
    %to = getelementptr i32, ptr addrspace(1) %y, i32 %i
    call void @llvm.nvvm.cp.async.bulk.shared.cta.to.global(ptr addrspace(1) %to, ptr addrspace(3) %own, i32 )" +
           std::to_string(bytes) + R"(, i64 0, i1 false)
    br label %given
  given:
    call void @llvm.nvvm.cp.async.bulk.commit.group()
    )" + wait.str() +
           R"(
    call void @llvm.nvvm.bar.warp.sync(i32 -1)
    store i32 -1, ptr addrspace(3) %own
    )" + end.str();
  };
  const StringRef read = "call void @llvm.nvvm.cp.async.bulk.wait.group.read(i32 0)",
                  whole = "call void @llvm.nvvm.cp.async.bulk.wait.group(i32 0)";
  auto start = [&] {
    for (int i = 0; i < 64; ++i)
      x[i] = 5 * i;
  };
  for (StringRef wait : {read, whole}) {
    start();
    run(text(16, wait, ""));
    expectGood();
    for (int i = 0; i < 64; ++i)
      EXPECT_EQ(y[i], 5 * i);
  }
  // Changed before it was waited for; nobody waits.
  start();
  run(text(16, "call void @llvm.nvvm.cp.async.bulk.wait.group.read(i32 1)", read));
  EXPECT_EQ(y[8], -1);
  run(text(16, "", ""));
  EXPECT_THAT(failure, HasSubstr("a thread ends while shared memory is read by its bulk copy"));
  EXPECT_EQ(run(text(8, read, "")), EmulatorError::Misaligned);
  EXPECT_EQ(run(text(512, read, "")), EmulatorError::OutOfBounds);
}

// Two lines of 120 bytes of x, from the 16th byte on, as a box of two lines of 128: in the swizzle,
// with zeros beyond.
TEST_F(Emulator, BringsBoxesOfTensors) {
  auto text = [](unsigned rank, int column, int line, unsigned swizzle) {
    std::string replace = "call void @llvm.nvvm.tensormap.replace.",
                map = ".p1(ptr addrspace(1) %map, ";
    auto set = [&](const std::string &field, const std::string &value) {
      return replace + field + map + value + ")\n";
    };
    std::string fields =
        set("global.address", "i64 %start") + set("rank", "i32 " + std::to_string(rank - 1)) +
        set("global.dim", "i32 0, i32 120") + set("global.dim", "i32 1, i32 2") +
        set("box.dim", "i32 0, i32 128") + set("box.dim", "i32 1, i32 2") +
        set("element.stride", "i32 0, i32 1") + set("element.stride", "i32 1, i32 1") +
        set("global.stride", "i32 0, i64 128") + set("elemtype", "i32 0") +
        set("interleave.layout", "i32 0") + set("swizzle.mode", "i32 " + std::to_string(swizzle)) +
        set("fill.mode", "i32 0");
    return R"(
    %first = icmp eq i32 %i, 0
    br i1 %first, label %make, label %made
  make:
    %base = ptrtoint ptr addrspace(1) %y to i64
    %up = add i64 %base, 63
    %aligned = and i64 %up, -64
    %map = inttoptr i64 %aligned to ptr addrspace(1)
    %start = ptrtoint ptr addrspace(1) %x to i64
    )" + fields +
           R"(
    call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @t, i32 1)
    %token = call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) @t, i32 256)
    %to = ptrtoint ptr addrspace(3) @s to i32
    %barrier = ptrtoint ptr addrspace(3) @t to i32
    call void asm sideeffect "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$2, $3}], [$4];",
      "r,l,r,r,r,~{memory}"(i32 %to, i64 %aligned, i32 )" +
           std::to_string(column) + ", i32 " + std::to_string(line) + R"(, i32 %barrier)
    br label %made
  made:
    call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
    br label %look
  look:
    %ended = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cluster.space.cta(ptr addrspace(3) @t, i32 0)
    br i1 %ended, label %complete, label %look
  complete:
    %got = load i32, ptr addrspace(3) %own
    store i32 %got, ptr addrspace(1) %at)";
  };
  for (int line : {0, -1, 1}) {
    for (int i = 0; i < 64; ++i)
      x[i] = i + 1;
    run(text(2, 16, line, 3));
    expectGood();
    for (int own = 0; own < 2; ++own)
      for (int word = 0; word < 32; ++word) {
        bool exists = line + own >= 0 && line + own < 2 && word + 4 < 30;
        EXPECT_EQ(x[32 * own + (word ^ (4 * own))], exists ? 32 * (line + own) + word + 5 : 0)
            << line << " " << word;
      }
  }
  EXPECT_EQ(run(text(3, 16, 0, 3)), EmulatorError::WrongOperand);
  EXPECT_EQ(run(text(2, 16, 0, 2)), EmulatorError::WrongOperand);
}

} // namespace
