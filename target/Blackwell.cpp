//===- Blackwell.cpp - GPUs of capability 10.0 and newer ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "target/TargetInfo.h"

using namespace tegula;

// Warpgroups of Hopper are no more, and tcgen05 is not used yet: products run by mma.sync.
TargetInfo tegula::blackwell(unsigned capability) {
  TargetInfo info;
  info.machine = Machine::GPU;
  info.capability = capability;
  // CUDA C++ Programming Guide, "Compute Capabilities": data centers (10.x), Thor (11.0), and
  // consumer cards.
  bool isLarge = capability < 120;
  info.sharedBytes = (isLarge ? 227 : 99) << 10;
  info.clusterBlocks = isLarge ? 8 : 1;
  info.hasF8 = info.hasPackedBF16Convert = info.hasDependentLaunch = true;
  info.usesBulkLoads = info.tma16Bit = true; // of warpgroups alone
  return info;
}
