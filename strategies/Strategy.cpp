//===- Strategy.cpp - The list of strategies ------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/Strategy.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

ArrayRef<const Strategy *> tegula::strategies() {
  static const Strategy *const list[] = {
#define STRATEGY(function) &function##Strategy(),
#include "strategies/Strategies.def"
  };
  return list;
}

const Strategy *tegula::strategyNamed(StringRef name) {
  const auto *found =
      llvm::find_if(strategies(), [&](const Strategy *one) { return one->name() == name; });
  return found == strategies().end() ? nullptr : *found;
}

const Strategy *tegula::strategyOf(ParallelOp op) {
  const auto *found = llvm::find_if(
      strategies(), [&](const Strategy *one) { return op->hasAttr(one->attributeName()); });
  return found == strategies().end() ? nullptr : *found;
}
