//===- SortStrategy.h - Strategy `radix-sort` -------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_SORTSTRATEGY_H
#define TEGULA_STRATEGIES_SORTSTRATEGY_H

#include "strategies/Strategy.h"
#include "strategies/sort/plan/SortShape.h"

namespace tegula {

/// A sort of long rows that stands alone, and how it is dealt out.
using SortMatch = PlanMatch<SortPlan, SortShape, sortStrategy>;

} // namespace tegula

#endif // TEGULA_STRATEGIES_SORTSTRATEGY_H
