//===- DeviceFacts.h - Capacities of GPUs by compute capability -*- C++ -*-===//
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

/// Multiprocessors that cost models assume: those of an H200. Other GPUs with tensor cores differ
/// by less than a factor of two, and grids are made for the device that is there
/// (runtime/PreparedPlan.cpp).
inline constexpr int64_t multiprocessors = 132;

/// Threads that a multiprocessor of capability 8.0 or 9.0 runs at once, others fewer (CUDA C++
/// Programming Guide, "Compute Capabilities").
inline constexpr int64_t threadsPerMultiprocessor = 2048;

/// Dynamic shared memory that a block may ask for (CUDA C++ Programming Guide, "Compute
/// Capabilities").
constexpr unsigned sharedBytes(unsigned capability) {
  bool isLarge = capability == 80 || capability == 87;
  return (capability >= 90 && capability <= 109 ? 227 : isLarge ? 163 : 99) << 10;
}

/// Blocks of the largest cluster, which a function must ask for where it is of more than 8; 1:
/// there are none.
constexpr unsigned clusterBlocks(unsigned capability) {
  return capability == 90 ? 16 : capability > 90 && capability <= 109 ? 8 : 1;
}

/// Clusters of so many blocks that an H200 runs at once where each block takes a multiprocessor:
/// what processing clusters leave over is lost (cuOccupancyMaxActiveClusters with 200 KB for a
/// block; with 100 KB twice as many). 0: not known.
constexpr int64_t clustersAtOnce(int64_t blocks) {
  constexpr int64_t atOnce[] = {0, 132, 66, 39, 30, 22, 17, 15, 15};
  return blocks >= 0 && blocks <= 8 ? atOnce[blocks] : 0;
}

} // namespace tegula::device

namespace tegula {

/// The kind of machine that a schedule is for.
enum class Machine { CPU, GPU };

/// The capabilities of a GPU that tiles of matrix products use.
struct TileMachine {
  unsigned sharedBytes = device::sharedBytes(90); ///< that a block may ask for
  bool hasWgmma = true;
  bool usesBulkLoads = true; ///< operands that allow it; has a meaning with warpgroups alone
  bool tma16Bit = true; ///< of 16 bits too, in products of at least so many multiplications, with
                        ///< large tiles of fewer
  double minTmaMacs = double(int64_t(1) << 33);
};

} // namespace tegula

#endif // TEGULA_TARGET_DEVICEFACTS_H
