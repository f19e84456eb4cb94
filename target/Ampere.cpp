//===- Ampere.cpp - GPUs of capability 8.x: Ampere and Ada ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "target/TargetInfo.h"

using namespace tegula;

TargetInfo tegula::ampere(unsigned capability) {
  TargetInfo info;
  info.machine = Machine::GPU;
  info.capability = capability;
  // CUDA C++ Programming Guide, "Compute Capabilities".
  bool isLarge = capability == 80 || capability == 87;
  info.sharedBytes = (isLarge ? 163 : 99) << 10;
  info.hasF8 = capability >= 89; // PTX ISA, mma.sync
  info.hasPackedBF16Convert = true;
  info.usesBulkLoads = info.tma16Bit = true; // of warpgroups alone, which are none here
  return info;
}
