//===- SortStrategy.cpp - Strategy `radix-sort`: sorts of long rows -------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a GPU a launch to which tgl-split-sorts has moved a sort of long rows (SortPlan.h).
//
//===----------------------------------------------------------------------===//
#include "strategies/SortStrategy.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::tgl;

static constexpr StringLiteral blockSorts = "block-sorts";

namespace {
class SortStrategy final : public Strategy {
public:
  StringRef name() const override { return "radix-sort"; }
  StringRef attributeName() const override { return SortShape::attributeName; }
  SmallVector<StringRef> preparations(const TargetInfo &target) const override {
    return isFor(target) ? SmallVector<StringRef>{"tgl-split-sorts"} : SmallVector<StringRef>();
  }
  SmallVector<StringRef> switches() const override { return {blockSorts}; }
  unsigned &counterIn(ScheduleCounts &counts) const override { return counts.sorts; }

  Match match(ParallelOp op, const ScheduleRequest &request) const override {
    return SortMatch::make(op, matchSort(op), [&](const SortPlan &plan) -> Matched<SortShape> {
      Matched<SortShape> shape = chooseSortShape(plan, request.target, !request.isOff(blockSorts));
      if (shape && shape->form != SortShape::Block && !plan.elements.isRepeatable())
        return Mismatch{"elements could differ each time that they are computed", "", op};
      return shape;
    });
  }
  Match restore(ParallelOp op) const override {
    return SortMatch::restore(op, matchSort(op), SortShape::of(op));
  }

  StatementCost cost(const StatementMatch &match) const override {
    const SortShape &shape = cast<SortMatch>(match).shape;
    std::string tile = std::to_string(shape.tile()) + " elements";
    return {shape.form == SortShape::Block   ? "a block for each row"
            : shape.form == SortShape::Tiles ? "digit by digit in tiles of " + tile
                                             : "selection by digits in tiles of " + tile,
            std::nullopt,
            {}};
  }
};
} // namespace

const Strategy &tegula::sortStrategy() {
  static const SortStrategy instance;
  return instance;
}
