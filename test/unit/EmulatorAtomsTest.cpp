//===- EmulatorAtomsTest.cpp - What the emulator does for single atoms ------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "EmulatorFixture.h"
#include "runtime/emulator/Atoms.h"
#include "runtime/emulator/SumOfProducts.h"
#include <cmath>

using namespace llvm;
using namespace tegula;
using namespace tegula::emulator;

namespace {

TEST_F(Emulator, TakesASubnormalNumberForZeroWhereTheInstructionDoes) {
  run(R"(
    %tiny = bitcast i32 1 to float
    %v = call float @llvm.nvvm.ex2.approx.ftz.f32(float %tiny)
    %w = call float @llvm.nvvm.ex2.approx.ftz.f32(float -140.0)
    %a = bitcast float %v to i32
    %b = bitcast float %w to i32
    store i32 %a, ptr addrspace(1) %at
    %second = getelementptr i32, ptr addrspace(1) %x, i32 1
    store i32 %b, ptr addrspace(1) %second)",
      1, 1);
  expectGood();
  EXPECT_EQ(x[0], 0x3f800000);
  EXPECT_EQ(x[1], 0);
}

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

const std::string arriveAtCluster = "call void @llvm.nvvm.barrier.cluster.arrive.aligned()\n";
const std::string waitForCluster = "call void @llvm.nvvm.barrier.cluster.wait.aligned()\n";
const std::string syncCluster = arriveAtCluster + waitForCluster;

/// `access` has %there, its element of the other block's shared memory.
std::string inOtherBlock(const std::string &before, const std::string &access,
                         const std::string &after, const std::string &rank = "xor i32 %block, 1") {
  return "store i32 %block, ptr addrspace(3) %own\n%rank = " + rank + R"(
    %there = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) %own, i32 %rank)
    )" + before +
         access + "\n" + after;
}
const std::string readThere = "%got = load i32, ptr addrspace(7) %there";

TEST_F(Emulator, LetsBlocksOfAClusterWriteToEachOther) {
  cluster = 2;
  auto text = [](const std::string &barrier, const std::string &rank = "xor i32 %block, 1") {
    return inOtherBlock(syncCluster, R"(
    %v = add i32 %block, 10
    store i32 %v, ptr addrspace(7) %there)",
                        barrier + R"(
    %got = load i32, ptr addrspace(3) %own
    %to = getelementptr i32, ptr addrspace(1) %y, i32 %block
    %first = icmp eq i32 %i, 0
    br i1 %first, label %write, label %done
  write:
    store i32 %got, ptr addrspace(1) %to
    br label %done
  done:)",
                        rank);
  };
  for (uint64_t seed : {0, 1, 2}) {
    options.seed = seed;
    EXPECT_EQ(run(text(syncCluster), 2), std::nullopt);
    expectGood();
    EXPECT_EQ(y[0], 11);
    EXPECT_EQ(y[1], 10);
  }
  options.seed = 0;
  // Nobody knows then whether the other has written.
  EXPECT_EQ(run(text("") + syncCluster, 2), EmulatorError::Race);
  EXPECT_EQ(run(text(arriveAtCluster) + waitForCluster, 2), EmulatorError::Race);
  EXPECT_EQ(run(text(syncCluster, "add i32 2, 0"), 2), EmulatorError::WrongOperand);
  EXPECT_EQ(run(waitForCluster, 2), EmulatorError::DivergentBarrier);
  EXPECT_EQ(run(arriveAtCluster + arriveAtCluster, 2), EmulatorError::DivergentBarrier);
}

TEST_F(Emulator, WaitsForNoThreadOfAClusterThatHasEnded) {
  cluster = 2;
  // `last`: what threads do of which `ends` holds, before they end; the others write into the other
  // block.
  auto text = [](const std::string &ends, const std::string &last, const std::string &between) {
    return "store i32 %block, ptr addrspace(3) %own\n%ends = icmp " + ends + R"(
    br i1 %ends, label %leaves, label %meets
  leaves:
    )" + last +
           R"(
    br label %done
  meets:
    )" + syncCluster +
           R"(
    %rank = xor i32 %block, 1
    %there = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) %own, i32 %rank)
    %v = add i32 %i, 100
    store i32 %v, ptr addrspace(7) %there
    )" + between +
           R"(
    %got = load i32, ptr addrspace(3) %own
    %first = shl i32 %block, 5
    %half = sub i32 %i, 32
    %n = add i32 %first, %half
    %to = getelementptr i32, ptr addrspace(1) %y, i32 %n
    store i32 %got, ptr addrspace(1) %to
    br label %done
  done:)";
  };
  for (uint64_t seed : {0, 1, 2, 3}) {
    options.seed = seed;
    for (const std::string &last : {std::string(), arriveAtCluster}) {
      run(text("ult i32 %i, 32", last, syncCluster), 2);
      expectGood();
      EXPECT_EQ(y[8], 140);
    }
    EXPECT_EQ(run(text("ult i32 %i, 32", "", ""), 2), EmulatorError::Race);
    // A block that has ended whole is not waited for either, but none may write into it.
    EXPECT_EQ(run(text("eq i32 %block, 0", "", syncCluster), 2), EmulatorError::BlockLifetime);
  }
}

TEST_F(Emulator, FindsAnAccessToABlockThatMayNotHaveBegun) {
  cluster = 2;
  const std::string write = "store i32 1, ptr addrspace(7) %there";
  for (uint64_t seed : {0, 1, 2, 3}) {
    options.seed = seed;
    EXPECT_EQ(run(inOtherBlock(syncCluster, readThere, syncCluster), 2), std::nullopt);
    expectGood();
    for (const std::string &before :
         {std::string(), arriveAtCluster, std::string("call void @llvm.nvvm.membar.gl()\n")}) {
      std::string after = before == arriveAtCluster ? waitForCluster : syncCluster;
      EXPECT_EQ(run(inOtherBlock(before, readThere, after), 2), EmulatorError::BlockLifetime)
          << before << seed;
      EXPECT_EQ(run(inOtherBlock(before, write, after), 2), EmulatorError::BlockLifetime)
          << before << seed;
    }
    EXPECT_THAT(failure, HasSubstr("before it begins"));
    // Its own block has begun, by whichever address.
    run(inOtherBlock("", readThere, "", "and i32 %block, 1"), 2);
    expectGood();
  }
}

TEST_F(Emulator, FindsAnAccessToABlockThatMayHaveEnded) {
  cluster = 2;
  // Block 1 reads from block 0. `waits`: the block that waits for the cluster then; both come.
  auto text = [](const std::string &waits) {
    return inOtherBlock(syncCluster + R"(
    %reads = icmp eq i32 %block, 1
    br i1 %reads, label %read, label %come
  read:
    )",
                        readThere,
                        "br label %come\ncome:\n" + arriveAtCluster +
                            "%waits = icmp eq i32 %block, " + waits + R"(
    br i1 %waits, label %wait, label %done
  wait:
    )" + waitForCluster + "br label %done\ndone:");
  };
  for (uint64_t seed : {0, 1, 2, 3}) {
    options.seed = seed;
    run(text("0"), 2);
    expectGood();
    EXPECT_EQ(run(text("1"), 2), EmulatorError::BlockLifetime) << seed;
    EXPECT_EQ(run(inOtherBlock(syncCluster, readThere, ""), 2), EmulatorError::BlockLifetime)
        << seed;
    EXPECT_THAT(failure, HasSubstr("'s' of block "));
    EXPECT_THAT(failure, HasSubstr("ended"));
    EXPECT_EQ(run(inOtherBlock(syncCluster, readThere, arriveAtCluster), 2),
              EmulatorError::BlockLifetime)
        << seed;
  }
}

// Each thread puts a value into the other block, whose threads wait for all bytes.
TEST_F(Emulator, WaitsForTheBytesOfOtherBlocks) {
  cluster = 2;
  const std::string make =
      "call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @t, i32 1)\n";
  const std::string look = R"(
    %ended = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cluster.space.cta(ptr addrspace(3) @t, i32 0)
    br i1 %ended, label %complete, label %look
  )";
  auto text = [](const std::string &make, unsigned bytes, const std::string &look) {
    return R"(
    %first = icmp eq i32 %i, 0
    br i1 %first, label %make, label %made
  make:
    )" + make +
           R"(br label %made
  made:
    %rank = xor i32 %block, 1
    %there = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) %own, i32 %rank)
    %arrived = call ptr addrspace(7) @llvm.nvvm.mapa.shared.cluster(ptr addrspace(3) @t, i32 %rank)
    call void @llvm.nvvm.barrier.cluster.arrive.aligned()
    call void @llvm.nvvm.barrier.cluster.wait.aligned()
    %w = add i32 %i, %block
    %v = sitofp i32 %w to float
    call void asm sideeffect "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [$0], $1, [$2];",
      "l,f,l,~{memory}"(ptr addrspace(7) %there, float %v, ptr addrspace(7) %arrived)
    br i1 %first, label %expect, label %look
  expect:
    %token = call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) @t, i32 )" +
           std::to_string(bytes) + R"()
    br label %look
  look:
    )" + look +
           R"(
  complete:
    %got = load float, ptr addrspace(3) %other
    %g = fptosi float %got to i32
    %mine = icmp eq i32 %block, 0
    br i1 %mine, label %write, label %done
  write:
    store i32 %g, ptr addrspace(1) %at
    br label %done
  done:
    call void @llvm.nvvm.barrier.cluster.arrive.aligned()
    call void @llvm.nvvm.barrier.cluster.wait.aligned())";
  };
  for (uint64_t seed : {0, 1, 2}) {
    options.seed = seed;
    EXPECT_EQ(run(text(make, 256, look), 2), std::nullopt);
    expectGood();
    EXPECT_EQ(x[4], 6); // the value of the partner's place, of the other block
    EXPECT_EQ(x[5], 5);
  }
  options.seed = 0;
  std::optional<EmulatorError::Kind> early = run(text(make, 256, "br label %complete"), 2);
  EXPECT_TRUE(early == EmulatorError::Undefined || early == EmulatorError::Race);
  // Before all bytes have come, or for ever.
  early = run(text(make, 4, look), 2);
  EXPECT_TRUE(early == EmulatorError::Undefined || early == EmulatorError::Race ||
              early == EmulatorError::Deadlock);
  EXPECT_TRUE(run(text(make, 260, look), 2).has_value());
  early = run(text("", 256, look), 2);
  EXPECT_TRUE(early == EmulatorError::Undefined || early == EmulatorError::WrongOperand);
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

TEST_F(Emulator, ShufflesAsThePtxManualSays) {
  auto shuffled = [&](StringRef call) {
    run(("%v = " + call + "\n store i32 %v, ptr addrspace(1) %at").str());
    expectGood();
    return x;
  };
  std::vector<int32_t> down =
      shuffled("call i32 @llvm.nvvm.shfl.sync.down.i32(i32 -1, i32 %i, i32 2, i32 31)");
  EXPECT_EQ(down[5], 7);
  EXPECT_EQ(down[31], 31); // out of range: its own
  EXPECT_EQ(down[33], 35);
  std::vector<int32_t> up =
      shuffled("call i32 @llvm.nvvm.shfl.sync.up.i32(i32 -1, i32 %i, i32 1, i32 0)");
  EXPECT_EQ(up[0], 0);
  EXPECT_EQ(up[17], 16);
  std::vector<int32_t> butterfly =
      shuffled("call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %i, i32 16, i32 31)");
  EXPECT_EQ(butterfly[3], 19);
  EXPECT_EQ(butterfly[50], 34);
  // Segments of 8 lanes: the upper bits of a lane's number stay (0x18 << 8 | 0x1f).
  std::vector<int32_t> segments =
      shuffled("call i32 @llvm.nvvm.shfl.sync.down.i32(i32 -1, i32 %i, i32 1, i32 6175)");
  EXPECT_EQ(segments[6], 7);
  EXPECT_EQ(segments[7], 7);
  EXPECT_EQ(segments[8], 9);
  run(R"(
    %pair = call {i32, i1} @llvm.nvvm.shfl.sync.idx.i32p(i32 -1, i32 %i, i32 9, i32 31)
    %v = extractvalue {i32, i1} %pair, 0
    %p = extractvalue {i32, i1} %pair, 1
    %q = select i1 %p, i32 100, i32 0
    %sum = add i32 %v, %q
    store i32 %sum, ptr addrspace(1) %at)");
  expectGood();
  EXPECT_EQ(x[40], 32 + 9 + 100);
}

TEST_F(Emulator, VotesAndReducesOverTheMask) {
  run(R"(
    %odd = trunc i32 %i to i1
    br i1 %odd, label %a, label %end
  a:
    %big = icmp ugt i32 %i, 20
    %votes = call i32 @llvm.nvvm.vote.ballot.sync(i32 2863311530, i1 %big)
    %sum = call i32 @llvm.nvvm.redux.sync.add(i32 %votes, i32 2863311530)
    store i32 %votes, ptr addrspace(1) %at
    %beside = getelementptr i32, ptr addrspace(1) %y, i32 %i
    store i32 %sum, ptr addrspace(1) %beside
    br label %end
  end:)",
      1, 32);
  expectGood();
  EXPECT_EQ(uint32_t(x[1]), 0xaaa00000u);
  EXPECT_EQ(uint32_t(y[1]), 16 * 0xaaa00000u);
}

TEST_F(Emulator, RefusesAShuffleFromALaneThatIsNotThere) {
  EXPECT_EQ(
      run("%v = call i32 @llvm.nvvm.shfl.sync.down.i32(i32 -1, i32 %i, i32 16, i32 31)", 1, 24),
      EmulatorError::WrongOperand);
  EXPECT_THAT(failure, HasSubstr("takes the value of lane 24"));
}

TEST_F(Emulator, RoundsPairsToTheNearestOfBrainFloat) {
  // 1 + 2^-8 lies in the middle, 1 + 3 * 2^-8 too: to even. The first operand is the upper half.
  run(R"(
    %n = sitofp i32 %i to float
    %part = fmul float %n, 0x3F70000000000000
    %value = fadd float %part, 1.0
    %pair = call <2 x bfloat> @llvm.nvvm.ff2bf16x2.rn(float %value, float 0x7FF8000000000000)
    %word = bitcast <2 x bfloat> %pair to i32
    store i32 %word, ptr addrspace(1) %at)",
      1, 32);
  expectGood();
  const uint32_t upper[] = {0x3f80, 0x3f80, 0x3f81, 0x3f82, 0x3f82};
  for (unsigned n = 0; n < 5; ++n)
    EXPECT_EQ(uint32_t(x[n]), upper[n] << 16 | 0x7fff) << n;
}

TEST_F(Emulator, RoundsPairsToTheNearestOfF8) {
  // 16 + n: steps are of 2, halves go to even; the first operand is the upper byte. 1000 is beyond
  // the largest, which stays.
  run(R"(
    %n = sitofp i32 %i to float
    %value = fadd float %n, 16.0
    %pair = call i16 @llvm.nvvm.ff.to.e4m3x2.rn(float %value, float 1000.0)
    %word = zext i16 %pair to i32
    store i32 %word, ptr addrspace(1) %at)",
      1, 32);
  expectGood();
  const uint32_t upper[] = {0x58, 0x58, 0x59, 0x5a, 0x5a, 0x5a, 0x5b};
  for (unsigned n = 0; n < 7; ++n)
    EXPECT_EQ(uint32_t(x[n]), upper[n] << 8 | 0x7e) << n;
}

TEST_F(Emulator, WidensPairsOfF8) {
  run(R"(
    %pair = call <2 x half> @llvm.nvvm.e5m2x2.to.f16x2.rn(i16 32064)
    %word = bitcast <2 x half> %pair to i32
    store i32 %word, ptr addrspace(1) %at)",
      1, 32);
  expectGood();
  EXPECT_EQ(uint32_t(x[0]), 0x7fff4000u); // NaN above 2
}

TEST_F(Emulator, SelectsBytesOfWords) {
  x[0] = 0x12345678;
  x[1] = 0x0abcdef1;
  run(R"(
    %second = getelementptr i32, ptr addrspace(1) %x, i32 1
    %a = load i32, ptr addrspace(1) %x
    %b = load i32, ptr addrspace(1) %second
    %halves = call i32 @llvm.nvvm.prmt(i32 %a, i32 %b, i32 30258)
    %signs = call i32 @llvm.nvvm.prmt(i32 %a, i32 %b, i32 49336)
    store i32 %halves, ptr addrspace(1) %y
    %further = getelementptr i32, ptr addrspace(1) %y, i32 1
    store i32 %signs, ptr addrspace(1) %further)",
      1, 1);
  expectGood();
  EXPECT_EQ(uint32_t(y[0]), 0x0abc1234u); // 0x7632
  EXPECT_EQ(uint32_t(y[1]), 0xff780000u); // 0xc0b8
}

TEST_F(Emulator, KeepsThirteenBitsOfSumsOfBytes) {
  constexpr float largest = 1 << 13;
  auto add = [](std::vector<double> products, float before, int exponent = 13) {
    return addSmallProducts(products, exponent, before);
  };
  EXPECT_EQ(add({largest, 1}, 0), largest + 1);
  EXPECT_EQ(add({largest, 0.5, 0.5}, 0), largest); // each is cut off before they are added
  EXPECT_EQ(add({-largest, 0.75}, 0), -largest);
  EXPECT_EQ(add({1, 1}, largest), largest + 2);
  EXPECT_EQ(add({largest, 1}, largest), 2 * largest); // and the last bit of the sum
  EXPECT_EQ(add({0x1p-18, -0x1p-18}, 0x1p-40f, -18), 0);
  EXPECT_EQ(add({2.25 * largest, 1}, 0),
            2.25f * largest); // factors of 1.5: the 1 is added, and cut off of the sum
  EXPECT_EQ(add({2.25 * largest, 1, 1}, 0), 2.25f * largest + 2);
  EXPECT_EQ(add({INFINITY, 1}, 1), INFINITY);
  EXPECT_TRUE(std::isnan(add({INFINITY, -INFINITY}, 1)));
  EXPECT_EQ(addProducts({largest, 0.5, 0.5}, 0), largest + 1);
}

TEST_F(Emulator, CountsSharedMemory) {
  failure.clear();
  run("%far = getelementptr i32, ptr addrspace(3) @large, i32 %i\n store i32 1, ptr addrspace(3) "
      "%far");
  EXPECT_THAT(failure,
              HasSubstr("k: 65792 bytes of shared memory, of which a function has at most 49152"));
}

TEST_F(Emulator, RefusesALaunchWithMoreSharedMemoryThanThereIs) {
  dynamicBytes = 227 << 10;
  EXPECT_EQ(run("store i32 1, ptr addrspace(1) %at"), std::nullopt) << failure;
  ++dynamicBytes;
  EXPECT_EQ(run("store i32 1, ptr addrspace(1) %at"), EmulatorError::RefusedLaunch);
  EXPECT_THAT(
      failure,
      HasSubstr("232449 bytes of shared memory for a block, of which the device gives 232448"));
}

TEST_F(Emulator, NamesAnAtomThatItDoesNotHave) {
  run("call void asm sideeffect \"brkpt;\", \"\"()");
  EXPECT_THAT(failure, HasSubstr("no host function for the PTX 'brkpt;'"));
}

} // namespace
