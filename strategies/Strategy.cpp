//===- Strategy.cpp - The interface of strategies -------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/Strategy.h"

using namespace tegula;

llvm::ArrayRef<const Strategy *> tegula::strategies() {
  static const Strategy *const list[] = {&recurrenceStrategy(), &tileLoopStrategy(),
                                         &contractionStrategy(), &productReductionStrategy(),
                                         &generalStrategy()};
  return list;
}
