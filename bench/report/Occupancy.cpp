//===- Occupancy.cpp - What a multiprocessor has room for ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/report/Occupancy.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace tegula::report {

static constexpr unsigned warpThreads = 32, sharedUnit = 128;

static constexpr DeviceLimits devices[] = {
    {"h200", "NVIDIA H200", 132, 65536, 64, 32, 228 << 10, 1 << 10, 256, 4, 4.8e12, 67e12, 989e12,
     494e12},
    {"h100", "NVIDIA H100", 132, 65536, 64, 32, 228 << 10, 1 << 10, 256, 4, 3.35e12, 67e12, 989e12,
     494e12},
};

ArrayRef<DeviceLimits> deviceLimits() { return devices; }

const DeviceLimits *deviceLimits(StringRef name) {
  const auto *found = find_if(devices, [&](const DeviceLimits &each) { return each.name == name; });
  return found == std::end(devices) ? nullptr : found;
}

Occupancy occupancyOf(const DeviceLimits &limits, unsigned threads, unsigned registers,
                      unsigned sharedBytes) {
  unsigned warps = divideCeil(threads, warpThreads);
  unsigned ofWarp = alignTo(std::max(registers, 1u) * warpThreads, limits.registerUnit);
  unsigned warpsByRegisters = limits.registers / limits.schedulers / ofWarp * limits.schedulers;
  std::pair<unsigned, StringRef> rooms[] = {
      {warpsByRegisters / warps, "registers"},
      {limits.sharedBytes / (alignTo(sharedBytes, sharedUnit) + limits.sharedOfBlock),
       "shared memory"},
      {limits.warps / warps, "warps"},
      {limits.blocks, "blocks"},
  };
  auto [blocks, limit] =
      *min_element(rooms, [](const auto &a, const auto &b) { return a.first < b.first; });
  return {blocks, blocks * warps, double(blocks) * warps / limits.warps, limit};
}

} // namespace tegula::report
