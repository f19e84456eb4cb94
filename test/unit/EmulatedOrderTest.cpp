//===- EmulatedOrderTest.cpp - Kernels in many orders of execution ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel of each strategy gives the same bits whichever blocks and threads come first. Shared
// memory is filled with NaN before each block, and reading what nobody has written there ends the
// run.
//
//===----------------------------------------------------------------------===//
#include "EmulatedProgram.h"

using namespace llvm;
using namespace tegula;

namespace {

constexpr const char *rowsText = R"(
kernel rows(x: f32[M, N]) -> (y: f32[M, N], m: f32[M], c: f32[N]) {
  y[i, j] = softmax(x[i, j], over=j)
  m[i] = mean(x[i, j] for j)
  c[j] = sum(x[i, j] for i)
}
)";
constexpr const char *scanText = R"(
kernel rows(x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = cumsum(x[i, j] / 3, over=j) }
)";
constexpr const char *sortText = R"(
kernel rows(x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = sort(x[i, j], over=j) }
)";

class AnyOrder : public ::testing::TestWithParam<EmulatedProgram> {};

TEST_P(AnyOrder, GivesTheSameBits) {
  RunOfProgram run(GetParam());
  std::vector<RunOfProgram::Bytes> expected = run.run(*run.kernel->emulated, 0);
  ASSERT_FALSE(run.kind) << run.message;
  for (uint64_t seed = 1; seed <= GetParam().orders; ++seed) {
    EXPECT_TRUE(run.run(*run.kernel->emulated, seed) == expected) << "seed " << seed;
    ASSERT_FALSE(run.kind) << run.message;
  }
}

EmulatedProgram inOrders(unsigned orders, EmulatedProgram program) {
  program.orders = orders;
  return program;
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, AnyOrder,
    ::testing::Values(
        inOrders(100, {"rows", rowsText, {{"M", 5}, {"N", 37}}}),
        inOrders(20, {"blocks", rowsText, {{"M", 3}, {"N", 1031}}}),
        inOrders(3, {"clusters", rowsText, {{"M", 2}, {"N", 65537}}}),
        inOrders(20, {"scan", scanText, {{"M", 3}, {"N", 2501}}}),
        inOrders(20, {"sort", sortText, {{"M", 3}, {"N", 300}}}),
        inOrders(10, {"parts", productText, {{"M", 17}, {"N", 23}, {"K", 1025}}}),
        inOrders(4,
                 {"roles", productText, {{"M", 65}, {"N", 129}, {"K", 300}}, "64x128-warpgroups"}),
        inOrders(4, {"planes", productText, {{"M", 65}, {"N", 129}, {"K", 300}}, "64x128-packed"}),
        inOrders(6,
                 {"brain", brainText, {{"M", 136}, {"N", 264}, {"K", 520}}, "128x128-warpgroups"}),
        inOrders(5, {"tiles", brainText, {{"M", 261}, {"N", 650}, {"K", 96}}, "64x256-packed"}),
        inOrders(20, {"attention",
                      attentionText(/*isCausal=*/true),
                      {{"G", 2}, {"S", 131}, {"N", 264}, {"D", 40}}}),
        inOrders(1, {"turns",
                     attentionText(/*isCausal=*/true),
                     {{"G", 66}, {"S", 129}, {"N", 136}, {"D", 16}}}),
        inOrders(4, {"steps", stepsText, {{"T", 5}, {"B", 2}, {"H", 256}}})),
    [](const auto &info) { return info.param.name; });

} // namespace
