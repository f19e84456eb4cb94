//===- FewRowsStrategy.h - Strategy `few-rows` ------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_FEWROWSSTRATEGY_H
#define TEGULA_STRATEGIES_FEWROWSSTRATEGY_H

#include "strategies/Strategy.h"
#include "strategies/few_rows/plan/FewRows.h"

namespace tegula {

/// Tile loops of few rows, and the tile that a block has of them.
using FewRowsMatch = PlanMatch<FewRowsPlan, FewRowsShape, fewRowsStrategy>;

} // namespace tegula

#endif // TEGULA_STRATEGIES_FEWROWSSTRATEGY_H
