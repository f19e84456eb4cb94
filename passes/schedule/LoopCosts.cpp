//===- LoopCosts.cpp - When one launch for a loop pays --------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/schedule/LoopCosts.h"
#include "strategies/contraction/plan/ContractionPlan.h"
#include "strategies/contraction/plan/TensorTile.h"
#include "target/DeviceFacts.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

// Estimates; docs/results/real.md has loops of either kind.

/// A launch of a captured graph, from the end of the one before.
static constexpr double launchMicroseconds = 2;
/// A step inside of a launch: barriers, and loads that only it knows the addresses of. On an H100
/// one of gated_delta_rule takes 1.5 us with all that it computes.
static constexpr double stepMicroseconds = 1;
/// Scalar operations of a multiprocessor: a quarter of 128 lanes at 1.7 GHz, as loops of general
/// code reach.
static constexpr double operationsPerMicrosecond = 55000;
/// How much more a multiprocessor does on tensor cores.
static constexpr double tensorCoreGain = 16;

namespace {
/// Counts the scalar operations of a step, axes and loop variables in the middle of their ranges.
class StepCounter {
public:
  /// Nothing where sizes or data decide.
  std::optional<double> count(Operation *op) {
    double points = 1;
    if (auto axes = dyn_cast<AxesOp>(op)) {
      for (auto [axis, range] : llvm::zip_equal(axes.getAxes(), getAxisRanges(axes)))
        if (!enter(axis, range, points))
          return std::nullopt;
    } else if (auto loop = dyn_cast<ForOp>(op)) {
      if (!enter(loop.getLoopVar(), {loop.getLowExpr(), loop.getHighExpr()}, points))
        return std::nullopt;
    } else if (op->getNumRegions() && !isa<LaunchOp>(op)) {
      return std::nullopt; // a tile loop
    }
    double inside = op->getNumRegions() ? 0 : 1;
    for (Region &region : op->getRegions())
      for (Operation &nested : region.getOps()) {
        std::optional<double> more = count(&nested);
        if (!more)
          return std::nullopt;
        inside += *more;
      }
    return points * inside;
  }

  /// Knows a loop variable whose loop is not counted.
  bool enter(Value axis, const AxisRange &range, double &points) {
    std::optional<int64_t> low = valueOf(range.lo), high = valueOf(range.hi);
    if (!low || !high)
      return false;
    points *= double(std::max<int64_t>(0, *high - *low));
    middle[axis] = *low + std::max<int64_t>(0, *high - *low) / 2;
    return true;
  }

private:
  std::optional<int64_t> valueOf(const ValueExpr &expr) const {
    return expr.expr().evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
      if (var.isSymbol())
        return std::nullopt;
      auto known = middle.find(expr.operands()[var.position()]);
      return known == middle.end() ? std::nullopt : std::optional(known->second);
    });
  }

  DenseMap<Value, int64_t> middle;
};
} // namespace

static std::string inWords(double microseconds) {
  return llvm::formatv("{0:f1} us", microseconds).str();
}

std::optional<std::string> tegula::whyLaunchEachStep(ForOp loop, ArrayRef<ParallelOp> statements,
                                                     ArrayRef<IndependentAxis> axes) {
  double rows = 1, steps = 1;
  StepCounter counter;
  bool isKnown = counter.enter(loop.getLoopVar(), {loop.getLowExpr(), loop.getHighExpr()}, steps);
  AxesOp first = cast<AxesOp>(ParallelOp(statements.front()).getOperation());
  for (const IndependentAxis &axis : axes) {
    std::optional<int64_t> points = knownPoints(first, {axis.lookup(first)});
    isKnown &= points.has_value();
    rows *= double(points.value_or(1));
  }
  // Time of a step in launches of the whole device, and of the busiest multiprocessor in one.
  double work = 0, workOfLaunches = 0;
  unsigned launches = 0;
  bool hasProduct = false;
  for (ParallelOp statement : statements) {
    bool isProduct = chooseTile(statement).has_value();
    hasProduct |= isProduct;
    std::optional<double> own = counter.count(statement);
    isKnown &= own.has_value();
    work += own.value_or(0);
    workOfLaunches += own.value_or(0) / (isProduct ? tensorCoreGain : 1);
    ++launches;
  }
  if (!isKnown) {
    if (axes.empty())
      return "the loop's statements have no independent axis, and sizes are not known";
    if (hasProduct)
      return "a step holds a product for tensor cores, and sizes are not known";
    return std::nullopt;
  }
  constexpr double ofDevice = operationsPerMicrosecond * device::multiprocessors;
  double each = launches * launchMicroseconds + workOfLaunches / ofDevice;
  double rowsOfOne = std::ceil(rows / device::multiprocessors);
  double one =
      stepMicroseconds + (rows > 0 ? rowsOfOne * work / rows : 0) / operationsPerMicrosecond;
  if (one <= each)
    return std::nullopt;
  return llvm::formatv("a step takes {0} in one launch over {1} independent point{2}, and {3} in "
                       "launches of its own",
                       inWords(one), int64_t(rows), rows == 1 ? "" : "s", inWords(each))
      .str();
}
