//===- Occupancy.h - What a multiprocessor has room for *- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_REPORT_OCCUPANCY_H
#define TEGULA_BENCH_REPORT_OCCUPANCY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace tegula::report {

/// A device, as far as reports reckon with it.
struct DeviceLimits {
  llvm::StringRef name; // as written after --machine=
  llvm::StringRef title;
  unsigned multiprocessors;
  // Of a multiprocessor. CUDA C++ Programming Guide, "Compute Capabilities", table "Technical
  // Specifications per Compute Capability".
  unsigned registers, warps, blocks, sharedBytes;
  // Hopper Tuning Guide, "Unified Shared Memory/L1/Texture Cache": kept by the system for each
  // block. Registers go to warps in such units, warps to four schedulers with a quarter of the
  // registers each (CUDA occupancy calculator).
  unsigned sharedOfBlock, registerUnit, schedulers;
  // Of the device, dense. Data sheets of the SXM modules, whose figures with sparsity are twice
  // these.
  double bytesPerSecond, flops32, flopsTensor16, flopsTensor32;
};

llvm::ArrayRef<DeviceLimits> deviceLimits();
/// Null: none of that name.
const DeviceLimits *deviceLimits(llvm::StringRef name);

struct Occupancy {
  unsigned blocks = 0, warps = 0; // of a multiprocessor at a time
  double share = 0;               // of its warps
  llvm::StringRef limit; // what allows no more: `registers`, `shared memory`, `warps`, `blocks`
};

/// For blocks of so many threads, with so many registers each and so much shared memory, static and
/// dynamic. No blocks: one does not fit.
Occupancy occupancyOf(const DeviceLimits &limits, unsigned threads, unsigned registers,
                      unsigned sharedBytes);

} // namespace tegula::report

#endif // TEGULA_BENCH_REPORT_OCCUPANCY_H
