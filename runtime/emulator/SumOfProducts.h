//===- SumOfProducts.h - How tensor cores add ---------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In a header, so that loops over the products, whose number each instruction has, are unrolled.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_EMULATOR_SUMOFPRODUCTS_H
#define TEGULA_RUNTIME_EMULATOR_SUMOFPRODUCTS_H

#include "llvm/ADT/ArrayRef.h"
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

namespace tegula::emulator {

/// Powers of two by their bits: products of such numbers are far from the ends of double.
inline constexpr int doubleBias = 1023, mantissaBits = 52;
inline constexpr uint64_t infinityBits = uint64_t(2047) << mantissaBits;
inline int exponentOf(uint64_t bits) { return int(bits >> mantissaBits) - doubleBias; }
inline uint64_t magnitudeOf(double value) {
  return std::bit_cast<uint64_t>(value) & ~(uint64_t(1) << 63);
}

/// The sum of what is left of each term in multiples of 2^`exponent`, rounded towards zero to
/// `bits` after the point.
inline float addCut(llvm::ArrayRef<double> products, float before, int exponent, int bits) {
  auto power = [](int exponent) {
    return std::bit_cast<double>(uint64_t(doubleBias + exponent) << mantissaBits);
  };
  double scale = power(-exponent);
  auto cut = [&](double value) { return int64_t(value * scale); };
  int64_t sum = cut(before);
  for (double product : products)
    sum += cut(product);
  double exact = double(sum) * power(exponent); // of fewer than 53 bits
  float rounded = exact;
  if (std::isinf(rounded))
    return std::abs(exact) < 0x1p128 ? std::copysign(std::numeric_limits<float>::max(), rounded)
                                     : rounded;
  if (std::abs(double(rounded)) > std::abs(exact))
    rounded = std::bit_cast<float>(std::bit_cast<uint32_t>(rounded) - 1); // the next towards 0
  constexpr int ownBits = 23;                                             // of an f32
  if (bits < ownBits)
    rounded = std::bit_cast<float>(std::bit_cast<uint32_t>(rounded) >> (ownBits - bits)
                                                                           << (ownBits - bits));
  return rounded;
}

/// The bits of the largest term's magnitude, and what addition gives where a term is not finite, or
/// all are 0.
inline std::pair<uint64_t, std::optional<float>> findLargest(llvm::ArrayRef<double> products,
                                                             float before) {
  uint64_t largest = magnitudeOf(before); // magnitudes are ordered as their bits are
  for (double product : products)
    largest = std::max(largest, magnitudeOf(product));
  if (largest && largest < infinityBits)
    return {largest, std::nullopt};
  double special = before;
  for (double product : products)
    special += product;
  return {largest, float(special)};
}

/// What Hopper's tensor cores do, as measured (Li et al., "FTTN", 2024; Xie et al., "MMA-Sim",
/// 2025): products and the sum before are cut off below 2^-25 of the largest of them, added
/// exactly, and rounded towards zero.
inline float addProducts(llvm::ArrayRef<double> products, float before) {
  auto [largest, special] = findLargest(products, before);
  if (special)
    return *special;
  constexpr int bits = 25;
  return addCut(products, before, exponentOf(largest) - bits, bits);
}

/// Of f8, by wgmma, they keep 13 bits in place of 25, and as many of the result. How large a
/// product is its factors' exponents tell: 1.5 times 1.5 is taken to be less than 2.
inline float addSmallProducts(llvm::ArrayRef<double> products, int exponent, float before) {
  if (std::optional<float> special = findLargest(products, before).second)
    return *special;
  constexpr int bits = 13;
  if (before)
    exponent = std::max(exponent, exponentOf(magnitudeOf(before)));
  return addCut(products, before, exponent - bits, bits);
}

} // namespace tegula::emulator

#endif // TEGULA_RUNTIME_EMULATOR_SUMOFPRODUCTS_H
