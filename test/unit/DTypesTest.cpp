//===- DTypesTest.cpp - Storage formats and random numbers ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/DTypes.h"
#include "ir/HostTensor.h"
#include "ir/Random.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/APFloat.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>
#include <random>

using namespace tegula;

/// LLVM's soft floats are the reference.
static uint64_t reference(double value, const llvm::fltSemantics &semantics) {
  llvm::APFloat number(value);
  bool losesInfo;
  number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return number.bitcastToAPInt().getZExtValue();
}

template <typename Encode, typename Decode>
static void compare(const llvm::fltSemantics &semantics, unsigned bits, Encode encode,
                    Decode decode) {
  // Every value of the format, its neighbours in double, and the middles between values.
  for (unsigned code = 0; code < (1u << bits); ++code) {
    double value = decode(code);
    if (std::isnan(value)) {
      EXPECT_TRUE(llvm::APFloat(semantics, llvm::APInt(bits, code)).isNaN()) << code;
      EXPECT_TRUE(std::isnan(decode(encode(value)))) << code;
      continue;
    }
    llvm::APFloat wide(semantics, llvm::APInt(bits, code));
    bool losesInfo;
    wide.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    ASSERT_EQ(value, wide.convertToDouble()) << code;
    ASSERT_EQ(std::signbit(value), wide.isNegative()) << code;
    ASSERT_EQ(encode(value), code);
    if (std::isinf(value))
      continue;
    double next = decode(code + 1 < (1u << bits) ? code + 1 : code);
    for (double probe : {std::nextafter(value, INFINITY), std::nextafter(value, -INFINITY),
                         value + (next - value) / 2, value * 1.3, value * 1e6})
      if (!std::isnan(probe)) {
        ASSERT_EQ(encode(probe), reference(probe, semantics)) << probe;
      }
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    double probe = std::ldexp(double(int64_t(random())), int(random() % 200) - 160);
    ASSERT_EQ(encode(probe), reference(probe, semantics)) << probe;
  }
  EXPECT_TRUE(std::isnan(decode(encode(std::numeric_limits<double>::quiet_NaN()))));
}

TEST(DTypes, SmallFloatsRoundAsSoftFloatsDo) {
  compare(llvm::APFloat::IEEEhalf(), 16, encodeF16, decodeF16);
  compare(llvm::APFloat::BFloat(), 16, encodeBF16, decodeBF16);
  compare(llvm::APFloat::Float8E4M3FN(), 8, encodeF8E4M3, decodeF8E4M3);
  compare(llvm::APFloat::Float8E5M2(), 8, encodeF8E5M2, decodeF8E5M2);
}

TEST(DTypes, OverflowOfSmallFloats) {
  EXPECT_EQ(roundToFloat(65519, DType::F16), 65504);
  EXPECT_TRUE(std::isinf(roundToFloat(65520, DType::F16)));
  EXPECT_EQ(roundToFloat(464, DType::F8E4M3), 448);
  EXPECT_TRUE(std::isnan(roundToFloat(464.01, DType::F8E4M3)));
  EXPECT_TRUE(std::isnan(roundToFloat(-INFINITY, DType::F8E4M3)));
  EXPECT_EQ(roundToFloat(57344, DType::F8E5M2), 57344);
  EXPECT_EQ(roundToFloat(-61440, DType::F8E5M2), -INFINITY);
  EXPECT_TRUE(std::isinf(roundToFloat(3.4e38 * 1.01, DType::BF16)));
}

TEST(DTypes, ConvertsToIntegers) {
  EXPECT_EQ(convertToInteger(2.9, DType::I32, false), 2);
  EXPECT_EQ(convertToInteger(-2.9, DType::I32, false), -2);
  EXPECT_EQ(convertToInteger(2.5, DType::I8, true), 2);
  EXPECT_EQ(convertToInteger(3.5, DType::I8, true), 4);
  EXPECT_EQ(convertToInteger(-1e30, DType::I8, true), -128);
  EXPECT_EQ(convertToInteger(1e30, DType::I64, false), INT64_MAX);
  EXPECT_EQ(convertToInteger(9, DType::I4, false), 7);
  EXPECT_EQ(convertToInteger(-9, DType::U4, false), 0);
  EXPECT_EQ(convertToInteger(300, DType::U8, false), 255);
  EXPECT_EQ(convertToInteger(NAN, DType::I32, true), 0);
  EXPECT_EQ(convertToInteger(NAN, DType::Bool, false), 1);
  EXPECT_EQ(wrap(130, DType::I8), -126);
  EXPECT_EQ(wrap(-1, DType::U4), 15);
  EXPECT_EQ(wrap(int64_t(1) << 31, DType::I32), INT32_MIN);
}

TEST(DTypes, PacksFourBits) {
  EXPECT_EQ(*storageBytes(DType::I4, {3, 5}), 9); // three bytes a row
  EXPECT_EQ(*storageBytes(DType::U4, {}), 1);
  EXPECT_EQ(*storageBytes(DType::Bool, {3, 5}), 15);
  EXPECT_EQ(*storageBytes(DType::F64, {0, 5}), 0);
  EXPECT_FALSE(storageBytes(DType::F64, {int64_t(1) << 40, int64_t(1) << 40}));
  EXPECT_FALSE(storageBytes(DType::F32, {-1}));
  HostTensor tensor(DType::I4, {2, 3});
  for (int n = 0; n < 6; ++n)
    tensor.set(n, n - 3);
  EXPECT_EQ(tensor.bytes, (std::vector<uint8_t>{0xed, 0x0f, 0x10, 0x02}));
  for (int n = 0; n < 6; ++n)
    EXPECT_EQ(tensor.get(n), n - 3);
}

TEST(DTypes, NamesAndTypesRoundTrip) {
  mlir::MLIRContext context;
  for (unsigned i = 0; i < numDTypes; ++i) {
    auto type = DType(i);
    EXPECT_EQ(parseDType(toString(type)), type);
    EXPECT_EQ(dtypeOf(mlirType(&context, type)), type);
  }
  EXPECT_FALSE(parseDType("float32"));
  EXPECT_FALSE(dtypeOf(mlir::IntegerType::get(&context, 7)));
}

TEST(Random, IsTheDocumentedFunction) {
  // splitmix64's first outputs from state 0.
  EXPECT_EQ(splitmix64(0), 0xE220A8397B1DCDAFu);
  EXPECT_EQ(randomBits({0}), splitmix64(0));
  EXPECT_EQ(randomBits({5, -1}), splitmix64(splitmix64(5) ^ ~uint64_t(0)));
  EXPECT_EQ(uniformFromBits(0), 0x1p-24f);
  EXPECT_EQ(uniformFromBits(~uint64_t(0)), 1 - 0x1p-24f);
}

TEST(Random, HasTheRightMoments) {
  double sum = 0, squares = 0, normalSum = 0, normalSquares = 0, fourth = 0;
  constexpr int count = 1000000;
  for (int i = 0; i < count; ++i) {
    uint64_t bits = randomBits({42, i});
    double u = uniformFromBits(bits), n = normalFromBits(bits);
    sum += u;
    squares += u * u;
    normalSum += n;
    normalSquares += n * n;
    fourth += n * n * n * n;
  }
  EXPECT_NEAR(sum / count, 0.5, 2e-3);
  EXPECT_NEAR(squares / count, 1.0 / 3, 2e-3);
  EXPECT_NEAR(normalSum / count, 0, 5e-3);
  EXPECT_NEAR(normalSquares / count, 1, 1e-2);
  EXPECT_NEAR(fourth / count, 3, 5e-2);
}
