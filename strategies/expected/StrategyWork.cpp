//===- StrategyWork.cpp - What a strategy makes of the work ---------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/expected/StrategyWork.h"

#include "ir/tgl/TglShapes.h"
#include "strategies/ProductReductionStrategy.h"
#include "strategies/RecurrenceStrategy.h"
#include "strategies/SortStrategy.h"
#include "strategies/TileLoopStrategy.h"
#include <cmath>

using namespace llvm;
using namespace tegula;
using namespace tegula::tgl;

/// The share of a tile loop's tiles in which every comparison holds somewhere: of rows and columns
/// at regular places, the middle of everything else.
static double shareOfTiles(const TileLoopMatch &match) {
  constexpr int64_t places = 16;
  const TileLoopPlan &plan = match.plan;
  const TileLoopShape &shape = match.shape;
  AxesOp axes = cast<AxesOp>(ParallelOp(plan.op).getOperation());
  std::optional<int64_t> rows = knownPoints(axes, {plan.row});
  if (plan.bounds.empty() || !rows || !plan.extent)
    return 1;
  int64_t rowTiles = divideCeil(*rows, shape.rows()),
          tiles = divideCeil(plan.extent, shape.columns);
  auto holds = [&](const TileLoopPlan::Bound &bound, int64_t row, int64_t column) {
    const ValueExpr &expr = bound.comparison.expr;
    std::optional<int64_t> value =
        expr.expr().evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
          if (var.isSymbol())
            return std::nullopt;
          mlir::Value operand = expr.operands()[var.position()];
          return operand == bound.axis                 ? std::optional(column)
                 : operand == axes.getAxes()[plan.row] ? std::optional(row)
                                                       : std::nullopt;
        });
    return value.value_or(0) >= 0;
  };
  int64_t computed = 0, all = 0;
  for (int64_t i = 0; i < std::min(rowTiles, places); ++i)
    for (int64_t j = 0; j < std::min(tiles, places * 4); ++j) {
      int64_t row = i * rowTiles / std::min(rowTiles, places) * shape.rows(),
              column = j * tiles / std::min(tiles, places * 4) * shape.columns;
      int64_t lastRow = std::min(row + shape.rows(), *rows) - 1,
              lastColumn = std::min(column + shape.columns, plan.extent) - 1;
      computed += all_of(plan.bounds, [&](const TileLoopPlan::Bound &bound) {
        return holds(bound, row, column) || holds(bound, lastRow, column) ||
               holds(bound, row, lastColumn) || holds(bound, lastRow, lastColumn);
      });
      ++all;
    }
  return all ? double(computed) / double(all) : 1;
}

/// Instructions of a reduction of a product's columns by warpgroups for an element, fitted to times
/// of sums of 64 to 256 terms (docs/design/tile-dialect.md, "Products of warpgroups").
static double instructionsInTiles(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::ArgMax:
  case ReduceKind::ArgMin:
    return 7;
  case ReduceKind::LogSumExp:
    return 25;
  default:
    return 3;
  }
}

void tegula::addStrategy(const StatementMatch &match, LaunchWork &work) {
  StatementCost cost = match.strategy.cost(match);
  work.unit = cost.unit.value_or(work.unit);
  auto choice = find_if(cost.choices,
                        [&](const StatementCost::Choice &one) { return one.name == cost.tile; });
  if (choice != cost.choices.end() && choice->clocks > 0)
    work.clocks = choice->clocks;
  if (const auto *loop = dyn_cast<TileLoopMatch>(&match)) {
    work.computed = shareOfTiles(*loop);
    work.takesTurns = !isWarpSpecialized(loop->plan, loop->shape);
    work.isEstimate |= any_of(loop->plan.masks, [](const auto &mask) { return mask.skips; });
    work.blocks =
        std::ceil(work.points / double(loop->shape.rows())) * double(loop->shape.clusterBlocks);
  } else if (const auto *reduction = dyn_cast<ProductReductionMatch>(&match)) {
    const ProductReductionPlan &plan = reduction->plan;
    work.computed = double(plan.distinctProducts()) / double(plan.reductions.size());
    for (const ReducedProduct &one : plan.reductions) {
      // Of its columns the last piece may have fewer.
      std::optional<int64_t> terms =
          knownPoints(cast<AxesOp>(ReduceOp(one.product).getOperation()));
      if (reduction->shape.isForWarpgroups() && terms && *terms > 0)
        work.columnInstructions += instructionsInTiles(ReduceOp(one.reduce).getKind()) *
                                   work.products / double(plan.reductions.size()) / double(*terms);
    }
  } else if (const auto *recurrence = dyn_cast<RecurrenceMatch>(&match)) {
    work.blocks = double(recurrence->plan.rows * recurrence->shape.cluster);
    work.team = double(recurrence->shape.threads);
  } else if (const auto *sort = dyn_cast<SortMatch>(&match)) {
    double digits = sort->plan.bits() / 8;
    work.sorted = double(sort->plan.rows) * double(sort->plan.length);
    work.keyBytes = sort->plan.bits() / 8;
    work.passes = sort->shape.form == SortShape::Tiles ? digits : 1;
    work.launches = sort->shape.form == SortShape::Block   ? 1
                    : sort->shape.form == SortShape::Tiles ? 3 * digits
                                                           : 2 * digits + 2;
  }
}
