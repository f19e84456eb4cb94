//===- General.cpp - The strategy that runs any launch --------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The outermost parallel is spread over threads. One axis of each nest is the vector axis: the one
// along which most accesses are contiguous, those in inner regions counting more. If it is an axis of
// the outermost parallel it moves to the end, and everything inside runs in order; otherwise inner
// parallels and reductions have their own vector axes.
//
//===----------------------------------------------------------------------===//
#include "passes/Nest.h"
#include "passes/schedule/Strategy.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

/// How the subscripts of an access move along an axis: its coefficient in the last one, if no other
/// uses it.
static std::optional<int64_t> strideAlong(ArrayRef<ValueExpr> subscripts, Value axis) {
  if (subscripts.empty())
    return 0;
  for (const ValueExpr &subscript : subscripts.drop_back())
    if (subscript.uses(axis))
      return std::nullopt;
  const ValueExpr &last = subscripts.back();
  if (!last.uses(axis))
    return 0;
  ValueExpr difference = last.substitute(axis, ValueExpr(axis) + 1) - last;
  return difference.asConstant();
}

/// How often an access runs, roughly: the ops with axes around it, up to the launch, each count for 8.
static unsigned weightOf(Operation *access) {
  unsigned weight = 2;
  for (Operation *around = access->getParentOp(); !isa<LaunchOp>(around) && weight < 2048;
       around = around->getParentOp())
    if (!isa<LaunchOp>(around->getParentOp()))
      weight *= 8;
  return weight;
}

/// How much the accesses inside `op` gain when `axis` is the vector axis.
static unsigned gain(AxesOp op, Value axis) {
  unsigned total = 0;
  op->walk([&](Operation *nested) {
    SmallVector<ValueExpr> subscripts;
    if (auto read = dyn_cast<ReadOp>(nested))
      subscripts = read.getSubscriptExprs();
    else if (auto write = dyn_cast<WriteOp>(nested))
      subscripts = write.getSubscriptExprs();
    else
      return;
    // Ties go to the written tensor: stores need whole lines.
    if (strideAlong(subscripts, axis) == 1)
      total += weightOf(nested) + isa<WriteOp>(nested);
  });
  return total;
}

static std::pair<Value, unsigned> bestAxis(AxesOp op) {
  std::pair<Value, unsigned> best{Value(), 0};
  for (Value axis : op.getAxes())
    if (unsigned axisGain = gain(op, axis); axisGain >= best.second && axisGain > 0)
      best = {axis, axisGain};
  return best;
}

/// `each` for every axis, `vector` for one.
static StringAttr mappingOf(AxesOp op, StringRef each, Value vectorAxis) {
  SmallVector<StringRef> words;
  for (Value axis : op.getAxes())
    words.push_back(axis == vectorAxis ? "vector" : each);
  return StringAttr::get(op->getContext(), llvm::join(words, ","));
}

static void setMapping(AxesOp op, StringAttr mapping) { op->setAttr("mapping", mapping); }

/// Moves one axis of a parallel to the end, where bounds of other axes allow it. The axis as it is
/// then.
static Value moveLast(ParallelOp &op, Value axis, ScheduleCounts &counts) {
  SmallVector<Value> order;
  for (Value other : op.getAxes()) {
    if (other != axis) {
      order.push_back(other);
      if (lowOf(other).uses(axis) || highOf(other).uses(axis))
        return axis;
    }
  }
  order.push_back(axis);
  if (order == SmallVector<Value>(op.getAxes().begin(), op.getAxes().end()))
    return axis;
  OpBuilder builder(op);
  IRMapping map;
  ParallelOp reordered = copyAxes(builder, op.getLoc(), order, map);
  Block &body = reordered.getBody().front();
  body.getOperations().splice(body.end(), op.getBody().front().getOperations());
  for (Value old : op.getAxes())
    old.replaceAllUsesWith(map.lookup(old));
  Value moved = map.lookup(axis);
  op.erase();
  op = reordered;
  ++counts.axesReordered;
  return moved;
}

/// The regions directly inside `op` that run over axes; those inside others come with their owner.
static SmallVector<AxesOp> innerRegions(Operation *op) {
  SmallVector<AxesOp> regions;
  op->walk<WalkOrder::PreOrder>([&](Operation *nested) {
    if (nested == op || !isa<AxesOp>(nested))
      return WalkResult::advance();
    regions.push_back(cast<AxesOp>(nested));
    return WalkResult::skip();
  });
  return regions;
}

/// Inside a nest without a vector axis yet.
static void scheduleInner(AxesOp op, bool vectorTaken, ScheduleCounts &counts) {
  Value vectorAxis;
  if (!vectorTaken) {
    auto [axis, axisGain] = bestAxis(op);
    unsigned inner = 0;
    for (AxesOp region : innerRegions(op))
      inner = std::max(inner, bestAxis(region).second);
    if (axis && axisGain >= inner)
      vectorAxis = axis;
  }
  if (auto parallel = dyn_cast<ParallelOp>(op.getOperation()); parallel && vectorAxis) {
    vectorAxis = moveLast(parallel, vectorAxis, counts);
    op = cast<AxesOp>(parallel.getOperation());
  }
  setMapping(op, mappingOf(op, "loop", vectorAxis));
  for (AxesOp region : innerRegions(op))
    scheduleInner(region, vectorTaken || vectorAxis, counts);
}

static void scheduleNest(ParallelOp nest, ScheduleCounts &counts) {
  auto [axis, axisGain] = bestAxis(cast<AxesOp>(nest.getOperation()));
  unsigned inner = 0;
  for (AxesOp region : innerRegions(nest))
    inner = std::max(inner, bestAxis(region).second);
  Value vectorAxis = axis && axisGain > inner ? axis : Value();
  if (vectorAxis)
    vectorAxis = moveLast(nest, vectorAxis, counts);
  setMapping(cast<AxesOp>(nest.getOperation()),
             mappingOf(cast<AxesOp>(nest.getOperation()), "thread", vectorAxis));
  for (AxesOp region : innerRegions(nest))
    scheduleInner(region, vectorAxis != nullptr, counts);
}

namespace {
class General final : public Strategy {
public:
  StringRef name() const override { return "general"; }
  bool applies(LaunchOp, Machine) const override { return true; }
  void schedule(LaunchOp launch, Machine, ScheduleCounts &counts) const override {
    for (Operation &op : llvm::make_early_inc_range(launch.getBody().front()))
      if (auto nest = dyn_cast<ParallelOp>(op))
        scheduleNest(nest, counts);
  }
};
} // namespace

const Strategy &tegula::generalStrategy() {
  static const General instance;
  return instance;
}
