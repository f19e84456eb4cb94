//===- GeneralStrategy.cpp - The strategy that runs any launch --------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The outermost parallel is spread over threads. One axis of each nest is the vector axis: the one
// along which most accesses are contiguous, those in inner regions counting more. If it is an axis
// of the outermost parallel it moves to the end, and everything inside runs in order; otherwise
// inner parallels and reductions have their own vector axes. The other axes follow the result's
// dims. Nests of a statement that a team shares (tgl-chain-launches) get a tile of points for each
// thread.
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/Nest.h"
#include "passes/analysis/RegisterTiles.h"
#include "strategies/Strategy.h"
#include "strategies/contraction/plan/ContractionPlan.h"
#include "support/Switches.h"

using namespace mlir;
using namespace tegula;
using namespace tegula::tgl;

/// Whether an expression varies along an axis: by itself, by data that do (`x[j[z], d]` along z),
/// or by the bounds of an axis that it uses (a part of a sum goes over `n = 2*part to 2*part + 2`).
static bool followsAxis(const ValueExpr &expr, Value axis) {
  return llvm::any_of(expr.operands(), [&](Value operand) {
    if (operand == axis)
      return true;
    auto inner = dyn_cast<BlockArgument>(operand);
    if (!inner)
      return axesOf(operand).contains(cast<BlockArgument>(axis));
    return isa<AxesOp>(inner.getOwner()->getParentOp()) &&
           (followsAxis(lowOf(inner), axis) || followsAxis(highOf(inner), axis));
  });
}

/// How much an access matters: the ops with axes around it, up to the launch, count for 8 each, and
/// tensors that vary along all of their axes, the large ones, for 8 again. Each point around a
/// private tensor has its own.
static unsigned weightOf(Operation *access, Value tensor, ArrayRef<ValueExpr> subscripts) {
  unsigned weight = 2;
  bool large = true;
  for (Operation *around = access->getParentOp(); !isa<LaunchOp>(around) && weight < 2048;
       around = around->getParentOp()) {
    if (!isa<LaunchOp>(around->getParentOp()))
      weight *= 8;
    if (auto axes = dyn_cast<AxesOp>(around);
        axes && !around->isAncestor(tensor.getParentBlock()->getParentOp()))
      for (Value axis : axes.getAxes())
        large &= llvm::any_of(subscripts,
                              [&](const ValueExpr &expr) { return followsAxis(expr, axis); });
  }
  return large ? weight * 8 : weight;
}

/// How much the accesses inside `op` gain when `axis` is the vector axis.
static unsigned gain(AxesOp op, Value axis) {
  unsigned total = 0;
  op->walk([&](Operation *nested) {
    SmallVector<ValueExpr> subscripts;
    TglTensorType type;
    Value tensor;
    if (auto read = dyn_cast<ReadOp>(nested)) {
      subscripts = read.getSubscriptExprs();
      type = read.getTensorType();
      tensor = read.getTensor();
    } else if (auto write = dyn_cast<WriteOp>(nested)) {
      subscripts = write.getSubscriptExprs();
      type = write.getTensorType();
      tensor = write.getTensor();
    } else {
      return;
    }
    // Ties go to the written tensor: stores need whole lines.
    if (strideAlong(type, subscripts, axis) == 1)
      total += weightOf(nested, tensor, subscripts) + isa<WriteOp>(nested);
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

/// The most that an axis anywhere inside `op` gains.
static unsigned bestInside(Operation *op) {
  unsigned best = 0;
  op->walk([&](AxesOp nested) {
    if (nested != op)
      best = std::max(best, bestAxis(nested).second);
  });
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

/// The subscripts of the write, directly or deep inside, that has the highest rank.
static SmallVector<ValueExpr> mainWrite(ParallelOp op) {
  SmallVector<ValueExpr> main;
  op.walk([&](WriteOp write) {
    SmallVector<ValueExpr> subscripts = write.getSubscriptExprs();
    bool shared =
        !write.getTensor().getDefiningOp() || !isPrivate(write.getTensor().getDefiningOp<TempOp>());
    if (shared && subscripts.size() > main.size())
      main = subscripts;
  });
  return main;
}

/// How near in memory neighbours along the axis are: the dim that it subscripts, from 1 (0: none),
/// then 1 where it moves through the dim in steps of 1.
static std::pair<unsigned, unsigned> placeInMemory(ArrayRef<ValueExpr> subscripts, Value axis) {
  for (auto [dim, subscript] : llvm::enumerate(subscripts))
    if (subscript.uses(axis)) {
      ValueExpr step = subscript.substitute(axis, ValueExpr(axis) + 1) - subscript;
      return {dim + 1, step.asConstant() == 1 ? 1 : 0};
    }
  return {0, 0};
}

/// Puts the axes of a parallel into the order in which its result lies in memory, the vector axis
/// (if there is one) last, where bounds of other axes allow it. The vector axis as it is then.
static Value orderAxes(ParallelOp &op, Value vectorAxis, ScheduleCounts &counts) {
  SmallVector<Value> axes(op.getAxes().begin(), op.getAxes().end()), order(axes);
  SmallVector<ValueExpr> write = mainWrite(op);
  llvm::sort(order, [&](Value a, Value b) {
    auto key = [&](Value axis) {
      return std::tuple(axis == vectorAxis, placeInMemory(write, axis),
                        cast<BlockArgument>(axis).getArgNumber());
    };
    return key(a) < key(b);
  });
  for (auto [position, axis] : llvm::enumerate(order))
    for (Value later : ArrayRef(order).drop_front(position))
      if (lowOf(axis).uses(later) || highOf(axis).uses(later))
        return vectorAxis;
  if (order == axes)
    return vectorAxis;
  OpBuilder builder(op);
  IRMapping map;
  ParallelOp reordered = copyAxes(builder, op.getLoc(), order, map);
  Block &body = reordered.getBody().front();
  body.getOperations().splice(body.end(), op.getBody().front().getOperations());
  for (Value old : op.getAxes())
    old.replaceAllUsesWith(map.lookup(old));
  if (Attribute team = op->getAttr(teamAttrName))
    reordered->setAttr(teamAttrName, team);
  op.erase();
  op = reordered;
  ++counts.axesReordered;
  return vectorAxis ? map.lookup(vectorAxis) : Value();
}

/// Gives a nest of a team the tile of points that each thread computes together; false where it has
/// none.
static bool scheduleTile(ParallelOp nest, ScheduleCounts &counts) {
  auto statement = dyn_cast<ParallelOp>(nest->getParentOp());
  std::optional<int64_t> team = statement ? teamOf(statement) : std::nullopt;
  std::optional<RegisterTile> tile = team ? chooseRegisterTile(nest, *team) : std::nullopt;
  if (!tile)
    return false;
  orderAxes(nest, tile->lane ? Value(nest.getAxes()[*tile->lane]) : Value(), counts);
  tile = chooseRegisterTile(nest, *team); // of the axes in their order
  Value vectorAxis = tile->lane ? Value(nest.getAxes()[*tile->lane]) : Value();
  auto op = cast<AxesOp>(nest.getOperation());
  setMapping(op, mappingOf(op, "loop", vectorAxis));
  nest->setAttr(pointTileAttrName, DenseI64ArrayAttr::get(nest.getContext(), tile->points));
  for (AxesOp region : innerRegions(nest))
    setMapping(region, mappingOf(region, "loop", Value()));
  return true;
}

/// Inside a nest without a vector axis yet.
static void scheduleInner(AxesOp op, bool vectorTaken, ScheduleCounts &counts) {
  if (auto nest = dyn_cast<ParallelOp>(op.getOperation()); nest && scheduleTile(nest, counts))
    return;
  Value vectorAxis;
  if (!vectorTaken) {
    auto [axis, axisGain] = bestAxis(op);
    if (axis && axisGain >= bestInside(op))
      vectorAxis = axis;
  }
  if (auto parallel = dyn_cast<ParallelOp>(op.getOperation())) {
    vectorAxis = orderAxes(parallel, vectorAxis, counts);
    op = cast<AxesOp>(parallel.getOperation());
  }
  setMapping(op, mappingOf(op, "loop", vectorAxis));
  for (AxesOp region : innerRegions(op))
    scheduleInner(region, vectorTaken || vectorAxis, counts);
}

static void scheduleNest(ParallelOp nest, ScheduleCounts &counts) {
  auto [axis, axisGain] = bestAxis(cast<AxesOp>(nest.getOperation()));
  Value vectorAxis = axis && axisGain > bestInside(nest) ? axis : Value();
  if (llvm::none_of(nest.getBody().getOps<WriteOp>(),
                    [](WriteOp write) { return write->hasAttr(partialAttrName); }))
    vectorAxis = orderAxes(nest, vectorAxis, counts); // else the order says where parts are
  setMapping(cast<AxesOp>(nest.getOperation()),
             mappingOf(cast<AxesOp>(nest.getOperation()), "thread", vectorAxis));
  for (AxesOp region : innerRegions(nest))
    scheduleInner(region, vectorAxis != nullptr, counts);
}

void tegula::orderAxes(LaunchOp launch, ScheduleCounts &counts) {
  for (Operation &op : llvm::make_early_inc_range(launch.getBody().front()))
    if (auto nest = dyn_cast<ParallelOp>(op))
      scheduleNest(nest, counts);
}

namespace {
/// Every statement: its mapping is the shape.
struct GeneralMatch final : StatementMatch {
  explicit GeneralMatch(ParallelOp op) : StatementMatch(generalStrategy(), op) {}
  Attribute attribute() const override { return ParallelOp(op).getMappingAttr(); }
};

class General final : public Strategy {
public:
  StringRef name() const override { return "general"; }
  StringRef attributeName() const override { return "mapping"; }
  bool isOptional() const override { return false; }
  bool isFor(const TargetInfo &) const override { return true; }
  SmallVector<StringRef> switches() const override { return {shortFunctions}; }
  Match match(ParallelOp op, const ScheduleRequest &) const override { return restore(op); }
  Match restore(ParallelOp op) const override {
    return std::unique_ptr<StatementMatch>(std::make_unique<GeneralMatch>(op));
  }
  unsigned &counterIn(ScheduleCounts &counts) const override { return counts.general; }
  StatementCost cost(const StatementMatch &) const override { return {}; }
  StringRef settings() const override {
    return "cluster, where several nests read a row that shared memory keeps";
  }
};
} // namespace

const Strategy &tegula::generalStrategy() {
  static const General instance;
  return instance;
}
