//===- DeviceFacts.h - Figures of the card that cost models assume -*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_TARGET_DEVICEFACTS_H
#define TEGULA_TARGET_DEVICEFACTS_H

#include <cstdint>

namespace tegula::device {

/// Terms of bf16, with 8 bits of significand each, that hold an f32 whole, if it is 2^-109 or more:
/// the least number of bf16 is 2^-133.
inline constexpr unsigned bf16Terms = 3;

/// Multiprocessors that cost models assume: those of an H200. Other GPUs with tensor cores differ
/// by less than a factor of two, and grids are made for the device that is there
/// (runtime/PreparedPlan.cpp).
inline constexpr int64_t multiprocessors = 132;

/// Threads that a multiprocessor of capability 8.0 or 9.0 runs at once, others fewer (CUDA C++
/// Programming Guide, "Compute Capabilities").
inline constexpr int64_t threadsPerMultiprocessor = 2048;

/// Clusters of so many blocks that an H200 runs at once where each block takes a multiprocessor:
/// what processing clusters leave over is lost (cuOccupancyMaxActiveClusters with 200 KB for a
/// block; with 100 KB twice as many). 0: not known.
constexpr int64_t clustersAtOnce(int64_t blocks) {
  constexpr int64_t atOnce[] = {0, 132, 66, 39, 30, 22, 17, 15, 15};
  return blocks >= 0 && blocks <= 8 ? atOnce[blocks] : 0;
}

} // namespace tegula::device

#endif // TEGULA_TARGET_DEVICEFACTS_H
