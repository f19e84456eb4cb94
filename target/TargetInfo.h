//===- TargetInfo.h - What the machine has that code is for -----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One description of the target, which passes, strategies and code generation read. Each
// architecture has a file here that fills it in: Host.cpp, Ampere.cpp (8.x), Hopper.cpp (9.0),
// Blackwell.cpp (10.0 and newer).
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_TARGET_TARGETINFO_H
#define TEGULA_TARGET_TARGETINFO_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace tegula {

/// The kind of machine that a schedule is for.
enum class Machine { CPU, GPU };

struct TargetInfo {
  Machine machine = Machine::CPU;
  /// Compute capability, 10 * major + minor; 0: no GPU.
  unsigned capability = 0;
  /// Bytes of dynamic shared memory that a block may ask for.
  unsigned sharedBytes = 0;
  /// Blocks of the largest cluster; 1: there are none.
  unsigned clusterBlocks = 1;
  /// Multiprocessors that grids and cost models count on.
  unsigned multiprocessors = 132;
  bool hasWgmma = false;             ///< warpgroups multiply (wgmma)
  bool hasF8 = false;                ///< mma.sync takes f8
  bool hasPackedBF16Convert = false; ///< two f32 become bf16 by one instruction
  bool hasDependentLaunch = false;   ///< a launch may start before the one before it ends
  /// One thread loads operands by cp.async.bulk or TMA (switch bulk-copies).
  bool usesBulkLoads = false;
  /// TMA loads operands of 16 bits too (switch tma-16bit), in products of at least so many
  /// multiply-adds; with large tiles of fewer.
  bool tma16Bit = false;
  double minTmaMacs = double(int64_t(1) << 33);
  /// Products of the same rows, and those that are added, share a tile (switch joint-tiles).
  bool jointTiles = true;

  bool isGpu() const { return machine == Machine::GPU; }

  static TargetInfo host();
  /// The GPU of a compute capability of at least 80; `isSpecific`: with instructions of this
  /// architecture alone (sm_90a).
  static TargetInfo gpu(unsigned capability, bool isSpecific);
  /// The card that cost models were measured on: an H200.
  static TargetInfo measured() { return gpu(90, true); }
  /// `cpu` or `sm_90a`, then, after colons, what is different: `no-wgmma`, `no-bulk-copies`,
  /// `no-tma-16bit`, `no-joint-tiles`, `cluster-blocks=1`, `shared-bytes=65536`,
  /// `multiprocessors=3`, `min-tma-macs=0`. Nothing for another text.
  static std::optional<TargetInfo> parse(llvm::StringRef text);
  /// The text that `parse` reads as this.
  std::string text() const;
  bool operator==(const TargetInfo &) const = default;
};

// By architecture: what a GPU of the capability has.
TargetInfo ampere(unsigned capability);
TargetInfo hopper(unsigned capability, bool isSpecific);
TargetInfo blackwell(unsigned capability);

} // namespace tegula

#endif // TEGULA_TARGET_TARGETINFO_H
