//===- CppTest.cpp - tegula.hpp ---------------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tegula/tegula.hpp"
#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

namespace {

using tegula::tensor;

const char linearText[] = R"(
kernel linear(x: T[M, K], w: T[N, K], b: T[N] = 0, factor: int = 1) -> (y: T[M, N], most: T[M]) {
  y[i, j] = factor * sum(x[i, k] * w[j, k] for k) + b[j]
  most[i] = max(y[i, j] for j)
}
)";

class Cpp : public testing::Test {
protected:
  tegula::Context context{2};

  tegula::Kernel compile(const char *text, const tegula::CompileOptions &options = {}) {
    return tegula::Kernel(context, tegula::Program(text), options);
  }
};

TEST_F(Cpp, RunsAndInfersShapes) {
  tegula::Kernel linear =
      compile(linearText, {.settings = {{"factor", "3"}, {"T", "f64"}}, .optionals = {"b"}});
  ASSERT_EQ(linear.signature().size(), 5u);
  EXPECT_STREQ(linear.signature()[2].name, "b");

  const std::vector<double> x = {1, 2, 3, 4, 5, 6}, w = {1, 0, 2, -1, 1, 1, 0, 3, 0, 2, 2, 2};
  const std::array<double, 4> b = {10, 20, 30, 40};
  tegula::Argument none = tegula::Argument::output();
  tegula::Inferred inferred =
      linear.infer({tensor(x, {2, 3}), tensor(w, {4, 3}), tensor(b, {4}), none, none});
  EXPECT_THAT(inferred.outputs, ElementsAre(ElementsAre(2, 4), ElementsAre(2)));

  std::vector<double> y(8), most(2);
  linear(tensor(x, {2, 3}), tensor(w, {4, 3}), tensor(b, {4}), tensor(y, {2, 4}),
         tensor(most, {2}));
  for (size_t i = 0; i < 2; ++i)
    for (size_t j = 0; j < 4; ++j) {
      double sum = 0;
      for (size_t k = 0; k < 3; ++k)
        sum += x[i * 3 + k] * w[j * 3 + k];
      EXPECT_EQ(y[i * 4 + j], 3 * sum + b[j]);
    }
  EXPECT_THAT(most,
              ElementsAre(std::max({y[0], y[1], y[2], y[3]}), std::max({y[4], y[5], y[6], y[7]})));
}

TEST_F(Cpp, PassesScalarsOfEachKind) {
  tegula::Kernel kernel = compile("kernel k(x: i32[N], n: i32, s: f32) -> (y: f32[N]) {\n"
                                  "  y[i] = s * f32(x[i] + n)\n"
                                  "}\n");
  std::vector<int32_t> x = {1, 2};
  std::vector<float> y(2);
  kernel(tensor(x, {2}), tensor(y, {2}), int64_t(-4), 0.5);
  EXPECT_THAT(y, ElementsAre(-1.5f, -1.0f));
  kernel(tensor(x, {2}), tensor(y, {2}), 3, 2); // an integer for a float
  EXPECT_THAT(y, ElementsAre(8.0f, 10.0f));
  EXPECT_THAT([&] { kernel(tensor(x, {2}), tensor(y, {2}), 1.5, 2); },
              ThrowsMessage<tegula::CallError>(HasSubstr("'n' is a i32")));
  EXPECT_THAT([&] { kernel(1, tensor(y, {2}), 1, 2); },
              ThrowsMessage<tegula::CallError>(HasSubstr("'x' is a tensor")));
  EXPECT_THAT([&] { kernel(tensor(x, {2}), tensor(y, {2}), tensor(x, {2}), 2); },
              ThrowsMessage<tegula::CallError>(HasSubstr("'n' is a scalar")));
}

TEST_F(Cpp, KnowsElementTypes) {
  static_assert(tegula::dtypeOf<int8_t> == TEGULA_I8 && tegula::dtypeOf<uint8_t> == TEGULA_U8);
  static_assert(tegula::dtypeOf<int16_t> == TEGULA_I16 && tegula::dtypeOf<uint16_t> == TEGULA_U16);
  static_assert(tegula::dtypeOf<int32_t> == TEGULA_I32 && tegula::dtypeOf<uint32_t> == TEGULA_U32);
  static_assert(tegula::dtypeOf<long> == TEGULA_I64 && tegula::dtypeOf<long long> == TEGULA_I64);
  static_assert(tegula::dtypeOf<uint64_t> == TEGULA_U64 && tegula::dtypeOf<bool> == TEGULA_BOOL);
  static_assert(!tegula::Element<std::string> && tegula::Element<const tegula::BFloat16>);
  tegula::Kernel kernel = compile("kernel k(x: bf16[N]) -> (y: f16[N]) { y[i] = f16(x[i]) }");
  std::vector<tegula::BFloat16> x = {{0x3fc0}}; // 1.5
  std::vector<tegula::Float16> y(1);
  kernel(tensor(x, {1}), tensor(y, {1}));
  EXPECT_EQ(y[0].bits, 0x3e00);
  EXPECT_THAT([&] { kernel(tensor(y, {1}), tensor(y, {1})); },
              ThrowsMessage<tegula::CallError>(HasSubstr("f16")));
}

TEST_F(Cpp, ThrowsWhatTheLibrarySays) {
  try {
    compile("kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = z[i] }");
    FAIL();
  } catch (const tegula::ProgramError &error) {
    EXPECT_EQ(error.status(), TEGULA_WRONG_PROGRAM);
    EXPECT_THAT(error.json(), HasSubstr("\"code\":\"E"));
    EXPECT_THAT(error.what(), HasSubstr("'z'"));
  }
  EXPECT_THROW(tegula::Program("kernel"), tegula::ProgramError);
  EXPECT_THAT([&] { compile(linearText, {.target = "sm_10"}); },
              ThrowsMessage<tegula::CallError>(HasSubstr("sm_10")));

  tegula::Kernel twice = compile("kernel twice(x: f32[2*P]) -> (y: f32[P]) { y[i] = x[2*i] }");
  std::vector<float> x(6), y(3);
  const std::vector<float> constant(3);
  EXPECT_THROW(twice(tensor(x, {5}), tensor(y, {2})), tegula::CallError);
  EXPECT_THROW(twice(tensor(x, {6}), tensor(y, {2})), tegula::CallError);
  EXPECT_THROW(twice(tensor(x, {6})), tegula::CallError);
  EXPECT_THROW(twice(tensor(x, {6}), tensor(y, {3}), 1), tegula::CallError);
  EXPECT_THAT([&] { tensor(x, {7}); }, ThrowsMessage<tegula::CallError>(HasSubstr("6 elements")));
  EXPECT_THROW(tensor(x, {-1}), tegula::CallError);
  EXPECT_THROW(tensor(x, {int64_t(1) << 40, int64_t(1) << 40}), tegula::CallError);
  EXPECT_THAT([&] { twice(tensor(x, {6}), tensor(constant, {3})); },
              ThrowsMessage<tegula::CallError>(HasSubstr("'y' is written")));
  EXPECT_THAT([&] { twice(tensor(x, {6}), tegula::Argument::output()); },
              ThrowsMessage<tegula::CallError>(HasSubstr("'y' needs memory")));
  twice(tensor(x, {6}), tensor(y, {3}));

  tegula::Kernel gather = compile("kernel g(x: f32[N], at: i32[K]) -> (y: f32[K]) {\n"
                                  "  y[i] = x[at[i]]\n"
                                  "}\n");
  std::vector<int32_t> at = {0, 9, 1};
  EXPECT_THROW(gather(tensor(x, {6}), tensor(at, {3}), tensor(y, {3})), tegula::ResultError);
}

TEST_F(Cpp, KeepsWhatAHandleNeeds) {
  std::vector<float> x = {1, 2, 3}, y(3);
  float s = 2;
  std::optional<tegula::Prepared> prepared;
  std::vector<tegula::Argument> shapes = {tensor(x, {3}), tegula::Argument::output(), 0.0};
  {
    tegula::Program program("kernel scale(x: f32[N], s: f32) -> (y: f32[N]) { y[i] = s * x[i] }");
    EXPECT_THAT(program.kernels(), ElementsAre("scale"));
    EXPECT_EQ(program.check(), "");
    tegula::Kernel scale(tegula::Context(), program, {.stages = {"scheduled"}});
    EXPECT_THAT(scale.stage("scheduled"), HasSubstr("tgl.kernel"));
    EXPECT_EQ(scale.stage("llvm"), "");
    EXPECT_THAT(scale.describe(), HasSubstr("\"tegula.kernel\""));
    tegula::Kernel copy = scale;
    prepared.emplace(copy, shapes);
    prepared = tegula::Prepared(std::move(copy), shapes); // the first one goes, its kernel stays
  }
  prepared->launch(std::array<void *, 3>{x.data(), y.data(), &s});
  EXPECT_THAT(y, ElementsAre(2, 4, 6));
  EXPECT_EQ(prepared->workspaceBytes(), 0u);
  tegula::Prepared moved = std::move(*prepared);
  moved.launch(std::array<void *, 3>{y.data(), x.data(), &s});
  EXPECT_THAT(x, ElementsAre(4, 8, 12));
}

TEST_F(Cpp, TellsWhatALaunchHasSeen) {
  const char *text = "kernel k(x: f32[N]) -> (y: f32[N]) {\n"
                     "  print(2*x[i] for i in 2)\n"
                     "  assert(x[i] < 4, \"too large\")\n"
                     "  y[i] = log(x[i])\n"
                     "}\n";
  tegula::Kernel kernel = compile(text, {.observe = tegula::Observe::Statements});
  std::vector<float> x = {1, 2, 3}, large = {1, 5, 6}, y(3);
  tegula::Observed seen;
  EXPECT_FALSE(seen.isGiven());
  EXPECT_EQ(seen.text(), "");
  kernel.launch({tensor(x, {3}), tensor(y, {3})}, {.observed = &seen});
  EXPECT_TRUE(seen.isGiven());
  EXPECT_EQ(seen.text(), "<input>:2:3: i=0: 2*x[i] = 2\n<input>:2:3: i=1: 2*x[i] = 4\n");
  kernel.launch({tensor(x, {3}), tensor(y, {3})}, {.observed = &seen, .printPoints = 1});
  EXPECT_EQ(seen.text(), "<input>:2:3: i=0: 2*x[i] = 2\n<input>:2:3: ... and 1 more points\n");

  EXPECT_THAT([&] { kernel.launch({tensor(large, {3}), tensor(y, {3})}, {.observed = &seen}); },
              ThrowsMessage<tegula::ResultError>(HasSubstr("assertion fails at i=1: too large")));
  EXPECT_THAT(seen.json(), HasSubstr("\"kind\":\"assert\""));
  EXPECT_EQ(y[0], 0.0f); // results are there
  kernel(tensor(x, {3}), tensor(y, {3}));

  // What an earlier launch has seen is gone, whatever the next one is.
  EXPECT_THROW(kernel.launch({tensor(x, {3})}, {.observed = &seen}), tegula::CallError);
  EXPECT_FALSE(seen.isGiven());
  kernel.launch({tensor(x, {3}), tensor(y, {3})}, {.observed = &seen});
  EXPECT_THROW(kernel.launch({1, tensor(y, {3})}, {.observed = &seen}), tegula::CallError);
  EXPECT_FALSE(seen.isGiven());
  kernel.launch({tensor(x, {3}), tensor(y, {3})}, {.observed = &seen});
  tegula::Prepared prepared(compile(text), {tensor(x, {3}), tegula::Argument::output()});
  prepared.launch(std::array<void *, 2>{x.data(), y.data()}, {.observed = &seen});
  EXPECT_FALSE(seen.isGiven());

  kernel = compile(text, {.observe = tegula::Observe::Finite});
  x[0] = 0;
  EXPECT_THAT([&] { kernel(tensor(x, {3}), tensor(y, {3})); },
              ThrowsMessage<tegula::ResultError>(HasSubstr("not finite at i=0")));
}

TEST_F(Cpp, StopsWhereItIsTold) {
  tegula::Kernel kernel = compile("kernel k(x: f32[N]) -> (y: f32[N]) {\n"
                                  "  y[i] = sum(x[j] * x[i] for j)\n"
                                  "}\n");
  std::vector<float> x(200000), y(200000);
  const int stop = 1;
  EXPECT_THROW(kernel.launch({tensor(x, {200000}), tensor(y, {200000})}, {.stop = &stop}),
               tegula::StoppedError);
}

} // namespace
