//===- SortTest.cpp - Rows come into order ------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Sort.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

using namespace tegula;

namespace {

void *grow(void *context, int64_t bytes) {
  auto &space = *static_cast<std::vector<uint64_t> *>(context);
  space.assign(bytes / 8 + 1, ~uint64_t(0)); // exactly as much as was asked for
  return space.data();
}

/// Compares with std::stable_sort by `precedes` on the elements.
template <typename T, typename Precedes>
void expectSorted(std::vector<T> values, DType type, bool descending, int64_t take,
                  Precedes precedes) {
  std::vector<int64_t> positions(values.size());
  std::iota(positions.begin(), positions.end(), 1000);
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) {
    return descending ? precedes(values[y], values[x]) : precedes(values[x], values[y]);
  });
  std::vector<T> sorted = values;
  std::vector<uint64_t> space;
  sortRow(sorted.data(), positions.data(), sorted.size(), take, type, descending, grow, &space);
  for (int64_t n = 0; n < std::min<int64_t>(take, sorted.size()); ++n) {
    ASSERT_EQ(positions[n], order[n] + 1000) << "place " << n << " of " << values.size();
    ASSERT_EQ(std::memcmp(&sorted[n], &values[order[n]], sizeof(T)), 0) << "place " << n;
  }
}

/// nan is the largest.
template <typename T> bool before(T x, T y) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(x) || std::isnan(y))
      return !std::isnan(x) && std::isnan(y);
  return x < y;
}

template <typename T> void sortMany(DType type, std::vector<T> special) {
  std::mt19937_64 random(7);
  for (int64_t length : {0, 1, 2, 3, 100, 511, 512, 1000, 5000})
    for (bool descending : {false, true})
      for (int64_t take : {int64_t(0), int64_t(1), int64_t(8), length / 2, length, length + 5}) {
        std::vector<T> values(length);
        for (T &value : values) {
          uint64_t draw = random();
          // Many equal ones, and some of every size.
          if (draw % 5 == 0)
            value = special[(draw >> 8) % special.size()];
          else if (draw % 5 == 1)
            value = static_cast<T>(draw >> 8 & 63);
          else if constexpr (std::is_floating_point_v<T>)
            value = static_cast<T>(std::ldexp(double(int64_t(draw)), -int(draw % 60)));
          else
            value = static_cast<T>(draw);
        }
        expectSorted(values, type, descending, take, before<T>);
      }
}

TEST(Sort, FloatsWithNanAndBothZeros) {
  float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  sortMany<float>(DType::F32, {0.0f, -0.0f, nan, -nan, inf, -inf, 1e-42f, -1e-42f});
  sortMany<double>(DType::F64,
                   {0.0, -0.0, double(nan), double(inf), -double(inf), 4e-324, -4e-324});
}

TEST(Sort, Integers) {
  sortMany<int64_t>(DType::I64, {0, -1, INT64_MIN, INT64_MAX});
  sortMany<int32_t>(DType::I32, {0, -1, INT32_MIN, INT32_MAX});
  sortMany<int16_t>(DType::I16, {0, -1, INT16_MIN, INT16_MAX});
  sortMany<int8_t>(DType::I8, {0, -1, INT8_MIN, INT8_MAX});
  sortMany<uint8_t>(DType::U8, {0, 255});
}

TEST(Sort, SmallFloatsByTheirBits) {
  auto order16 = [](DType type, uint16_t infinity) {
    std::vector<uint16_t> all(1 << 16);
    std::iota(all.begin(), all.end(), 0);
    std::shuffle(all.begin(), all.end(), std::mt19937(3));
    auto rank = [=](uint16_t bits) {
      int magnitude = bits & 0x7fff;
      return magnitude > infinity ? 1 << 20 : bits >> 15 ? -magnitude : magnitude;
    };
    for (bool descending : {false, true})
      expectSorted(all, type, descending, int64_t(all.size()),
                   [=](uint16_t x, uint16_t y) { return rank(x) < rank(y); });
  };
  order16(DType::F16, 0x7c00);
  order16(DType::BF16, 0x7f80);
  auto order8 = [](DType type, uint8_t last) {
    std::vector<uint8_t> all(256);
    std::iota(all.begin(), all.end(), 0);
    auto rank = [=](uint8_t bits) {
      int magnitude = bits & 0x7f;
      return magnitude > last ? 1000 : bits >> 7 ? -magnitude : magnitude;
    };
    for (bool descending : {false, true})
      expectSorted(all, type, descending, 256,
                   [=](uint8_t x, uint8_t y) { return rank(x) < rank(y); });
  };
  order8(DType::F8E4M3, 0x7e);
  order8(DType::F8E5M2, 0x7c);
}

TEST(Sort, DoesNothingWithoutMemory) {
  float values[] = {3, 1, 2};
  int64_t positions[] = {0, 1, 2};
  sortRow(
      values, positions, 3, 3, DType::F32, false, [](void *, int64_t) -> void * { return nullptr; },
      nullptr);
  EXPECT_EQ(values[0], 3);
  EXPECT_EQ(positions[1], 1);
}

} // namespace
