//===- EmulatorTest.cpp - What the emulator runs, and what it finds ---------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Device code as no strategy should make it, and what the emulator says; next to each the right
// form, about which it says nothing.
//
//===----------------------------------------------------------------------===//
#include "EmulatorFixture.h"

using namespace llvm;
using namespace tegula;

namespace {

constexpr auto race = EmulatorError::Race;

//===----------------------------------------------------------------------===//
// Shared memory and barriers
//===----------------------------------------------------------------------===//

TEST_F(Emulator, ExchangesThroughSharedMemoryInEveryOrder) {
  for (uint64_t seed : {0, 1, 2, 3}) {
    options.seed = seed;
    run(R"(
      store i32 %i, ptr addrspace(3) %own
      call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
      %v = load i32, ptr addrspace(3) %other
      store i32 %v, ptr addrspace(1) %at)");
    expectGood();
    for (int i = 0; i < 64; ++i)
      EXPECT_EQ(x[i], i ^ 1);
  }
}

TEST_F(Emulator, FindsARaceOnSharedMemory) {
  EXPECT_EQ(run(R"(
    store i32 %i, ptr addrspace(3) %own
    store i32 1, ptr addrspace(3) %other)"),
            race);
  EXPECT_THAT(failure, HasSubstr("race on 's' at byte 4: a write here and a write by thread 0"));
  // The next turn's write without a barrier after the reads of the last.
  EXPECT_EQ(run(R"(
    store i32 %i, ptr addrspace(3) %own
    call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
    %v = load i32, ptr addrspace(3) %other
    %is1 = icmp eq i32 %i, 1
    br i1 %is1, label %write, label %end
  write:
    store i32 %v, ptr addrspace(3) %own
    br label %end
  end:)"),
            race);
  EXPECT_THAT(failure, HasSubstr("a read by thread"));
}

TEST_F(Emulator, OrdersAWarpByItsBarrierAndNoOther) {
  const char *text = R"(
    store i32 %i, ptr addrspace(3) %own
    call void @llvm.nvvm.bar.warp.sync(i32 -1)
    %v = load i32, ptr addrspace(3) %other
    store i32 %v, ptr addrspace(1) %at)";
  run(text);
  expectGood();
  EXPECT_EQ(x[63], 62);
  // Thread 32 reads what thread 0 wrote, of another warp.
  EXPECT_EQ(run(R"(
    store i32 %i, ptr addrspace(3) %own
    call void @llvm.nvvm.bar.warp.sync(i32 -1)
    %far = xor i32 %i, 32
    %there = getelementptr i32, ptr addrspace(3) @s, i32 %far
    store i32 1, ptr addrspace(3) %there)"),
            race);
}

TEST_F(Emulator, OrdersProducersAndConsumersByNamedBarriers) {
  // Warp 0 writes and announces itself, warp 1 waits and reads.
  const char *text = R"(
    %isFirst = icmp ult i32 %i, 32
    br i1 %isFirst, label %produce, label %consume
  produce:
    store i32 %i, ptr addrspace(3) %own
    ARRIVE
    br label %end
  consume:
    call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 64)
    %low = sub i32 %i, 32
    %there = getelementptr i32, ptr addrspace(3) @s, i32 %low
    %v = load i32, ptr addrspace(3) %there
    store i32 %v, ptr addrspace(1) %at
    br label %end
  end:)";
  std::string right = text;
  right.replace(right.find("ARRIVE"), 6,
                "call void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32 1, i32 64)");
  run(right);
  expectGood();
  EXPECT_EQ(x[63], 31);
  std::string wrong = text;
  wrong.replace(wrong.find("ARRIVE"), 6, "");
  EXPECT_EQ(run(wrong), EmulatorError::DivergentBarrier);
}

TEST_F(Emulator, FindsUndefinedSharedMemory) {
  EXPECT_EQ(run(R"(
    %v = load i32, ptr addrspace(3) %own
    store i32 %v, ptr addrspace(1) %at)"),
            EmulatorError::Undefined);
  EXPECT_THAT(failure, HasSubstr("a read of 4 bytes at byte 0 of 's', of which byte 0"));
  // What one block has left is nothing to the next, which may have the same memory.
  EXPECT_EQ(run(R"(
    %isFirst = icmp eq i32 %block, 0
    br i1 %isFirst, label %write, label %read
  write:
    store i32 %i, ptr addrspace(3) %own
    br label %end
  read:
    %v = load i32, ptr addrspace(3) %own
    br label %end
  end:)",
                40),
            EmulatorError::Undefined);
}

TEST_F(Emulator, FindsUndefinedGlobalMemory) {
  xContents = BufferContents::Undefined;
  EXPECT_EQ(run("%v = load i32, ptr addrspace(1) %at"), EmulatorError::Undefined);
}

TEST_F(Emulator, LetsAccessesFindWhatNobodyHasWritten) {
  const char *mayBeUndefined = "%v = load atomic i32, ptr addrspace(1) %at monotonic, align 4, "
                               "!tegula.may-be-undefined !{}\n";
  xContents = BufferContents::Undefined;
  EXPECT_EQ(run(mayBeUndefined), std::nullopt);
  // What one access has found stays, and others read it.
  EXPECT_EQ(run(std::string(mayBeUndefined) + "%w = load i32, ptr addrspace(1) %at"), std::nullopt);
}

TEST_F(Emulator, FindsDivergentBarriers) {
  // Half of a warp goes by.
  EXPECT_EQ(run(R"(
    %some = icmp ult i32 %i, 16
    br i1 %some, label %wait, label %end
  wait:
    call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
    br label %end
  end:)"),
            EmulatorError::DivergentBarrier);
  EXPECT_THAT(failure, HasSubstr("16 threads (the first is 0) wait at a barrier"));
  EXPECT_THAT(failure, HasSubstr("48 have ended"));
  // The halves of a warp come to different barriers, which the hardware takes for one or hangs.
  EXPECT_EQ(run(R"(
    %some = icmp ult i32 %i, 16
    br i1 %some, label %a, label %b
  a:
    call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
    br label %end
  b:
    call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 1)
    br label %end
  end:)"),
            EmulatorError::DivergentBarrier);
}

TEST_F(Emulator, FindsDeadlocks) {
  // Lane 0 waits for a flag that nobody writes, the others for lane 0.
  const char *spin = R"(
    %is0 = icmp eq i32 %i, 0
    br i1 %is0, label %look, label %meet
  look:
    %v = load atomic i32, ptr addrspace(1) %y acquire, align 4
    %isSet = icmp ne i32 %v, 0
    br i1 %isSet, label %meet, label %look
  meet:
    %w = call i32 @llvm.nvvm.shfl.sync.down.i32(i32 -1, i32 %i, i32 1, i32 31)
    ret void
  end:)";
  EXPECT_EQ(run(spin), EmulatorError::Deadlock);
  EXPECT_THAT(failure, HasSubstr("wait at an operation of their warp"));
  EXPECT_THAT(failure, HasSubstr("1 threads look for a value that nobody writes"));
  y[0] = 1;
  run(spin);
  expectGood();
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

TEST_F(Emulator, FindsAccessesOutOfBounds) {
  x.resize(63);
  EXPECT_EQ(run("store i32 %i, ptr addrspace(1) %at"), EmulatorError::OutOfBounds);
  EXPECT_THAT(failure, HasSubstr("a write of 4 bytes at byte 252 of 'x', which has 252"));
  EXPECT_THAT(failure, HasSubstr("thread 63"));
  // From one object of shared memory into the next.
  EXPECT_EQ(run(R"(
    %far = getelementptr i32, ptr addrspace(3) @s, i32 64
    store i32 1, ptr addrspace(3) %far
    store i32 1, ptr addrspace(3) @t)"),
            EmulatorError::OutOfBounds);
  EXPECT_THAT(failure, HasSubstr("at byte 256 of 's', which has 256"));
  // Out of a thread's own array.
  EXPECT_EQ(run(R"(
    %array = alloca [4 x i32]
    %in = getelementptr i32, ptr %array, i32 %partner
    store i32 1, ptr %in)"),
            EmulatorError::OutOfBounds);
  EXPECT_THAT(failure, HasSubstr("of a thread's own 16"));
}

TEST_F(Emulator, FindsMisalignedAccesses) {
  const char *text = R"(
    %v = load <2 x i32>, ptr addrspace(1) %at, align 8)";
  x.resize(128);
  EXPECT_EQ(run(text, 1, 1), std::nullopt);
  expectGood();
  EXPECT_EQ(run(text), EmulatorError::Misaligned);
  EXPECT_THAT(failure, HasSubstr("at byte 4 of 'x', whose address is no multiple of 8"));
}

TEST_F(Emulator, ProtectsInputs) {
  xContents = BufferContents::Constant;
  EXPECT_EQ(run("store i32 %i, ptr addrspace(1) %at"), EmulatorError::OutOfBounds);
  EXPECT_THAT(failure, HasSubstr("'x', which is an input"));
}

//===----------------------------------------------------------------------===//
// Between blocks
//===----------------------------------------------------------------------===//

TEST_F(Emulator, FindsARaceOnGlobalMemory) {
  EXPECT_EQ(run("store i32 %i, ptr addrspace(1) %at", 2), race);
  EXPECT_THAT(failure, HasSubstr("race on 'x'"));
  EXPECT_THAT(failure, HasSubstr("of block 0"));
}

TEST_F(Emulator, TellsAtomicAccessesFromOthers) {
  run("%v = atomicrmw add ptr addrspace(1) %at, i32 1 monotonic", 3);
  expectGood();
  EXPECT_EQ(x[5], 3);
  EXPECT_EQ(run(R"(
    %v = atomicrmw add ptr addrspace(1) %at, i32 1 monotonic
    %w = load i32, ptr addrspace(1) %at)",
                2),
            race);
  // An atomic operation that only its block sees is none to others.
  EXPECT_EQ(
      run(R"(%v = atomicrmw add ptr addrspace(1) %at, i32 1 syncscope("block") monotonic)", 2),
      race);
}

TEST_F(Emulator, SeesNeighbouringElementsApart) {
  run(R"(
    %byte = getelementptr i8, ptr addrspace(1) %x, i32 %i
    %v = trunc i32 %i to i8
    store i8 %v, ptr addrspace(1) %byte)");
  expectGood();
  EXPECT_EQ(x[0], 0x03020100);
}

/// Four words at once by each thread, then bytes and words of the neighbour's.
TEST_F(Emulator, SeesPartsOfWhatWasWrittenAsAWhole) {
  auto text = [](StringRef order, unsigned byte, unsigned word) {
    return R"(
    %four = mul i32 %i, 4
    %all = getelementptr i32, ptr addrspace(3) @ring, i32 %four
    store <4 x i32> <i32 1, i32 2, i32 3, i32 4>, ptr addrspace(3) %all, align 16
    )" + order.str() +
           R"(
    %othersFour = xor i32 %four, 4
    %others = getelementptr i32, ptr addrspace(3) @ring, i32 %othersFour
    %byte = getelementptr i8, ptr addrspace(3) %others, i32 )" +
           std::to_string(byte) + R"(
    store i8 9, ptr addrspace(3) %byte
    %word = getelementptr i32, ptr addrspace(3) %all, i32 )" +
           std::to_string(word) + R"(
    %v = load i32, ptr addrspace(3) %word
    store i32 %v, ptr addrspace(1) %at)";
  };
  const StringRef barrier = "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)";
  for (unsigned word : {0, 2, 3}) {
    run(text(barrier, 6, word));
    expectGood();
    EXPECT_EQ(x[63], int(word) + 1);
  }
  EXPECT_EQ(run(text(barrier, 6, 1)), race);
  EXPECT_EQ(run(text("", 6, 0)), race);
  EXPECT_THAT(failure,
              HasSubstr("race on 'ring' at byte 22: a write here and a write by thread 0"));
}

/// All read one word, twice; then the last thread of the last block writes it.
TEST_F(Emulator, RemembersReadersWhereManyRead) {
  EXPECT_EQ(run(R"(
    %v = load i32, ptr addrspace(1) %x
    %w = load i32, ptr addrspace(1) %x
    call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
    %u = load i32, ptr addrspace(1) %x
    %last = icmp eq i32 %block, 2
    br i1 %last, label %write, label %end
  write:
    store i32 %u, ptr addrspace(1) %x
    br label %end
  end:)",
                3),
            race);
  EXPECT_THAT(failure, HasSubstr("a read by thread"));
}

/// The last block to finish adds up what the others have left: each leaves its value, makes it
/// known and counts itself.
std::string splitReduction(StringRef makeKnown, StringRef order) {
  return (R"(
    %mine = getelementptr i32, ptr addrspace(1) %x, i32 %block
    %value = add i32 %block, 10
    store i32 %value, ptr addrspace(1) %mine
    )" + makeKnown +
          R"(
    %count = atomicrmw add ptr addrspace(1) %y, i32 1 )" +
          order + R"(
    %isLast = icmp eq i32 %count, 7
    br i1 %isLast, label %sum, label %end
  sum:
    )" + makeKnown +
          R"(
    br label %loop
  loop:
    %n = phi i32 [ 0, %sum ], [ %next, %loop ]
    %all = phi i32 [ 0, %sum ], [ %more, %loop ]
    %from = getelementptr i32, ptr addrspace(1) %x, i32 %n
    %part = load i32, ptr addrspace(1) %from
    %more = add i32 %all, %part
    %next = add i32 %n, 1
    %goesOn = icmp ult i32 %next, 8
    br i1 %goesOn, label %loop, label %store
  store:
    %result = getelementptr i32, ptr addrspace(1) %y, i32 1
    store i32 %more, ptr addrspace(1) %result
    br label %end
  end:)")
      .str();
}

TEST_F(Emulator, KnowsTheLastBlockOfASplitReduction) {
  for (uint64_t seed : {0, 1, 2, 3}) {
    options.seed = seed;
    for (auto [fence, order] :
         {std::pair("call void @llvm.nvvm.membar.gl()", "monotonic"),
          std::pair("fence acq_rel", "monotonic"), std::pair("", "acq_rel")}) {
      y.assign(64, 0);
      run(splitReduction(fence, order), 8, 1);
      expectGood();
      EXPECT_EQ(y[1], 8 * 10 + 28);
    }
    y.assign(64, 0);
    EXPECT_EQ(run(splitReduction("", "monotonic"), 8, 1), race);
    y.assign(64, 0);
    EXPECT_EQ(run(splitReduction("", "acquire"), 8, 1), race); // nothing is released
    y.assign(64, 0);
    EXPECT_EQ(run(splitReduction(R"(fence syncscope("block") acq_rel)", "monotonic"), 8, 1), race);
  }
}

/// A running sum over the blocks, each waiting for the flag of the one before it.
std::string lookBack(StringRef write, StringRef read, StringRef number) {
  return (number + R"(
    %isFirst = icmp eq i32 %b, 0
    br i1 %isFirst, label %done, label %before
  before:
    %previous = sub i32 %b, 1
    %flagBefore = getelementptr i32, ptr addrspace(1) %y, i32 %b
    br label %look
  look:
    %flag = load )" +
          read + R"(
    %isSet = icmp ne i32 %flag, 0
    br i1 %isSet, label %take, label %look
  take:
    %sumBefore = getelementptr i32, ptr addrspace(1) %x, i32 %previous
    %sum = load i32, ptr addrspace(1) %sumBefore
    br label %done
  done:
    %all = phi i32 [ 0, %0 ], [ %sum, %take ]
    %own1 = add i32 %all, %b
    %mine = getelementptr i32, ptr addrspace(1) %x, i32 %b
    store i32 %own1, ptr addrspace(1) %mine
    %after = add i32 %b, 1
    %flagAt = getelementptr i32, ptr addrspace(1) %y, i32 %after
    store )" +
          write)
      .str();
}

TEST_F(Emulator, FollowsFlagsFromBlockToBlock) {
  // Blocks take their numbers in the order in which they begin: y[0] counts.
  const char *ticket = "%b = atomicrmw add ptr addrspace(1) %y, i32 1 monotonic";
  const char *set = "atomic i32 1, ptr addrspace(1) %flagAt release, align 4";
  const char *look = "atomic i32, ptr addrspace(1) %flagBefore acquire, align 4";
  for (uint64_t seed : {0, 1, 2}) {
    options.seed = seed;
    y.assign(64, 0);
    run(lookBack(set, look, ticket), 20, 1);
    expectGood();
    EXPECT_EQ(x[19], 190);
    y.assign(64, 0);
    EXPECT_EQ(run(lookBack("volatile i32 1, ptr addrspace(1) %flagAt",
                           "volatile i32, ptr addrspace(1) %flagBefore", ticket),
                  20, 1),
              race); // strong, but nothing says in which order the sum comes
  }
  // By their own numbers they rely on an order that the hardware does not promise.
  options.seed = 5;
  y.assign(64, 0);
  EXPECT_EQ(run(lookBack(set, look, "%b = add i32 %block, 0"), 20, 1), EmulatorError::Deadlock);
}

} // namespace
