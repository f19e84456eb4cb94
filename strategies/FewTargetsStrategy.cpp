//===- FewTargetsStrategy.cpp - Strategy `few-targets`: sums in few elements ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a GPU a launch whose points add to few elements at places that data gives (FewTargets.h).
//
//===----------------------------------------------------------------------===//
#include "strategies/FewTargetsStrategy.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::tgl;

namespace {
class FewTargetsStrategy final : public Strategy {
public:
  StringRef name() const override { return "few-targets"; }
  StringRef attributeName() const override { return FewTargetsShape::attributeName; }

  Match match(ParallelOp op, const ScheduleRequest &request) const override {
    if (!request.settings.empty())
      return Mismatch{"`schedule` sets what it has not", "", op, true};
    return FewTargetsMatch::make(op, planFewTargets(op), [&](const FewTargetsPlan &plan) {
      return chooseFewTargetsShape(plan, request.target);
    });
  }
  Match restore(ParallelOp op) const override {
    return FewTargetsMatch::restore(op, planFewTargets(op), FewTargetsShape::of(op));
  }

  StatementCost cost(const StatementMatch &match) const override {
    const auto &own = cast<FewTargetsMatch>(match);
    return {own.shape.name(own.plan), std::nullopt, {}};
  }
};
} // namespace

const Strategy &tegula::fewTargetsStrategy() {
  static const FewTargetsStrategy instance;
  return instance;
}
