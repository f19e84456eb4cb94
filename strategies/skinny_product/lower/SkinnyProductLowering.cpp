//===- SkinnyProductLowering.cpp - The launch of a product of few rows ---- -===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/lower/TileKernelLowering.h"

using namespace tegula;

const StrategyLowering &tegula::skinnyProductLowering() {
  static const TileKernelLowering instance("columns of a product of few rows");
  return instance;
}
