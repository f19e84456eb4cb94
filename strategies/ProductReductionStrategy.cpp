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

namespace {
class ProductReductionStrategy final : public StatementStrategy {
public:
  ProductReductionStrategy() : StatementStrategy("product-reduction", "product_tile") {}

protected:
  Matched<Attribute> match(ParallelOp op, const ScheduleRequest &request) const override {
    Matched<ProductReductionPlan> plan = planProductReduction(op);
    if (!plan)
      return plan.mismatch();
    return attributeOf(chooseProductReductionShape(*plan, request.target, request.tensorTile), op);
  }
};
} // namespace

const StatementStrategy &tegula::productReductionStrategy() {
  static const ProductReductionStrategy instance;
  return instance;
}
