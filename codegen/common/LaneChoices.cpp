//===- LaneChoices.cpp - Chooses the axis that becomes vector lanes -------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In every nest one axis at most, of a `parallel` or of a `reduce`, becomes vector lanes. The
// choice minimises an estimate of the time: an access costs one vector access where the axis moves
// it by one element or not at all, and one per lane otherwise; a loop multiplies, lanes divide.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/LaneChoices.h"

#include "codegen/common/AccessShape.h"
#include "ir/tgl/TglFunctions.h"
#include "ir/tgl/TglUtils.h"
#include "ir/tgl/WriteAttributes.h"
#include <cmath>

using namespace llvm;
using namespace tegula;
using tgl::ValueExpr;

namespace {

using Choices = DenseMap<mlir::Operation *, LaneChoice>;

class LaneChooser {
public:
  LaneChooser(Choices &choices, unsigned vectorBytes, bool whole)
      : choices(choices), vectorBytes(vectorBytes), whole(whole) {}

  /// Cost of one run of the op, axes inside of it chosen.
  double cost(mlir::Operation *op) {
    if (auto axes = dyn_cast<tgl::AxesOp>(op))
      return nestCost(axes);
    if (op->getNumRegions() == 0)
      return ownCost(op);
    double points = loopTrips(op), inside = 1;
    for (mlir::Region &region : op->getRegions())
      for (mlir::Operation &nested : region.getOps())
        inside += cost(&nested);
    return points * inside;
  }

private:
  static constexpr double never = std::numeric_limits<double>::infinity();

  //===--- Sizes ---===//

  static double trips(const ValueExpr &low, const ValueExpr &high) {
    ValueExpr extent = high - low;
    if (std::optional<int64_t> constant = extent.asConstant())
      return std::max<double>(0, *constant);
    // Sizes that are not known when compiling are taken to be middling, indices to be half of that.
    auto value = extent.expr().evaluate(
        [](const IndexVar &var) -> std::optional<int64_t> { return var.isSymbol() ? 256 : 128; });
    // A difference of sizes (`W - KW + 1`) is no short axis.
    return value && *value >= 128 ? static_cast<double>(*value) : 128;
  }

  /// A summed axis that moves a window over a tensor (`x[p + r]`): such windows are small.
  static bool isWindow(mlir::Value axis) {
    auto usesOf = [&](const ValueExpr &subscript) {
      if (!subscript.uses(axis))
        return false;
      return any_of(subscript.operands(), [&](mlir::Value other) {
        if (other == axis || !subscript.uses(other) || !isa<mlir::BlockArgument>(other) ||
            !isa_and_nonnull<tgl::ParallelOp>(other.getParentBlock()->getParentOp()))
          return false;
        ValueExpr next = subscript.substitute(other, ValueExpr(other) + ValueExpr(int64_t(1)));
        return (next - subscript).asConstant().has_value();
      });
    };
    return any_of(axis.getUsers(), [&](mlir::Operation *user) {
      auto read = dyn_cast<tgl::ReadOp>(user);
      return read && any_of(read.getSubscriptExprs(), usesOf);
    });
  }

  static double axisTrips(tgl::AxesOp op, unsigned axis) {
    tgl::AxisRange range = tgl::getAxisRange(op, axis);
    double extent = trips(range.lo, range.hi);
    if (!(range.hi - range.lo).asConstant() && isa<tgl::ReduceOp>(op.getOperation()) &&
        isWindow(op.getAxes()[axis]))
      return std::min(extent, 4.0);
    return extent;
  }

  static double loopTrips(mlir::Operation *op) {
    if (auto loop = dyn_cast<tgl::ForOp>(op))
      return trips(loop.getLowExpr(), loop.getHighExpr());
    if (auto tiles = dyn_cast<tgl::TilesOp>(op))
      return std::ceil(trips(tiles.getLowExpr(), tiles.getHighExpr()) /
                       static_cast<double>(tiles.getSize().value_or(1)));
    return 1;
  }

  //===--- Operations ---===//

  static double ownCost(mlir::Operation *op) {
    if (isa<mlir::arith::ConstantOp, tgl::YieldOp, tgl::TempOp>(op))
      return 0;
    if (isa<mlir::math::PowFOp>(op) || op->hasTrait<tgl::FloatFunction>())
      return 60;
    if (isa<mlir::math::SqrtOp, mlir::math::RsqrtOp, mlir::arith::DivFOp>(op))
      return 6;
    if (isa<mlir::math::MathDialect>(op->getDialect()) &&
        !isa<mlir::math::AbsFOp, mlir::math::FloorOp, mlir::math::CeilOp, mlir::math::FmaOp,
             mlir::math::CopySignOp>(op))
      return 20;
    return 1;
  }

  /// Vector operations for one result of the op with so many lanes.
  double registers(mlir::Operation *op, unsigned lanes) const {
    unsigned bytes = 4;
    for (mlir::Type type : op->getResultTypes())
      if (type.isIndex() || (type.isIntOrFloat() && type.getIntOrFloatBitWidth() == 64))
        bytes = 8;
    return std::max(1.0, double(lanes * bytes) / vectorBytes);
  }

  struct Lane {
    mlir::Value axis;
    unsigned width;
    DenseSet<mlir::Value> varying; ///< the axis, and what is computed from it
    bool varies(mlir::Value value) const { return varying.contains(value); }
    bool varies(const ValueExpr &expr) const {
      return any_of(expr.operands(), [&](mlir::Value value) { return varies(value); });
    }
  };

  double accessCost(tgl::TglTensorType type, ArrayRef<ValueExpr> subscripts, const Lane &lane,
                    bool isWrite) const {
    mlir::Type element = type.getElementType();
    if (element.isInteger(4) && !subscripts.empty() && lane.varies(subscripts.back()))
      return 2.0 * lane.width;
    ValueExpr offset = tgl::elementOffset(type, subscripts);
    std::optional<int64_t> step = stepAlong(offset, lane.axis, [&](mlir::Value value) {
      return value != lane.axis && lane.varies(value);
    });
    if (step == 0)
      return isWrite ? lane.width : 1; // lanes that write one element take turns
    double vectors =
        std::max(1.0, double(lane.width * element.getIntOrFloatBitWidth()) / 8 / vectorBytes);
    if (step == 1)
      return vectors;
    // Of elements that are apart, threads side by side read fewer lines at a time without lanes.
    if (whole && step && std::abs(*step) > 1)
      return never;
    if (step && !isWrite && isShortStep(*step))
      return 2 * vectors * std::abs(*step); // loads and shuffles
    // A device's threads side by side have lanes side by side: elements apart waste what memory
    // delivers.
    if (whole)
      return never;
    // Every lane touches a line of its own; a scatter is a store for each lane and some.
    return (isWrite ? 6 : 2) * lane.width;
  }

  static bool boundsVary(mlir::Operation *op, const Lane &lane) {
    if (auto loop = dyn_cast<tgl::ForOp>(op))
      return lane.varies(loop.getLowExpr()) || lane.varies(loop.getHighExpr());
    if (auto tiles = dyn_cast<tgl::TilesOp>(op))
      return lane.varies(tiles.getLowExpr()) || lane.varies(tiles.getHighExpr());
    return any_of(getAxisRanges(cast<tgl::AxesOp>(op)), [&](const tgl::AxisRange &range) {
      return lane.varies(range.lo) || lane.varies(range.hi);
    });
  }

  /// Cost of the op for one vector of lanes; `never` where it cannot be emitted inside lanes.
  double laneCost(mlir::Operation *op, Lane &lane) {
    bool varies = any_of(op->getOperands(), [&](mlir::Value value) { return lane.varies(value); });
    double result = 0;
    if (auto read = dyn_cast<tgl::ReadOp>(op)) {
      if (read->hasAttr(tgl::unorderedAttrName)) // one at a time, as are the writes that use it
        return never;
      result = accessCost(read.getTensorType(), read.getSubscriptExprs(), lane, false);
      // A fill or a division that must be exact compares subscripts.
      if (read.getFill() || !read.getExactExprs().empty())
        result += 2;
    } else if (auto write = dyn_cast<tgl::WriteOp>(op)) {
      result = accessCost(write.getTensorType(), write.getSubscriptExprs(), lane, true);
      ValueExpr offset = tgl::elementOffset(write.getTensorType(), write.getSubscriptExprs());
      bool areNeighbours = stepAlong(offset, lane.axis, [&](mlir::Value value) {
                             return value != lane.axis && lane.varies(value);
                           }) == 1;
      // Neighbours that are stored alike need no turns (storeAlike of Accesses.cpp).
      if (write.getCombine() && !(write.getCombine() == tgl::ReduceKind::Any && areNeighbours)) {
        if (whole) // one at a time anyway, and lanes are not addressable there
          return never;
        result += 4 * lane.width;
      }
    } else if (isa<tgl::ReduceOp, tgl::ParallelOp, tgl::ForOp, tgl::TilesOp>(op)) {
      if (boundsVary(op, lane)) // from lane to lane
        return never;
      double points = loopTrips(op), inside = 1;
      if (auto axes = dyn_cast<tgl::AxesOp>(op)) {
        for (unsigned axis = 0; axis < axes.getAxes().size(); ++axis)
          points *= axisTrips(axes, axis);
      } else {
        // What a loop carries is kept as vectors.
        auto carried = isa<tgl::ForOp>(op) ? cast<tgl::ForOp>(op).getIterArgs()
                                           : cast<tgl::TilesOp>(op).getIterArgs();
        lane.varying.insert_range(carried);
        varies = !carried.empty();
      }
      unsigned before = lane.varying.size();
      for (mlir::Operation &nested : op->getRegion(0).front()) {
        double cost = laneCost(&nested, lane);
        if (cost == never) // in a loop without points too, for which code is emitted
          return never;
        inside += cost;
        varies |=
            any_of(nested.getOperands(), [&](mlir::Value value) { return lane.varies(value); });
      }
      varies |= lane.varying.size() != before;
      result = points * inside;
    } else if (op->getNumRegions() || isa<tgl::TempOp, tgl::SortOp>(op)) {
      return never;
    } else {
      result = ownCost(op) * (varies ? registers(op, lane.width) : 1);
    }
    if (varies)
      for (mlir::Value value : op->getResults())
        lane.varying.insert(value);
    return result;
  }

  //===--- Nests ---===//

  /// Later axes whose bounds use this one would have bounds that differ from lane to lane.
  static bool canBeInnermost(tgl::AxesOp op, unsigned axis) {
    for (unsigned later = axis + 1; later < op.getAxes().size(); ++later) {
      tgl::AxisRange range = getAxisRange(op, later);
      if (range.lo.uses(op.getAxes()[axis]) || range.hi.uses(op.getAxes()[axis]))
        return false;
    }
    return true;
  }

  /// Loops inside of lanes wait for each sum and touch one vector of each row of memory: several
  /// vectors share that, as far as registers go. Windows are not worth it: their masks are vectors
  /// as well.
  unsigned sideBySide(tgl::AxesOp op, mlir::Value axis) const {
    unsigned operations = 0;
    bool loops = false, plain = true;
    op->walk([&](mlir::Operation *nested) {
      ++operations;
      loops |= nested != op && nested->getNumRegions();
      if (auto read = dyn_cast<tgl::ReadOp>(nested)) {
        ValueExpr offset = tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs());
        std::optional<int64_t> step = stepAlong(offset, axis, [](mlir::Value) { return false; });
        plain &= !read.getFill() && (step == 0 || step == 1);
      }
      // Elementary functions are a dozen operations and as many constants.
      if (isa<mlir::math::MathDialect>(nested->getDialect()))
        operations += 12;
    });
    return !loops || !plain || operations > 40 ? 1 : operations > 16 ? 2 : 4;
  }

  /// Bytes that a lane is counted with: those of the widest element along the axis where a device's
  /// threads do no more than read, compute and write the statement's points, so that their accesses
  /// are whole vectors; else 4.
  unsigned laneBytes(tgl::AxesOp op, mlir::Value axis) const {
    constexpr unsigned most = 4, least = 2;
    bool isPlain = whole && isa<tgl::ParallelOp>(op.getOperation()) &&
                   !op->getParentOfType<tgl::AxesOp>() && !op->getParentOfType<tgl::TilesOp>();
    unsigned widest = least;
    auto widen = [&](tgl::TglTensorType type, ArrayRef<ValueExpr> subscripts) {
      if (tgl::elementOffset(type, subscripts).uses(axis))
        widest = std::max(widest, storageBytes(type.getElementType()));
    };
    for (mlir::Operation &nested : *op.getAxesBlock()) {
      isPlain &= !nested.getNumRegions();
      if (auto read = dyn_cast<tgl::ReadOp>(nested))
        widen(read.getTensorType(), read.getSubscriptExprs());
      else if (auto write = dyn_cast<tgl::WriteOp>(nested))
        widen(write.getTensorType(), write.getSubscriptExprs());
    }
    return isPlain ? std::min(widest, most) : most;
  }

  /// Whether the axis has a multiple of `count` points, as 4096*M has of 8 whatever M is.
  static bool isMultiple(tgl::AxesOp op, unsigned axis, int64_t count) {
    tgl::AxisRange range = getAxisRange(op, axis);
    ValueExpr extent = range.hi - range.lo;
    return all_of(extent.expr().terms(),
                  [&](const IndexExpr::Term &term) { return term.coefficient % count == 0; });
  }

  double nestCost(tgl::AxesOp op) {
    bool isReduce = isa<tgl::ReduceOp>(op.getOperation());
    bool isParallel = isa<tgl::ParallelOp>(op.getOperation());
    double points = 1;
    SmallVector<double> extents;
    for (unsigned axis = 0; axis < op.getAxes().size(); ++axis) {
      extents.push_back(axisTrips(op, axis));
      points *= extents.back();
    }
    // Point by point, whatever is best inside.
    double inside = isReduce ? 4 : 1; // a sum of single values waits for each addition
    unsigned operations = 0;
    for (mlir::Operation &nested : *op.getAxesBlock()) {
      inside += cost(&nested);
      ++operations;
    }
    double best = points * inside;
    std::optional<LaneChoice> choice;
    for (unsigned axis = 0; (isReduce || isParallel) && axis < extents.size(); ++axis) {
      if (!canBeInnermost(op, axis))
        continue;
      unsigned width = std::max(1u, vectorBytes / laneBytes(op, op.getAxes()[axis]));
      // A short axis does not fill a vector.
      while (width > 2 && width / 2 >= extents[axis])
        width /= 2;
      if (whole) {
        while (width > 1 && !isMultiple(op, axis, width))
          width /= 2;
        if (width == 1)
          continue;
      }
      Lane lane{op.getAxes()[axis], width, {}};
      lane.varying.insert(lane.axis);
      double each = 1;
      for (mlir::Operation &nested : *op.getAxesBlock())
        each += laneCost(&nested, lane);
      double total =
          points / std::max(1.0, extents[axis]) * std::ceil(extents[axis] / width) * each;
      if (isReduce) // the lanes are combined at the end, once for each point around
        total += 12;
      if (total > best || total == never)
        continue; // among equals the last axis wins: its points are neighbours in most tensors
      best = total;
      unsigned unroll = operations <= 24 ? 4 : operations <= 64 ? 2 : 1;
      auto fits = [&] {
        return width * unroll <= extents[axis] && (!whole || isMultiple(op, axis, width * unroll));
      };
      while (unroll > 1 && !fits())
        unroll /= 2;
      choice = LaneChoice{axis, width, unroll,
                          isParallel && !whole ? sideBySide(op, op.getAxes()[axis]) : 1};
    }
    if (choice) {
      // What was chosen further inside does not hold any more.
      op->walk([&](mlir::Operation *nested) { choices.erase(nested); });
      choices[op] = *choice;
    }
    return best;
  }

  Choices &choices;
  unsigned vectorBytes;
  bool whole; // vectors have no rest
};
} // namespace

bool LaneChoices::prefersOwnAxes(tgl::AxesOp op, unsigned vectorBytes) {
  Choices scratch;
  LaneChooser(scratch, vectorBytes, /*whole=*/false).cost(op);
  return scratch.contains(op);
}

std::optional<LaneChoice> LaneChoices::choose(tgl::AxesOp op, unsigned vectorBytes, bool whole) {
  if (!roots.contains(op)) {
    LaneChooser(choices, vectorBytes, whole).cost(op);
    op->walk([&](mlir::Operation *nested) { roots.insert(nested); });
  }
  auto found = choices.find(op);
  return found == choices.end() ? std::nullopt : std::optional(found->second);
}
