//===- EmulatedRecurrenceTest.cpp - Loops over time, resident and step by step ------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On integers whose sums stay exact a recurrence gives the same bits in one launch, weights in
// registers of a cluster, as the general code of that statement, and as launches for each step.
//
//===----------------------------------------------------------------------===//
#include "compiler/Compiler.h"
#include "frontend/OpenModule.h"
#include "runtime/emulator/Emulator.h"
#include <gtest/gtest.h>

using namespace llvm;
using namespace tegula;

namespace {

/// Two gates, a state that points exchange, one of their own, a result of each step and one that is
/// a product of the new state; values are bounded, so all sums are exact.
constexpr StringLiteral text =
    R"(kernel steps(x: f32[T, B, 2*H], w: f32[2*H, H], v: f32[O, H], h0: f32[B, H])
  -> (y: f32[T, B, H], z: f32[T, B, O], hn: f32[B, H], cn: f32[B, H])
{
  state h[n in B, u in H] = h0[n, u]
  state c[n in B, u in H] = 2.0
  for t in T {
    a[n in B, g in 2*H] = x[t, n, g] + sum(w[g, k] * h[n, k] for k)
    c[n, u] = minimum(maximum(a[n, H + u] - c[n, u], -5), 7)
    h[n, u] = minimum(maximum(a[n, u] + c[n, u] - h[n, u], -3), 3)
    y[t, n, u] = h[n, u] - c[n, u]
    z[t, n, o] = sum(v[o, k] * h[n, k] for k)
  }
  hn[n, u] = h[n, u]
  cn[n, u] = c[n, u]
}
)";

struct Sizes {
  int64_t steps, rows, points, results;
  unsigned cluster; // of the launch; 0: there is none that is resident
};

std::vector<float> run(const Sizes &sizes, std::vector<std::string> disabled, uint64_t seed,
                       unsigned &cluster) {
  SourceManager sources;
  Diagnostics diagnostics(sources);
  std::unique_ptr<tegula::Module> module =
      openModule(sources, sources.add("steps.tgl", text.str()), diagnostics);
  CompileOptions options;
  options.target = "emulate";
  options.sizes = {
      {"T", sizes.steps}, {"B", sizes.rows}, {"H", sizes.points}, {"O", sizes.results}};
  options.pipeline.disabled = std::move(disabled);
  auto kernel = compileKernel(*module, options, diagnostics);
  EXPECT_TRUE(bool(kernel)) << (kernel ? "" : toString(kernel.takeError()));
  EXPECT_FALSE(diagnostics.hasErrors());
  auto filled = [](int64_t elements, int64_t factor, int64_t values) {
    std::vector<float> data(elements);
    for (int64_t i = 0; i < elements; ++i)
      data[i] = float(i * factor % values - values / 2);
    return data;
  };
  auto [steps, rows, points, results, unused] = sizes;
  std::vector<float> x = filled(steps * rows * 2 * points, 7, 11),
                     w = filled(2 * points * points, 5, 3), v = filled(results * points, 11, 5),
                     h = filled(rows * points, 3, 7);
  std::vector<float> all(steps * rows * (points + results) + 2 * rows * points);
  float *y = all.data(), *z = y + steps * rows * points, *hn = z + steps * rows * results,
        *cn = hn + rows * points;
  EmulatorInputs inputs;
  auto add = [&](float *data, int64_t elements, BufferContents contents) {
    inputs.arguments.push_back({data, uint64_t(elements) * sizeof(float), contents});
  };
  for (std::vector<float> *input : {&x, &w, &v, &h})
    add(input->data(), input->size(), BufferContents::Constant);
  add(y, z - y, BufferContents::Undefined);
  add(z, hn - z, BufferContents::Undefined);
  add(hn, cn - hn, BufferContents::Undefined);
  add(cn, rows * points, BufferContents::Undefined);
  ErrorRecord errors;
  inputs.errors = &errors;
  inputs.size = [&](StringRef name) -> std::optional<int64_t> {
    auto found = options.sizes.find(name.str());
    return found == options.sizes.end() ? std::nullopt : std::optional(found->second);
  };
  EmulatorOptions emulation;
  emulation.seed = seed;
  cluster = 0;
  for (const PlanStep &step : (*kernel)->plan.steps)
    if (StringRef(step.byTeam.name).ends_with("_steps"))
      cluster = step.byTeam.cluster;
  if (Error error = emulatePlan(*(*kernel)->emulated, (*kernel)->plan, inputs, emulation))
    ADD_FAILURE() << toString(std::move(error));
  return all;
}

class Recurrence : public ::testing::TestWithParam<Sizes> {};

TEST_P(Recurrence, GivesTheBitsOfSteps) {
  unsigned cluster;
  std::vector<float> expected = run(GetParam(), {"tgl-gather-recurrences"}, 0, cluster);
  EXPECT_EQ(cluster, 0u);
  for (uint64_t seed : {0, 1}) {
    EXPECT_EQ(run(GetParam(), {}, seed, cluster), expected) << "seed " << seed;
    EXPECT_EQ(cluster, GetParam().cluster);
  }
  EXPECT_EQ(run(GetParam(), {"async-stores"}, 1, cluster), expected);
  EXPECT_EQ(cluster, GetParam().cluster);
  EXPECT_EQ(run(GetParam(), {"recurrence"}, 0, cluster), expected);
  EXPECT_EQ(cluster, 0u);
}

// Blocks of one cluster and of several; points that do not fill them; sums that do not fill
// vectors; no step, one, an odd number; more weights than registers have room for, and than shared
// memory.
INSTANTIATE_TEST_SUITE_P(Sizes, Recurrence,
                         ::testing::Values(Sizes{3, 2, 6, 3, 1}, Sizes{1, 3, 33, 5, 1},
                                           Sizes{4, 1, 97, 2, 1}, Sizes{3, 2, 128, 40, 16},
                                           Sizes{2, 7, 130, 2, 8}, Sizes{5, 1, 16, 64, 1},
                                           Sizes{3, 1, 150, 2, 16}, Sizes{2, 1, 450, 3, 16},
                                           Sizes{1, 1, 1100, 4, 0}));

TEST(RecurrenceOfNoSteps, LeavesTheState) {
  unsigned cluster;
  Sizes sizes{0, 2, 70, 3, 16};
  EXPECT_EQ(run(sizes, {}, 0, cluster), run(sizes, {"tgl-gather-recurrences"}, 0, cluster));
}

} // namespace
