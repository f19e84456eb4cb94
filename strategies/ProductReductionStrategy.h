//===- ProductReductionStrategy.h - Strategy `product-reduction` *- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_PRODUCTREDUCTIONSTRATEGY_H
#define TEGULA_STRATEGIES_PRODUCTREDUCTIONSTRATEGY_H

#include "strategies/Strategy.h"
#include "strategies/product_reduction/plan/ProductReduction.h"

namespace tegula {

/// Reductions of products, and the tile in which a block has a product.
using ProductReductionMatch =
    PlanMatch<ProductReductionPlan, ProductReductionShape, productReductionStrategy>;

} // namespace tegula

#endif // TEGULA_STRATEGIES_PRODUCTREDUCTIONSTRATEGY_H
