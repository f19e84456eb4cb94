//===- ProductReductionStrategy.cpp - Reductions of products that nobody stores ------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// On a GPU a launch with a nest that reduces the columns of a product (ProductReduction.h), which
// would run on SIMT lanes otherwise. Its block is made in the tile dialect (passes/tile).
//
//===----------------------------------------------------------------------===//
#include "strategies/ProductReductionStrategy.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::tgl;

namespace {
class ProductReductionStrategy final : public Strategy {
public:
  StringRef name() const override { return "product-reduction"; }
  StringRef attributeName() const override { return ProductReductionShape::attributeName; }

  Match match(ParallelOp op, const ScheduleRequest &request) const override {
    return ProductReductionMatch::make(
        op, planProductReduction(op), [&](const ProductReductionPlan &plan) {
          return chooseProductReductionShape(plan, request.target, request.tensorTile);
        });
  }
  Match restore(ParallelOp op) const override {
    return ProductReductionMatch::restore(op, planProductReduction(op),
                                          ProductReductionShape::of(op));
  }

  StatementCost cost(const StatementMatch &match) const override {
    const auto &reduction = cast<ProductReductionMatch>(match);
    LaunchUnit unit = reduction.plan.hasF32() ? LaunchUnit::TensorSingle : LaunchUnit::TensorHalf;
    return {reduction.shape.name(), unit, {}};
  }
};
} // namespace

const Strategy &tegula::productReductionStrategy() {
  static const ProductReductionStrategy instance;
  return instance;
}
