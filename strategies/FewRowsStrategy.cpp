//===- FewRowsStrategy.cpp - Strategy `few-rows`: tile loops of few rows --===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a GPU a launch with a nest of which few points share what their tile loop reads (FewRows.h):
// those that `tile-loop` leaves. Its block is made in the tile dialect (passes/tile).
//
//===----------------------------------------------------------------------===//
#include "strategies/FewRowsStrategy.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::tgl;

namespace {
class FewRowsStrategy final : public Strategy {
public:
  StringRef name() const override { return "few-rows"; }
  StringRef attributeName() const override { return FewRowsShape::attributeName; }
  SmallVector<StringRef> preparations(const TargetInfo &target) const override {
    // Where it serves `tile-loop` too.
    return target.hasWgmma ? SmallVector<StringRef>{"tgl-online-softmax", "tgl-split-tile-loops"}
                           : SmallVector<StringRef>{"tgl-split-tile-loops"};
  }

  Match match(ParallelOp op, const ScheduleRequest &) const override {
    return FewRowsMatch::make(op, planFewRows(op), chooseFewRowsShape);
  }
  Match restore(ParallelOp op) const override {
    return FewRowsMatch::restore(op, planFewRows(op), FewRowsShape::of(op));
  }

  StatementCost cost(const StatementMatch &match) const override {
    return {cast<FewRowsMatch>(match).shape.name(), LaunchUnit::TensorHalf, {}};
  }
};
} // namespace

const Strategy &tegula::fewRowsStrategy() {
  static const FewRowsStrategy instance;
  return instance;
}
