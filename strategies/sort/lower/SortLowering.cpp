//===- SortLowering.cpp - The launches of a sort of long rows -------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/SortStrategy.h"
#include "strategies/sort/lower/RadixSort.h"

using namespace llvm;
using namespace tegula;

namespace {
class SortLowering final : public StrategyLowering {
public:
  Coverage coverage(const StatementMatch &, const EmitterOptions &options) const override {
    return options.checked ? Coverage::None : Coverage::Whole;
  }

  void lower(StatementLowering &statement, const StatementMatch &match) const override {
    const SortPlan &plan = cast<SortMatch>(match).plan;
    const SortShape &shape = cast<SortMatch>(match).shape;
    switch (shape.form) {
    case SortShape::Block:
      return lowerBlockSort(
          statement, plan, shape, plan.length,
          [](RadixCode &code, Value *, Value *number) { return code.evaluate(number); });
    case SortShape::Tiles:
      return lowerTiledSort(statement, plan, shape);
    case SortShape::Select:
      return lowerSelection(statement, plan, shape);
    }
  }
};
} // namespace

const StrategyLowering &tegula::sortLowering() {
  static const SortLowering instance;
  return instance;
}
