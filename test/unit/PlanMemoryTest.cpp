//===- PlanMemoryTest.cpp - Where temporaries lie ----------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/PlanMemory.h"
#include <gtest/gtest.h>
#include <random>

using namespace tegula;

namespace {

PlanStep launchOf(std::initializer_list<unsigned> buffers) {
  PlanStep step;
  for (unsigned buffer : buffers) {
    PlanArgument argument;
    argument.index = buffer;
    step.arguments.push_back(argument);
  }
  return step;
}

TEST(PlanMemory, LivesFromTheFirstStepToTheLast) {
  Plan plan;
  plan.buffers.resize(4);
  PlanStep loop, zero;
  loop.kind = PlanStep::Loop;
  loop.body = {launchOf({1}), launchOf({2})};
  zero.kind = PlanStep::Zero;
  zero.buffer = 2;
  plan.steps = {launchOf({0}), zero, launchOf({0, 1}), loop, launchOf({0})};
  auto lives = lifetimesOf(plan);
  ASSERT_TRUE(lives[0] && lives[1] && lives[2]);
  EXPECT_EQ(lives[0]->first, 0u);
  EXPECT_EQ(lives[0]->last, 4u);
  EXPECT_EQ(lives[1]->first, 2u);
  EXPECT_EQ(lives[1]->last, 3u);  // the whole loop
  EXPECT_EQ(lives[2]->first, 1u); // what is zeroed is held from there
  EXPECT_FALSE(lives[3]);
}

TEST(PlanMemory, DisjointLivesShareMemory) {
  // A chain: each temporary is written by one step and read by the next.
  std::vector<MemoryRequest> chain;
  for (unsigned step = 0; step < 10; ++step)
    chain.push_back({1000, {step, step + 1}});
  auto layout = layOut(chain);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->bytes, 2 * 1024); // two at a time
  for (unsigned step = 0; step + 1 < 10; ++step)
    EXPECT_NE(layout->offsets[step], layout->offsets[step + 1]);
}

TEST(PlanMemory, LiesBetweenWhatLives) {
  // 0 and 1 leave a gap of 512 bytes once 2 is gone, into which 3 fits.
  auto layout = layOut({{1024, {0, 9}}, {512, {0, 3}}, {256, {0, 9}}, {500, {4, 9}}});
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->bytes, 1024 + 512 + 256);
  EXPECT_EQ(layout->offsets[3], layout->offsets[1]);
}

TEST(PlanMemory, Overflow) {
  EXPECT_FALSE(layOut({{INT64_MAX, {0, 0}}}));
  EXPECT_FALSE(layOut({{INT64_MAX / 2 + 1, {0, 0}}, {INT64_MAX / 2 + 1, {0, 0}}}));
  EXPECT_TRUE(layOut({{INT64_MAX / 2 + 1, {0, 0}}, {INT64_MAX / 2 + 1, {1, 1}}}));
  EXPECT_EQ(layOut({})->bytes, 0);
}

TEST(PlanMemory, NothingOverlapsThatLivesTogether) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<MemoryRequest> requests(random() % 20);
    int64_t sum = 0;
    for (MemoryRequest &request : requests) {
      unsigned first = random() % 8;
      request = {int64_t(random() % 3000), {first, first + unsigned(random() % 4)}};
      sum += (request.bytes + 255) / 256 * 256;
    }
    auto layout = layOut(requests);
    ASSERT_TRUE(layout);
    EXPECT_LE(layout->bytes, sum);
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(layout->offsets[i] % memoryAlignment, 0);
      EXPECT_LE(layout->offsets[i] + requests[i].bytes, layout->bytes);
      for (size_t j = 0; j < i; ++j)
        if (requests[i].life.overlaps(requests[j].life) && requests[i].bytes && requests[j].bytes)
          EXPECT_TRUE(layout->offsets[i] + requests[i].bytes <= layout->offsets[j] ||
                      layout->offsets[j] + requests[j].bytes <= layout->offsets[i])
              << round;
    }
  }
}

} // namespace
