//===- TileLoopBounds.h - Tiles that a tile loop can skip -------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_STRATEGIES_TILE_LOOP_PLAN_TILELOOPBOUNDS_H
#define TEGULA_STRATEGIES_TILE_LOOP_PLAN_TILELOOPBOUNDS_H

#include "strategies/tile_loop/plan/TileLoop.h"

namespace tegula {

/// Comparisons of `where`s without which an iteration gives back what it got. Numbers that are
/// carried, and what they are multiplied by, are taken to be finite: what a mask leaves out does
/// not meet infinities.
llvm::SmallVector<TileLoopPlan::Bound> boundsOfTiles(const TileLoopPlan &plan);

/// Whether an iteration gives back what it got where the condition holds nowhere.
bool changesNothingWithout(const TileLoopPlan &plan, mlir::Value condition);

} // namespace tegula

#endif // TEGULA_STRATEGIES_TILE_LOOP_PLAN_TILELOOPBOUNDS_H
