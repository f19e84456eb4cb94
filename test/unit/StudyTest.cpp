//===- StudyTest.cpp - Passes left out, and what comes of it ----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Study.h"
#include "bench/Bisect.h"
#include "gtest/gtest.h"

using namespace tegula;
using namespace tegula::bench;

// Memberwise it would end the runner before the launches that use it.
static_assert(!std::is_move_assignable_v<bench::Study::Way>);

TEST(PassRuns, CountsWhatCanBeLeftOut) {
  PassRuns runs({"licm"}, /*most=*/2, {"tgl-fuse"});
  EXPECT_TRUE(runs.shouldRun("tgl-fuse", "")); // needed: not counted
  EXPECT_FALSE(runs.shouldRun("licm", "f"));
  EXPECT_TRUE(runs.shouldRun("gvn", "f"));
  EXPECT_TRUE(runs.shouldRun("gvn", "g"));
  EXPECT_FALSE(runs.hasMore());
  EXPECT_FALSE(runs.shouldRun("gvn", "h"));
  EXPECT_TRUE(runs.shouldRun("tgl-fuse", ""));
  EXPECT_TRUE(runs.hasMore());
  ASSERT_EQ(runs.runs().size(), 2u);
  EXPECT_EQ(runs.runs()[1].where, "g");
  EXPECT_EQ(runs.passes(), (std::vector<std::string>{"tgl-fuse", "licm", "gvn"}));
  runs.begin();
  EXPECT_TRUE(runs.shouldRun("gvn", "f"));
  EXPECT_EQ(runs.runs().size(), 1u);
}

TEST(PassRuns, AddsSparePassesThatAreAskedFor) {
  PassRuns runs({"slsr"}, PassRuns::all, {}, {"slsr", "nary-reassociate"});
  EXPECT_TRUE(runs.shouldAdd("nary-reassociate"));
  EXPECT_TRUE(runs.shouldAdd("slsr"));
  EXPECT_FALSE(runs.shouldRun("slsr", "f")); // it is there, and left out
  EXPECT_FALSE(runs.shouldAdd("another"));
  EXPECT_EQ(runs.spares(), (std::vector<std::string>{"nary-reassociate", "slsr", "another"}));
  EXPECT_EQ(runs.passes(), std::vector<std::string>{"slsr"});
  runs.begin();
  EXPECT_TRUE(runs.spares().empty());
}

/// For every number of runs and every culprit, with every set of prefixes that have no code.
TEST(Bisect, FindsTheFirstBadPrefix) {
  for (unsigned runs = 1; runs <= 9; ++runs)
    for (unsigned culprit = 1; culprit <= runs; ++culprit)
      for (unsigned none = 0; none < 1u << (runs - 1); ++none) {
        auto hasCode = [&](unsigned count) {
          return count == 0 || count == runs || !(none >> (count - 1) & 1);
        };
        unsigned asked = 0;
        Culprit found = bisect(0, runs, [&](uint64_t count) {
          EXPECT_GT(count, 0u);
          EXPECT_LT(count, runs);
          ++asked;
          return !hasCode(count) ? Prefix::None : count >= culprit ? Prefix::Bad : Prefix::Good;
        });
        unsigned bad = culprit, good = culprit - 1;
        while (!hasCode(bad))
          ++bad;
        while (!hasCode(good))
          --good;
        EXPECT_EQ(found.bad, bad);
        EXPECT_EQ(found.good, good);
        if (!none)
          EXPECT_LE(asked, 4u);
      }
}

TEST(Study, CountsInstructions) {
  EXPECT_EQ(countInstructions("f:\n\t.cfi_startproc\n\tmovl\t%eax, %ebx\n.L1:\n\tret\n# note\n\n"),
            2u);
  EXPECT_EQ(countInstructions(
                "{\n\t.reg .b32 %r<3>;\n\tld.global.b32 \t%r1, [%rd1];\n\t@%p1 bra \t$L__BB0_2;\n"
                "\t// note\n$L__BB0_2:\n\tret;\n}\n"),
            3u);
}

TEST(Study, ReadsWhatAssemblersReport) {
  CodeFacts facts;
  readAssemblerLog("ptxas info    : 0 bytes gmem\n"
                   "ptxas info    : Function properties for a\n"
                   "    8 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads\n"
                   "ptxas info    : Used 255 registers, used 1 barriers, 400 bytes cmem[0]\n"
                   "ptxas info    : Function properties for b\n"
                   "ptxas info    : Used 32 registers\n",
                   facts);
  EXPECT_EQ(facts.registers, 255u);
  EXPECT_EQ(facts.spillBytes, 40u);
  CodeFacts nothing;
  readAssemblerLog("", nothing);
  EXPECT_FALSE(nothing.registers);
}
