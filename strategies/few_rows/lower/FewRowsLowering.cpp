//===- FewRowsLowering.cpp - The launch of a tile loop of few rows ------------- -===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/lower/TileKernelLowering.h"

using namespace tegula;

const StrategyLowering &tegula::fewRowsLowering() {
  static const TileKernelLowering instance("rows that walk a loop together");
  return instance;
}
