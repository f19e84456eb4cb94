//===- LaunchWork.cpp - What a launch asks of the device ------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/expected/LaunchWork.h"

#include "ir/tgl/TglFunctions.h"
#include "ir/tgl/TglShapes.h"
#include "ir/tgl/TglUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/analysis/Nest.h"
#include "passes/analysis/PrefixLoop.h"
#include "strategies/RecurrenceStrategy.h"
#include "strategies/SkinnyProductStrategy.h"
#include "strategies/SortStrategy.h"
#include "strategies/TileLoopStrategy.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace llvm;
using namespace tegula;
using namespace tegula::tgl;
namespace arith = mlir::arith;
namespace math = mlir::math;

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// Instructions of a lane: functions are polynomials of our own (docs/math.md), divisions a
/// reciprocal and its correction.
static double instructionsOf(mlir::Operation *op) {
  return TypeSwitch<mlir::Operation *, double>(op)
      .Case<arith::ConstantOp, IndexOp, YieldOp>([](auto) { return 0; })
      .Case<arith::AddFOp, arith::SubFOp>([](mlir::Operation *sum) {
        // One instruction multiplies and adds.
        return any_of(sum->getOperands(),
                      [](mlir::Value operand) {
                        return operand.getDefiningOp<arith::MulFOp>() && operand.hasOneUse();
                      })
                   ? 0
                   : 1;
      })
      .Case<arith::DivFOp>([](auto) { return 9; })
      .Case<arith::RemFOp, arith::DivSIOp, arith::RemSIOp, arith::DivUIOp, arith::RemUIOp,
            arith::FloorDivSIOp>([](auto) { return 20; })
      .Case<math::SqrtOp, math::RsqrtOp>([](auto) { return 8; })
      .Case<math::ExpOp, math::Exp2Op>([](auto) { return 10; })
      .Case<math::LogOp, math::Log2Op, math::Log10Op, math::Log1pOp, math::ExpM1Op>(
          [](auto) { return 16; })
      .Case<math::SinOp, math::CosOp, math::TanOp, math::TanhOp, math::ErfOp>(
          [](auto) { return 32; })
      .Case<math::PowFOp>([](auto) { return 40; })
      .Case<math::AbsFOp, math::AbsIOp, math::CopySignOp>([](auto) { return 1; })
      .Case<RandomOp>([](auto) { return 60; })
      .Default([](mlir::Operation *other) {
        StringRef dialect = other->getName().getDialectNamespace();
        if (dialect == "math" || other->hasTrait<FloatFunction>())
          return 30.0;
        return other->getNumResults() ? 1.0 : 0.0;
      });
}

/// As KernelWork counts them (compiler/Work.h).
static bool isOperation(mlir::Operation *op) {
  return isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
         op->getNumOperands() > 0 &&
         isa<mlir::FloatType>(op->getOperand(op->getNumOperands() - 1).getType()) &&
         !isa<mlir::CastOpInterface, arith::SelectOp>(op);
}

static double bytesOf(mlir::Type element) { return element.getIntOrFloatBitWidth() / 8.0; }

static AxesOp asAxes(mlir::Operation *op) { return cast<AxesOp>(op); }

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

namespace {
class WorkWalk {
public:
  using Traffic = LaunchWorkCounter::Traffic;

  /// `rowsTogether`: rows of a product that share what lanes compute of its factors; 0: tensor
  /// cores take factors as they are, and what is inside of products is no work of lanes.
  WorkWalk(ParallelOp statement, LaunchWork &work, std::optional<double> rowsTogether)
      : statement(statement), work(work), rowsTogether(rowsTogether) {}

  /// False where a size is not known.
  bool count() {
    for (mlir::Operation *above = statement->getParentOp(); !isa<KernelOp>(above);
         above = above->getParentOp())
      if (auto loop = dyn_cast<ForOp>(above)) {
        enter(loop.getLoopVar(), {loop.getLowExpr(), loop.getHighExpr()}, loop);
        work.runs *= extents[loop.getLoopVar()];
        loopVars.insert(loop.getLoopVar());
        around.clear(); // the loop's other steps are other runs
      }
    AxesOp axes = asAxes(statement);
    for (auto [axis, range] : zip_equal(axes.getAxes(), getAxisRanges(axes)))
      enter(axis, range, statement);
    work.points = points();
    written = accessesOf(statement).writes;
    chooseThreads();
    for (mlir::Operation &op : statement.getBody().front())
      work.chain += visit(op);
    if (!isKnown)
      return false;
    for (auto &[tensor, own] : traffic) {
      own.written = std::min(own.written, own.size);
      own.read = std::min(own.read, own.size);
    }
    return true;
  }

  LaunchWorkCounter::TrafficOfTensors traffic;

private:
  ParallelOp statement;
  LaunchWork &work;
  std::optional<double> rowsTogether;
  DenseSet<mlir::Value> loopVars; ///< of loops around the launch
  DenseMap<mlir::Value, int64_t> middles;
  DenseMap<mlir::Value, double> extents;
  DenseMap<mlir::Value, DenseSet<mlir::Value>> movedBy; ///< axes that an axis' range moves with
  SmallVector<mlir::Value> around; ///< axes and loop variables, outermost first
  SetVector<mlir::Value> written;  ///< tensors
  mlir::Value lane;                ///< the axis along which neighbouring threads stand
  bool isKnown = true;
  /// Cycles, on an H100: of an instruction until the next can use it, of a load from memory that a
  /// loop waits for, of one from shared memory, of a barrier.
  static constexpr double instructionLatency = 4, loadLatency = 500, aheadLatency = 30,
                          ownLatency = 30, barrierLatency = 40;

  double points() const {
    double all = 1;
    for (mlir::Value axis : around)
      all *= extents.lookup(axis);
    return all;
  }

  std::optional<int64_t> valueOf(const ValueExpr &expr) const {
    return expr.expr().evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
      if (var.isSymbol())
        return std::nullopt;
      auto known = middles.find(expr.operands()[var.position()]);
      return known == middles.end() ? std::nullopt : std::optional(known->second);
    });
  }

  static bool usesData(const ValueExpr &expr) {
    return any_of(expr.operands(),
                  [](mlir::Value value) { return !isa<mlir::BlockArgument>(value); });
  }

  /// How far a range goes whose bounds are data: over the dim that its axis is a subscript of, of
  /// which each point that bounds it at both ends has its part.
  double estimateExtent(mlir::Value axis, const AxisRange &range, mlir::Operation *owner) {
    work.isEstimate = true;
    double longest = 0;
    auto look = [&](ArrayRef<ValueExpr> subscripts, TglTensorType type) {
      for (auto [subscript, dim] : zip_equal(subscripts, type.getDims()))
        if (subscript.uses(axis))
          longest = std::max(longest, double(dim.getExpr().asConstant().value_or(0)));
    };
    owner->walk([&](mlir::Operation *op) {
      if (auto read = dyn_cast<ReadOp>(op))
        look(read.getSubscriptExprs(), read.getTensorType());
      else if (auto write = dyn_cast<WriteOp>(op))
        look(write.getSubscriptExprs(), write.getTensorType());
    });
    if (usesData(range.lo) && usesData(range.hi)) {
      double parts = 1;
      DenseSet<mlir::Value> counted;
      for (mlir::Value value : range.hi.operands())
        for (mlir::BlockArgument own : axesOf(value))
          if (counted.insert(own).second && extents.count(own))
            parts *= extents.lookup(own);
      longest /= parts;
    }
    return std::max(longest, 1.0);
  }

  void enter(mlir::Value axis, const AxisRange &range, mlir::Operation *owner) {
    DenseSet<mlir::Value> &moved = movedBy[axis];
    for (const ValueExpr &bound : {range.lo, range.hi})
      for (mlir::Value operand : bound.operands())
        addAxes(operand, moved);
    std::optional<int64_t> low = valueOf(range.lo), high = valueOf(range.hi);
    around.push_back(axis);
    if (low && high) {
      extents[axis] = double(std::max<int64_t>(*high - *low, 0));
      middles[axis] = *low + std::max<int64_t>(*high - *low, 0) / 2;
      return;
    }
    isKnown &= usesData(range.lo) || usesData(range.hi) || hasUnknownTile(range);
    extents[axis] = estimateExtent(axis, range, owner);
    middles[axis] = int64_t(extents[axis] / 2);
  }
  /// Bounds that follow from values that are estimated.
  bool hasUnknownTile(const AxisRange &range) const {
    auto isOpen = [&](mlir::Value value) { return !middles.count(value); };
    return any_of(range.lo.operands(), isOpen) || any_of(range.hi.operands(), isOpen);
  }

  //===--- Threads ---===//

  /// A thread or a team for a point, as general code decides (GeneralLowering.cpp).
  void chooseThreads() {
    constexpr double shortNest = 16, manyThreads = 32768, vectorsOfThread = 4, warp = 32;
    double inside = 0;
    bool hasNest = false, hasSteps = false, hasTemporaries = false;
    statement.getBody().walk([&](mlir::Operation *op) {
      hasTemporaries |= isa<TempOp>(op);
      if (auto loop = dyn_cast<ForOp>(op);
          loop && loop->getParentOp() == statement && matchPrefixLoop(loop)) {
        hasNest = true;
        inside = std::max(
            inside, double((loop.getHighExpr() - loop.getLowExpr()).asConstant().value_or(64)));
      }
      if (!isa<ParallelOp, ReduceOp, SortOp>(op))
        return;
      hasNest = true;
      hasSteps |= isa<ForOp>(op->getParentOp());
      if (isa<SortOp>(op)) {
        inside = std::max(inside, sortedLength(cast<SortOp>(op)));
        return;
      }
      for (mlir::Operation *above = op->getParentOp(); above != statement;
           above = above->getParentOp())
        if (isa<ReduceOp, ParallelOp>(above))
          return;
      double own = 1;
      for (auto [axis, range] : zip_equal(asAxes(op).getAxes(), getAxisRanges(asAxes(op)))) {
        std::optional<int64_t> low = valueOf(range.lo), high = valueOf(range.hi);
        own *= low && high ? std::max<double>(*high - *low, 0) : 64;
      }
      inside = std::max(inside, own);
    });
    AxesOp axes = asAxes(statement);
    mlir::Value last = axes.getAxes().empty() ? mlir::Value() : mlir::Value(axes.getAxes().back());
    bool alongPoints = neighboursAreNear(statement) || vectorAxis(axes);
    bool byThread = !hasNest || (!hasSteps && inside < shortNest && !hasTemporaries) ||
                    (!hasSteps && alongPoints && work.points >= manyThreads);
    if (byThread) {
      lane = vectorAxis(axes) ? vectorAxis(axes) : last;
      if (vectorAxis(axes))
        work.vector = vectorWidth();
      return;
    }
    double vectors = std::ceil(inside / 4);
    double team = std::clamp(std::ceil(vectors / vectorsOfThread), warp, 1024.0);
    work.team = std::exp2(std::ceil(std::log2(team)));
    if (inside > 32768)
      work.team = std::min(work.team, 512.0);
  }

  static mlir::Value vectorAxis(AxesOp axes) {
    SmallVector<StringRef> words;
    if (auto mapping = axes->getAttrOfType<mlir::StringAttr>("mapping"))
      mapping.getValue().split(words, ',');
    for (auto [word, axis] : zip(words, axes.getAxes()))
      if (word == "vector")
        return axis;
    return {};
  }

  /// Elements of 16 bytes of the widest type that is accessed.
  double vectorWidth() {
    double widest = 1;
    statement.walk([&](mlir::Operation *op) {
      if (auto read = dyn_cast<ReadOp>(op))
        widest = std::max(widest, bytesOf(read.getTensorType().getElementType()));
      if (auto write = dyn_cast<WriteOp>(op))
        widest = std::max(widest, bytesOf(write.getTensorType().getElementType()));
    });
    return std::max(1.0, std::min(16 / widest, 8.0));
  }

  double sortedLength(SortOp sort) {
    auto type = cast<TglTensorType>(sort.getValues().getType());
    return double(type.getDims().back().getExpr().asConstant().value_or(0));
  }

  //===--- Accesses ---===//

  /// The axes that a value varies along, those of the bounds of its axes as well.
  void addAxes(mlir::Value value, DenseSet<mlir::Value> &axes) {
    for (mlir::BlockArgument axis : axesOf(value)) {
      axes.insert(axis);
      if (auto found = movedBy.find(axis); found != movedBy.end())
        axes.insert(found->second.begin(), found->second.end());
    }
  }

  void access(mlir::Operation *op, mlir::Value tensor, TglTensorType type,
              SmallVector<ValueExpr> subscripts, double Traffic::*way) {
    double all = points(), bytes = bytesOf(type.getElementType());
    auto temp = tensor.getDefiningOp<TempOp>();
    if (temp && statement->isAncestor(temp)) {
      work.ownAccesses += all;
      return;
    }
    std::optional<int64_t> elements = knownElements(tensor);
    isKnown &= elements.has_value();
    // Elements differ along the axes that subscripts use, through data as well.
    DenseSet<mlir::Value> used;
    bool isScattered = false;
    for (const ValueExpr &subscript : subscripts)
      for (mlir::Value operand : subscript.operands()) {
        DenseSet<mlir::Value> axes;
        addAxes(operand, axes);
        isScattered |= !isa<mlir::BlockArgument>(operand) && axes.contains(lane);
        used.insert(axes.begin(), axes.end());
      }
    double distinct = 1, repeated = 1;
    for (mlir::Value axis : around)
      (used.contains(axis) ? distinct : repeated) *= extents.lookup(axis);
    Traffic &own = traffic[tensor];
    own.size = double(elements.value_or(0)) * bytes;
    own.moves |= any_of(used, [&](mlir::Value axis) { return loopVars.contains(axis); });
    // What the launch itself has written before is near.
    if (way != &Traffic::read || own.written == 0)
      own.*way += distinct * bytes;
    // What does not move along the innermost axes is read once for them.
    for (mlir::Value axis : reverse(around)) {
      if (used.contains(axis) || axis == lane)
        break;
      all /= std::max(extents.lookup(axis), 1.0);
    }
    std::optional<int64_t> step = lane ? strideAlong(type, subscripts, lane) : std::nullopt;
    double lineShare = bytes / 32;
    if (isScattered || !step)
      lineShare = lane && used.contains(lane) ? 1 : lineShare;
    else if (*step == 0)
      lineShare = 1.0 / 32;
    else
      lineShare = std::min(1.0, std::abs(double(*step)) * bytes / 32);
    // Neighbours that write far from each other fill no lines, where no tile in shared memory turns
    // them around (codegen/simt/TransposeTiles.h), which nests of points alone have.
    bool isStrided = way == &Traffic::written && work.team > 1 && lineShare == 1;
    (isScattered || isStrided ? work.scattered : work.sectors) += all * lineShare;
  }

  //===--- Operations ---===//

  /// Counts the operation and returns the cycles until it is done.
  double visit(mlir::Operation &op) {
    if (auto read = dyn_cast<ReadOp>(op)) {
      access(read, read.getTensor(), read.getTensorType(), read.getSubscriptExprs(),
             &Traffic::read);
      work.instructions += points();
      auto temp = read.getTensor().getDefiningOp<TempOp>();
      bool isOwn = temp && statement->isAncestor(temp);
      // What nobody writes here is loaded ahead.
      bool isLate = written.contains(read.getTensor()) || isInSteps(read);
      return isOwn ? ownLatency : isLate ? loadLatency : aheadLatency;
    }
    if (auto write = dyn_cast<WriteOp>(op)) {
      access(write, write.getTensor(), write.getTensorType(), write.getSubscriptExprs(),
             &Traffic::written);
      if (write.getCombine()) {
        work.atomics += points();
        work.atomicTargets += double(knownElements(write.getTensor()).value_or(0));
      }
      work.instructions += points();
      return instructionLatency;
    }
    if (auto sort = dyn_cast<SortOp>(op)) {
      double length = sortedLength(sort);
      work.sorted += points() * length;
      work.keyBytes = bytesOf(cast<TglTensorType>(sort.getValues().getType()).getElementType());
      return 0;
    }
    if (op.getNumRegions() == 0) {
      double own = instructionsOf(&op);
      if (isOperation(&op))
        work.operations += points();
      work.instructions += own * points();
      // What varies along no axis is computed once.
      if (op.getNumResults() == 1 && op.getResult(0).getType().isF64() &&
          !axesOf(op.getResult(0)).empty())
        work.doubles += own * points();
      return own ? instructionLatency * std::max(1.0, own / 2) : 0;
    }
    return visitNest(op);
  }

  /// Whether threads come together around the operation in each step of a loop.
  bool isInSteps(mlir::Operation *op) const {
    bool isInNest = false;
    for (mlir::Operation *above = op->getParentOp(); above != statement;
         above = above->getParentOp()) {
      if (isInNest && isa<ForOp>(above))
        return true;
      isInNest |= isa<ParallelOp, ReduceOp>(above);
    }
    return false;
  }

  /// Inside of a product of tensor cores: two reads, a multiplication and an addition for each
  /// point are not lanes' work, and what is computed of a factor is done once for rows that share
  /// it.
  void keepFactors(const LaunchWork &before) {
    double inside = work.instructions - before.instructions - 4 * points();
    work.instructions =
        before.instructions + (*rowsTogether > 0 ? std::max(inside, 0.0) / *rowsTogether : 0);
    work.scattered = before.scattered;
    work.sectors = before.sectors;
    work.ownAccesses = before.ownAccesses;
    work.doubles = before.doubles;
  }

  double visitNest(mlir::Operation &op) {
    size_t outer = around.size();
    mlir::Value kept = lane;
    double turns = 1;
    bool isSerial = false;
    if (auto loop = dyn_cast<ForOp>(op)) {
      enter(loop.getLoopVar(), {loop.getLowExpr(), loop.getHighExpr()}, loop);
      turns = extents[loop.getLoopVar()];
      isSerial = !(work.team > 1 && loop->getParentOp() == statement && matchPrefixLoop(loop));
      if (!isSerial)
        turns = std::ceil(turns / work.team);
      work.steps = std::max(work.steps, points() / std::max(work.points, 1.0));
    } else if (auto tiles = dyn_cast<TilesOp>(op)) {
      // As if there were a single tile; a tile's steps are of its strategy.
      for (mlir::Value bound : {tiles.getTileLow(), tiles.getTileHigh()})
        for (const ValueExpr &range : {tiles.getLowExpr(), tiles.getHighExpr()})
          for (mlir::Value operand : range.operands())
            addAxes(operand, movedBy[bound]);
      middles[tiles.getTileLow()] = valueOf(tiles.getLowExpr()).value_or(0);
      if (std::optional<int64_t> high = valueOf(tiles.getHighExpr()))
        middles[tiles.getTileHigh()] = *high;
    } else if (isa<ScanOp>(op)) {
      for (auto [axis, range] : zip_equal(asAxes(&op).getAxes(), getAxisRanges(asAxes(&op)))) {
        enter(axis, range, &op);
        around.pop_back(); // a step for each point around it
      }
    } else if (auto axes = dyn_cast<AxesOp>(op)) {
      for (auto [axis, range] : zip_equal(axes.getAxes(), getAxisRanges(axes))) {
        enter(axis, range, &op);
        turns *= extents[axis];
      }
      if (work.team > 1 && !lane) {
        lane = vectorAxis(axes)
                   ? vectorAxis(axes)
                   : mlir::Value(axes.getAxes().empty() ? mlir::Value()
                                                        : mlir::Value(axes.getAxes().back()));
        turns = std::ceil(turns / work.team);
      }
    }
    LaunchWork before = work;
    if (auto reduce = dyn_cast<ReduceOp>(op)) {
      work.instructions += points();
      work.operations += points();
      if (matchContraction(reduce))
        work.products += points();
    }
    double inside = 0;
    for (mlir::Region &region : op.getRegions())
      for (mlir::Operation &nested : region.getOps())
        inside += visit(nested);
    if (auto reduce = dyn_cast<ReduceOp>(op); reduce && rowsTogether && matchContraction(reduce))
      keepFactors(before);
    around.truncate(outer);
    lane = kept;
    // Turns that do not depend on each other wait for memory together, and follow each other by
    // what the sum takes.
    if (isSerial)
      return turns * inside;
    return inside + std::max(turns - 1, 0.0) * instructionLatency +
           (work.team > 1 && !kept ? barrierLatency : 0);
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// What strategies do of it
//===----------------------------------------------------------------------===//

/// The share of a tile loop's tiles in which every comparison holds somewhere: of rows and columns
/// at regular places, the middle of everything else.
static double shareOfTiles(const TileLoopMatch &match) {
  constexpr int64_t places = 16;
  const TileLoopPlan &plan = match.plan;
  const TileLoopShape &shape = match.shape;
  AxesOp axes = asAxes(ParallelOp(plan.op));
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

/// Shapes and models of the strategies.
static void addStrategy(const StatementMatch &match, LaunchWork &work) {
  StatementCost cost = match.strategy.cost(match);
  work.unit = cost.unit.value_or(work.unit);
  auto choice = find_if(cost.choices,
                        [&](const StatementCost::Choice &one) { return one.name == cost.tile; });
  if (choice != cost.choices.end() && choice->clocks > 0)
    work.clocks = choice->clocks;
  if (const auto *loop = dyn_cast<TileLoopMatch>(&match)) {
    work.computed = shareOfTiles(*loop);
    work.isEstimate |= any_of(loop->plan.masks, [](const auto &mask) { return mask.skips; });
    work.blocks =
        std::ceil(work.points / double(loop->shape.rows())) * double(loop->shape.clusterBlocks);
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

//===----------------------------------------------------------------------===//
// A kernel
//===----------------------------------------------------------------------===//

/// The second-level cache of an H100 or H200 as far as one launch leaves it to the next: 50 MB in
/// two halves.
static constexpr double cacheBytes = 30e6;

void LaunchWorkCounter::takeFromCache(const TrafficOfTensors &traffic, LaunchWork &work) {
  for (const auto &[tensor, own] : traffic) {
    auto last = touched.find(tensor);
    bool isNear = last != touched.end() && bytes - last->second + own.read < cacheBytes;
    bool isKept = work.runs > 1 && !own.moves && own.size < cacheBytes / 2;
    work.bytesRead += own.read;
    work.bytesWritten += own.written;
    if (isNear || isKept)
      work.bytesCached += own.read;
  }
  for (const auto &[tensor, own] : traffic) {
    bytes += own.read + own.written;
    touched[tensor] = bytes;
  }
}

std::optional<LaunchWork> LaunchWorkCounter::count(ParallelOp statement,
                                                   const StatementMatch *match) {
  LaunchWork work;
  work.strategy = (match ? match->strategy : generalStrategy()).name().str();
  std::optional<double> rowsTogether;
  if (match && match->strategy.cost(*match).unit)
    rowsTogether = 0;
  if (const auto *skinny = match ? dyn_cast<SkinnyProductMatch>(match) : nullptr)
    rowsTogether = double(skinny->plan.numRows);
  WorkWalk walk(statement, work, rowsTogether);
  if (!walk.count())
    return std::nullopt;
  // Beside tiles of ranges that data give there is code for what the tiles cannot take: the data
  // decide that there is such, and mostly there is none.
  auto launch = statement->getParentOfType<LaunchOp>();
  if (work.isEstimate && !work.clocks && launch.getStrategy() != StringRef(work.strategy)) {
    LaunchWork rest;
    rest.strategy = work.strategy;
    rest.runs = work.runs;
    rest.isEstimate = true;
    return rest;
  }
  takeFromCache(walk.traffic, work);
  if (work.doubles > 0)
    work.unit = LaunchUnit::Lanes64;
  if (!match)
    return work;
  addStrategy(*match, work);
  return work;
}
