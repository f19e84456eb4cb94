//===- ObserveTest.cpp - print and assert through the C interface ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "CApiTesting.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <string>
#include <vector>

using testing::HasSubstr;

namespace {

const char *const text = "kernel k(x: f32[N]) -> (y: f32[N]) {\n"
                         "  print(2*x[i] for i in 2)\n"
                         "  assert(x[i] < 4, \"too large\")\n"
                         "  y[i] = log(x[i])\n"
                         "}\n";

struct Observed {
  ~Observed() { tegula_observed_free(raw); }
  tegula_observed *raw = nullptr;
};

tegula_compile_options observing(tegula_observe what) {
  tegula_compile_options options = compileOptions();
  options.observe = what;
  return options;
}

tegula_status launchObserved(const Kernel &kernel, std::vector<float> &x, std::vector<float> &y,
                             Observed &observed, Message &message, unsigned points = 0) {
  std::vector<int64_t> shape{int64_t(x.size())};
  tegula_value arguments[] = {tensor(x.data(), shape), output(y.data())};
  tegula_launch_options options{};
  options.struct_bytes = sizeof(options);
  options.observed = &observed.raw;
  options.print_points = points;
  return tegula_launch(kernel.get(), arguments, 2, &options, message.out());
}

TEST(Observe, LaunchesTellWhatTheySaw) {
  Context context = makeContext(1);
  Kernel kernel = compile(context, parse(text), observing(TEGULA_OBSERVE_STATEMENTS));
  EXPECT_EQ(tegula_num_arguments(kernel.get()), 2u);
  EXPECT_STREQ(tegula_argument(kernel.get(), 1).name, "y");
  EXPECT_STREQ(tegula_argument_dim(kernel.get(), 1, 0), "N");
  std::vector<float> x{1, 2, 3}, y(3);
  Message message;
  for (int again = 0; again < 2; ++again) {
    Observed observed;
    ASSERT_EQ(launchObserved(kernel, x, y, observed, message), TEGULA_OK) << message.text();
    EXPECT_STREQ(tegula_observed_text(observed.raw),
                 "test.tgl:2:3: i=0: 2*x[i] = 2\ntest.tgl:2:3: i=1: 2*x[i] = 4\n");
    EXPECT_THAT(tegula_observed_json(observed.raw), HasSubstr("\"schema\":\"tegula.observed\""));
    EXPECT_THAT(tegula_observed_json(observed.raw), HasSubstr("\"failure\":null"));
    EXPECT_EQ(y[1], std::log(2.0f));
  }
  Observed one;
  ASSERT_EQ(launchObserved(kernel, x, y, one, message, 1), TEGULA_OK);
  EXPECT_STREQ(tegula_observed_text(one.raw),
               "test.tgl:2:3: i=0: 2*x[i] = 2\ntest.tgl:2:3: ... and 1 more points\n");
}

TEST(Observe, NoLaunchKeepsWhatAnEarlierOneSaw) {
  Context context = makeContext(1);
  Program program = parse(text);
  Kernel looking = compile(context, program, observing(TEGULA_OBSERVE_STATEMENTS));
  std::vector<float> x{1, 2}, y(2);
  Message message;
  Observed observed;
  ASSERT_EQ(launchObserved(looking, x, y, observed, message), TEGULA_OK);
  tegula_observed *before = observed.raw;
  ASSERT_NE(before, nullptr);

  Kernel plain = compile(context, program);
  std::vector<int64_t> shape{2};
  tegula_value arguments[] = {tensor(x.data(), shape), output(y.data())};
  tegula_prepared *prepared = nullptr;
  ASSERT_EQ(tegula_prepare(plain.get(), arguments, 2, &prepared, message.out()), TEGULA_OK);
  void *data[] = {x.data(), y.data()};
  tegula_launch_options options{};
  options.struct_bytes = sizeof(options);
  options.observed = &observed.raw;
  EXPECT_EQ(tegula_launch_prepared(prepared, data, 2, &options, message.out()), TEGULA_OK);
  EXPECT_EQ(observed.raw, nullptr);
  tegula_observed_free(before);
  tegula_prepared_free(prepared);
}

TEST(Observe, AFailedAssertionIsAWrongResult) {
  Context context = makeContext(1);
  Kernel kernel = compile(context, parse(text), observing(TEGULA_OBSERVE_STATEMENTS));
  std::vector<float> x{1, 5, 6}, y(3);
  Message message;
  Observed observed;
  EXPECT_EQ(launchObserved(kernel, x, y, observed, message), TEGULA_WRONG_RESULT);
  EXPECT_THAT(message.text(), HasSubstr("assertion fails at i=1: too large"));
  EXPECT_THAT(tegula_observed_json(observed.raw), HasSubstr("\"kind\":\"assert\""));
  EXPECT_THAT(tegula_observed_json(observed.raw), HasSubstr("\"points\":2"));
  EXPECT_EQ(y[0], 0.0f); // results are there
}

TEST(Observe, FindsTheFirstNan) {
  Context context = makeContext(1);
  std::vector<float> x{0, -1}, y(2);
  Message message;
  Observed nan, finite;
  Kernel kernel = compile(context, parse(text), observing(TEGULA_OBSERVE_NAN));
  EXPECT_EQ(launchObserved(kernel, x, y, nan, message), TEGULA_WRONG_RESULT);
  EXPECT_THAT(message.text(), HasSubstr("the first NaN at i=1"));
  kernel = compile(context, parse(text), observing(TEGULA_OBSERVE_FINITE));
  EXPECT_EQ(launchObserved(kernel, x, y, finite, message), TEGULA_WRONG_RESULT);
  EXPECT_THAT(message.text(), HasSubstr("the first value that is not finite at i=0"));
  EXPECT_THAT(tegula_observed_json(finite.raw), HasSubstr("\"value\":\"-inf\""));
}

TEST(Observe, OtherKernelsKnowNothingOfIt) {
  Context context = makeContext(1);
  Program program = parse(text);
  Kernel kernel = compile(context, program);
  std::vector<float> x{5, 6}, y(2);
  Message message;
  Observed observed;
  EXPECT_EQ(launchObserved(kernel, x, y, observed, message), TEGULA_OK);
  EXPECT_EQ(observed.raw, nullptr);
  EXPECT_STREQ(tegula_observed_text(nullptr), "");

  tegula_compile_options options = observing(TEGULA_OBSERVE_NAN);
  options.target = "sm_90a";
  tegula_kernel *refused = nullptr;
  EXPECT_EQ(tegula_compile(context.get(), program.get(), &options, &refused, message.out()),
            TEGULA_WRONG_CALL);
  EXPECT_THAT(message.text(), HasSubstr("launches are observed on target cpu, got 'sm_90a'"));
  options = observing(static_cast<tegula_observe>(9));
  EXPECT_EQ(tegula_compile(context.get(), program.get(), &options, &refused, message.out()),
            TEGULA_WRONG_CALL);

  kernel = compile(context, program, observing(TEGULA_OBSERVE_STATEMENTS));
  std::vector<int64_t> shape{2};
  tegula_value arguments[] = {tensor(x.data(), shape), output(y.data())};
  tegula_prepared *prepared = nullptr;
  EXPECT_EQ(tegula_prepare(kernel.get(), arguments, 2, &prepared, message.out()),
            TEGULA_WRONG_CALL);
  EXPECT_THAT(message.text(), HasSubstr("launch it with tegula_launch"));
}

} // namespace
