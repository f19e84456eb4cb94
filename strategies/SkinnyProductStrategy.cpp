//===- SkinnyProductStrategy.cpp - Strategy `skinny-product` --------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a GPU a launch with products of at most 32 rows whose other factor is computed, such as a
// weight of four bits (SkinnyProduct.h). Its block is made in the tile dialect (passes/tile).
//
//===----------------------------------------------------------------------===//
#include "strategies/SkinnyProductStrategy.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::tgl;

namespace {
class SkinnyProductStrategy final : public Strategy {
public:
  StringRef name() const override { return "skinny-product"; }
  StringRef attributeName() const override { return SkinnyProductShape::attributeName; }

  Match match(ParallelOp op, const ScheduleRequest &request) const override {
    if (!request.settings.empty())
      return Mismatch{"`schedule` sets what it has not", "", op, true};
    return SkinnyProductMatch::make(op, planSkinnyProduct(op), [&](const SkinnyProductPlan &plan) {
      return chooseSkinnyProductShape(plan, request.target, request.tensorTile);
    });
  }
  Match restore(ParallelOp op) const override {
    return SkinnyProductMatch::restore(op, planSkinnyProduct(op), SkinnyProductShape::of(op));
  }

  StatementCost cost(const StatementMatch &match) const override {
    return {cast<SkinnyProductMatch>(match).shape.name(), LaunchUnit::TensorHalf, {}};
  }
};
} // namespace

const Strategy &tegula::skinnyProductStrategy() {
  static const SkinnyProductStrategy instance;
  return instance;
}
