//===- TileLoopStrategy.h - Strategy `tile-loop` ----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_TILELOOPSTRATEGY_H
#define TEGULA_STRATEGIES_TILELOOPSTRATEGY_H

#include "strategies/Strategy.h"
#include "strategies/tile_loop/plan/TileLoop.h"

namespace tegula {

/// Rows that walk a tile loop together, and the shape of their block.
using TileLoopMatch = PlanMatch<TileLoopPlan, TileLoopShape, tileLoopStrategy>;

} // namespace tegula

#endif // TEGULA_STRATEGIES_TILELOOPSTRATEGY_H
