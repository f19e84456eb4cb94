//===- PreparedTest.cpp - Prepared calls of the C interface -------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "CApiTesting.h"

using testing::ElementsAre;
using testing::HasSubstr;

namespace {

TEST(CApi, PreparedCallsOnTheCpu) {
  Kernel kernel =
      compile(makeContext(), parse("kernel k(x: f32[M, N], s: f32, n: i16) -> (y: f32[N, M]) {\n"
                                   "  h[i, j] = s * x[i, j] + n\n"
                                   "  y[j, i] = cumsum(h[i, j], over=i)\n"
                                   "}"));
  std::vector<int64_t> shape = {2, 3}, wrong = {3, 3};
  std::vector<float> x = {1, 2, 3, 4, 5, 6}, y(6);
  tegula_value number{};
  auto prepare = [&](const std::vector<tegula_value> &arguments, std::string *words = nullptr) {
    tegula_prepared *made = nullptr;
    Message message;
    tegula_status status =
        tegula_prepare(kernel.get(), arguments.data(), arguments.size(), &made, message.out());
    EXPECT_EQ(status == TEGULA_OK, made != nullptr);
    if (words)
      *words = message.text();
    return std::unique_ptr<tegula_prepared, Release<tegula_prepared_free>>(made);
  };
  auto call = prepare({tensor(nullptr, shape), output(nullptr), number, number});
  ASSERT_TRUE(call);
  EXPECT_EQ(tegula_argument(kernel.get(), 3).dtype, TEGULA_I32);
  float s = 10;
  int32_t n = -3; // as tegula_argument tells: small integers are i32
  void *data[] = {x.data(), y.data(), &s, &n};
  Message message;
  ASSERT_EQ(tegula_launch_prepared(call.get(), data, 4, nullptr, message.out()), TEGULA_OK)
      << message.text();
  EXPECT_THAT(y, ElementsAre(7, 44, 17, 64, 27, 84));
  s = 1, n = 0; // scalars are those of the launch
  ASSERT_EQ(tegula_launch_prepared(call.get(), data, 4, nullptr, nullptr), TEGULA_OK);
  EXPECT_THAT(y, ElementsAre(1, 5, 2, 7, 3, 9));

  auto refused = [&](std::initializer_list<void *> given) {
    std::vector<float> before = y;
    EXPECT_EQ(
        tegula_launch_prepared(call.get(), given.begin(), given.size(), nullptr, message.out()),
        TEGULA_WRONG_CALL);
    EXPECT_EQ(y, before);
    return message.text();
  };
  EXPECT_THAT(refused({x.data(), y.data(), &s}), HasSubstr("takes 4 arguments, 3 given"));
  EXPECT_THAT(refused({x.data(), y.data(), &s, nullptr}), HasSubstr("the scalar 'n' is not given"));
  EXPECT_THAT(refused({nullptr, y.data(), &s, &n}), HasSubstr("'x' has no memory"));
  EXPECT_THAT(refused({reinterpret_cast<char *>(x.data()) + 1, y.data(), &s, &n}),
              HasSubstr("'x' is not aligned"));
  EXPECT_THAT(refused({y.data() + 1, y.data(), &s, &n}), HasSubstr("'x' and 'y' overlap"));
  std::string words;
  EXPECT_FALSE(prepare({tensor(nullptr, shape), tensor(nullptr, wrong), number, number}, &words));
  EXPECT_THAT(words, HasSubstr("'y' has dims [N, M] = [3, 2], the argument has shape [3, 3]"));
  EXPECT_FALSE(prepare({tensor(nullptr, shape), output(nullptr)}, &words));
  int64_t huge = int64_t(1) << 40;
  std::vector<int64_t> large = {huge, huge};
  EXPECT_FALSE(prepare({tensor(nullptr, large), output(nullptr), number, number}, &words));
  EXPECT_THAT(words, HasSubstr("more bytes than 64 bits count"));
  EXPECT_EQ(tegula_prepare(kernel.get(), nullptr, 0, nullptr, nullptr), TEGULA_WRONG_CALL);
}

} // namespace
