//===- TuneTest.cpp - What is tried of a schedule, and what is kept of it ---------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Tune.h"
#include "gtest/gtest.h"
#include <random>

using namespace tegula;
using namespace tegula::bench;

TEST(ScheduleChoice, IsReadBackAsWritten) {
  ScheduleChoice choice;
  EXPECT_TRUE(choice.isDefault());
  EXPECT_EQ(choice.text(), "default");
  choice.tiles = {"", "64x64/2"};
  choice.units = {PlanStep::ByPoints, PlanStep::Team, PlanStep::Thread};
  choice.without = {"tile-loop", "tgl-split-reductions"};
  EXPECT_EQ(choice.text(),
            "tiles=,64x64/2 units=,team,thread without=tile-loop,tgl-split-reductions");
  for (const std::string &text : {choice.text(), std::string("default"),
                                  std::string("tiles=128x128-packed/1:stages=3:raster=4")}) {
    std::optional<ScheduleChoice> parsed = ScheduleChoice::parse(text);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->text(), text);
  }
  for (const char *text : {"units=warp", "colour=red", "tiles", ""})
    EXPECT_TRUE(!ScheduleChoice::parse(text) || ScheduleChoice::parse(text)->isDefault()) << text;
}

TEST(ScheduleChoice, TakesTheOthersParts) {
  ScheduleChoice one, other;
  one.tiles = {"64x64/1", "32x128/1"};
  other.tiles = {"", "128x64/2", "16x128/1"};
  other.without = {"tile-loop"};
  EXPECT_EQ(one.with(other).text(), "tiles=64x64/1,128x64/2,16x128/1 without=tile-loop");
  EXPECT_EQ(one.with(ScheduleChoice()).text(), one.text());
}

TEST(ScheduleChoice, SaysWhatRuns) {
  Plan plan;
  plan.steps.resize(2);
  plan.steps[0].kind = PlanStep::Loop;
  plan.steps[0].body.resize(1);
  ScheduleChoice choice;
  choice.units = {PlanStep::Team, PlanStep::Thread, PlanStep::Team}; // one too many
  for (PlanStep *step : launchSteps(plan)) {
    step->byThread.name = "thread";
    step->byTeam.name = "team";
  }
  choice.apply(plan);
  EXPECT_EQ(plan.steps[0].body[0].functionFor(1 << 30, 1).name, "team");
  EXPECT_EQ(plan.steps[1].functionFor(1, 1 << 30).name, "thread");
  plan.steps[1].byThread.name = ""; // a choice of what is not there is none
  EXPECT_EQ(plan.steps[1].functionFor(1, 1 << 30).name, "team");
}

static Tried timed(const char *choice, double lower, double ratio, double upper) {
  return {*ScheduleChoice::parse(choice), "timed", ratio, lower, upper};
}

TEST(Tune, CombinesWhatIsFasterBeyondDoubt) {
  std::vector<Tried> tried = {
      timed("tiles=64x64/1", 0.8, 0.9, 0.95),   timed("tiles=128x64/1", 0.7, 0.8, 0.85),
      timed("tiles=,32x128/1", 0.6, 0.9, 1.02), // perhaps
      timed("units=team", 0.9, 0.97, 0.99),     timed("without=tile-loop", 1.2, 1.3, 1.4),
  };
  tried.push_back({*ScheduleChoice::parse("without=contraction"), "dropped", 0.1, 0.1, 0.1});
  EXPECT_EQ(combine(tried).text(), "tiles=128x64/1 units=team");
  EXPECT_TRUE(combine(llvm::ArrayRef(tried).drop_front(4)).isDefault());
}

TEST(Tune, DropsCodeThatSpillsOrRunsProductsOneByOne) {
  CodeFacts base, facts;
  EXPECT_EQ(whyDropped(facts, base), "");
  facts.spillBytes = 16;
  EXPECT_EQ(whyDropped(facts, base), "spills 16 bytes");
  base.spillBytes = 16;
  EXPECT_EQ(whyDropped(facts, base), "");
  facts.log = "ptxas info : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
              "serialized";
  EXPECT_EQ(whyDropped(facts, base), "ptxas: C7510");
}

TEST(Tune, TriesWhatTheModelExpectsMostOfFirst) {
  CompiledKernel code;
  code.tiles = {{{"128x128/1", 100},
                 {"128x128/2", 110},
                 {"128x128/3", 120},
                 {"64x64/1", 300},
                 {"16x128/1", 500}},
                {{"64x128/1", 10}, {"128x64/1", 12}}};
  code.plan.steps.resize(2);
  code.plan.steps[1].points = 1000;
  code.plan.steps[1].byThread.name = "thread";
  code.plan.steps[1].byTeam.name = "team";
  CudaDeviceInfo device;
  device.multiprocessors = 100;
  device.maxThreadsPerMultiprocessor = 2048;
  std::vector<std::string> texts;
  for (const ScheduleChoice &choice : alternatives(code, device, 14))
    texts.push_back(choice.text());
  ASSERT_GE(texts.size(), 8u);
  // The model's tiles with other settings, statement by statement.
  EXPECT_EQ(texts[0], "tiles=128x128/1:stages=6");
  EXPECT_EQ(texts[2], "tiles=,64x128/1:stages=6");
  EXPECT_EQ(texts[4], "tiles=128x128/2");
  EXPECT_EQ(texts[5], "tiles=,128x64/1");
  EXPECT_EQ(texts[6], "tiles=64x64/1");
  EXPECT_EQ(texts[7], "units=,thread"); // few points: the default is a team
  EXPECT_LE(texts.size(), 14u);
  // However many tiles there are, some of the rest.
  EXPECT_EQ(alternatives(code, device, 4).size(), 4u);
  EXPECT_EQ(alternatives(code, device, 4)[3].text(), "units=,thread");
}

TEST(Tune, TellsBetweenWhatTheMedianIs) {
  EXPECT_EQ(medianInterval({}), std::pair(0.0, 0.0));
  EXPECT_EQ(medianInterval({3}), std::pair(3.0, 3.0));
  // Of values from 1 to 100 the 40th and the 61st.
  std::vector<double> values;
  for (int value = 100; value; --value)
    values.push_back(value);
  EXPECT_EQ(medianInterval(values), std::pair(40.0, 61.0));
  // Covers the true median in 95 of 100 samples.
  std::mt19937 random(1);
  std::exponential_distribution<double> sample;
  unsigned covered = 0;
  for (unsigned trial = 0; trial < 2000; ++trial) {
    std::vector<double> drawn(101);
    for (double &value : drawn)
      value = sample(random);
    auto [lower, upper] = medianInterval(drawn);
    covered += lower <= std::log(2) && std::log(2) <= upper;
  }
  EXPECT_GE(covered, 1880u);
  EXPECT_LE(covered, 1970u);
}
