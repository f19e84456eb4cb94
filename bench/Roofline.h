//===- Roofline.h - What this machine can do at most ---------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_ROOFLINE_H
#define TEGULA_BENCH_ROOFLINE_H

#include <algorithm>

namespace tegula::bench {

/// Rates of the host with so many threads, measured where they are asked for: a shared machine has
/// others at another time.
struct Roofline {
  double bytesPerSecond = 0;      ///< read from memory
  double operationsPerSecond = 0; ///< of f32, a fused multiply-add being two

  /// The least time that moving so many bytes once and doing so many operations takes.
  double minSeconds(double bytes, double operations) const {
    return std::max(bytes / bytesPerSecond, operations / operationsPerSecond);
  }

  /// Takes about a tenth of a second.
  static Roofline measure(unsigned threads);
};

} // namespace tegula::bench

#endif // TEGULA_BENCH_ROOFLINE_H
