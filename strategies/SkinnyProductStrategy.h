//===- SkinnyProductStrategy.h - Strategy `skinny-product` -------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_SKINNYPRODUCTSTRATEGY_H
#define TEGULA_STRATEGIES_SKINNYPRODUCTSTRATEGY_H

#include "strategies/Strategy.h"
#include "strategies/skinny_product/plan/SkinnyProduct.h"

namespace tegula {

/// Products of few rows, and the tile that a block has of them.
using SkinnyProductMatch = PlanMatch<SkinnyProductPlan, SkinnyProductShape, skinnyProductStrategy>;

} // namespace tegula

#endif // TEGULA_STRATEGIES_SKINNYPRODUCTSTRATEGY_H
