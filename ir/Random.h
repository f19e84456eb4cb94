//===- Random.h - The counter-based generator ---------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions that docs/random.md defines. Code generation emits the same operations, so that a
// program gives the same numbers everywhere.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_IR_RANDOM_H
#define TEGULA_IR_RANDOM_H

#include "llvm/ADT/ArrayRef.h"
#include <cmath>
#include <cstdint>

namespace tegula {

/// One step of splitmix64: a bijection of 64 bits.
inline uint64_t splitmix64(uint64_t z) {
  z += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

/// 64 random bits for a list of keys.
inline uint64_t randomBits(llvm::ArrayRef<int64_t> keys) {
  uint64_t state = 0;
  for (int64_t key : keys)
    state = splitmix64(state ^ uint64_t(key));
  return state;
}

/// Uniform in (0, 1): an odd multiple of 2^-24, of which float holds each.
inline float uniformFromBits(uint64_t bits) { return float((bits >> 41) * 2 + 1) * 0x1p-24f; }

/// Box-Muller, from two uniforms. The constants (fractions of the square roots of 2 and 3) keep
/// them apart from the bits of any longer list of ordinary keys.
inline constexpr uint64_t normalRadiusKey = 0x6A09E667F3BCC908, normalAngleKey = 0xBB67AE8584CAA73B;
inline float normalFromBits(uint64_t bits) {
  float radius = uniformFromBits(splitmix64(bits ^ normalRadiusKey));
  float angle = uniformFromBits(splitmix64(bits ^ normalAngleKey));
  return std::sqrt(-2.0f * std::log(radius)) * std::cos(0x1.921fb6p+2f * angle);
}

} // namespace tegula

#endif // TEGULA_IR_RANDOM_H
