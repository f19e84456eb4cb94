//===- Hopper.cpp - GPUs of capability 9.0 --------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "target/TargetInfo.h"

using namespace tegula;

TargetInfo tegula::hopper(unsigned capability, bool isSpecific) {
  TargetInfo info;
  info.machine = Machine::GPU;
  info.capability = capability;
  // CUDA C++ Programming Guide, "Compute Capabilities". A function must ask for clusters of more
  // than 8 blocks.
  info.sharedBytes = 227 << 10;
  info.clusterBlocks = 16;
  info.hasWgmma = isSpecific; // PTX ISA, wgmma: sm_90a
  info.hasF8 = info.hasPackedBF16Convert = info.hasDependentLaunch = true;
  info.usesBulkLoads = info.tma16Bit = true;
  return info;
}
