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
#include "strategies/Strategy.h"
#include "strategies/product_reduction/plan/ProductReduction.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

static Matched<ProductReductionShape> chooseShape(ParallelOp op, const ScheduleRequest &request) {
  Matched<ProductReductionPlan> plan = planProductReduction(op);
  if (!plan)
    return plan.mismatch();
  return chooseProductReductionShape(*plan, request.target, request.tensorTile);
}

namespace {
class ProductReductionStrategy final : public Strategy {
public:
  StringRef name() const override { return "product-reduction"; }

  bool applies(LaunchOp launch, const ScheduleRequest &request) const override {
    return request.target.isGpu() &&
           matchesAny(launch, name(), [&](ParallelOp op) { return chooseShape(op, request); });
  }

  void schedule(LaunchOp launch, const ScheduleRequest &request,
                ScheduleCounts &counts) const override {
    // General code is what runs where addresses do not fit.
    generalStrategy().schedule(launch, request, counts);
    for (ParallelOp op : launch.getBody().getOps<ParallelOp>())
      if (std::optional<ProductReductionShape> shape = chooseShape(op, request)) {
        op->setAttr("product_tile", shape->toAttribute(op.getContext()));
        ++counts.tiled;
      }
  }
};
} // namespace

const Strategy &tegula::productReductionStrategy() {
  static const ProductReductionStrategy instance;
  return instance;
}
