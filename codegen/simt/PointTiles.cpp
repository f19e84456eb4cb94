//===- PointTiles.cpp - Emits points that a thread computes together ------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/PointTiles.h"

#include "codegen/simt/DeviceEmitter.h"
#include "ir/tgl/TglUtils.h"

using namespace llvm;
using namespace tegula;

namespace {
/// The tile of a thread: what is known at each of its points (vectors of points).
class PointTileEmitter {
public:
  PointTileEmitter(DeviceEmitter &e, tgl::ParallelOp nest, const RegisterTile &tile)
      : e(e), b(e.b), nest(nest), axes(cast<tgl::AxesOp>(nest.getOperation())), tile(tile) {
    for (unsigned axis = 0; axis < tile.points.size(); ++axis) {
      int64_t extent = *tgl::knownPoints(axes, {axis});
      extents.push_back(extent);
      tiles.push_back(divideCeil(extent, tile.points[axis]));
    }
  }

  int64_t numTiles() const {
    int64_t all = 1;
    for (int64_t own : tiles)
      all *= own;
    return all;
  }

  void emit(Value *number);

private:
  struct Point {
    SmallVector<Value *> places;            ///< by axis, but for that of the lanes
    Value *exists = nullptr;                ///< null: always
    DenseMap<mlir::Value, Value *> results; ///< of the nest's operations
  };
  using Sums = SmallVector<Accumulator>; ///< by point, then by reduction

  DeviceEmitter &e;
  IRBuilder<> &b;
  tgl::ParallelOp nest;
  tgl::AxesOp axes;
  const RegisterTile &tile;
  SmallVector<int64_t> extents, tiles; ///< by axis
  std::vector<Point> points;
  DenseSet<mlir::Operation *> done; ///< reductions

  Value *findPoints(Value *number);
  void enter(const Point &point);
  void emitBody();
  void emitReductions(tgl::ReduceOp first);
  Sums walk(ArrayRef<tgl::ReduceOp> together, unsigned axis, Sums sums);
  Sums addTerm(ArrayRef<tgl::ReduceOp> together, const Sums &sums);
};
} // namespace

/// Sets the points of the tile with this number: tiles along the lane axis come first, then those
/// along the last axis. Returns where the lanes begin; null where there are none.
Value *PointTileEmitter::findPoints(Value *number) {
  SmallVector<Value *> digits(tiles.size());
  SmallVector<unsigned> order;
  for (unsigned axis = 0; axis < tiles.size(); ++axis)
    if (axis != tile.lane)
      order.push_back(axis);
  if (tile.lane)
    order.push_back(*tile.lane);
  number = b.CreateTrunc(number, b.getInt32Ty(), "", /*IsNUW=*/true, /*IsNSW=*/true);
  for (unsigned axis : reverse(order)) {
    Value *count = b.getInt32(unsigned(tiles[axis]));
    Value *digit = number;
    if (axis != order.front()) {
      digit = b.CreateURem(number, count);
      number = b.CreateUDiv(number, count);
    }
    digits[axis] = b.CreateZExt(digit, b.getInt64Ty(), "", /*IsNonNeg=*/true);
  }
  points.resize(1);
  points.front().places.resize(tiles.size());
  Value *lanes = nullptr;
  for (unsigned axis = 0; axis < tiles.size(); ++axis) {
    Value *low = e.emitIndex(e.lowOf(axes, axis));
    int64_t count = tile.points[axis];
    if (axis == tile.lane) {
      lanes = b.CreateNSWAdd(b.CreateNSWMul(digits[axis], e.i64(count)), low);
      continue;
    }
    std::vector<Point> more;
    for (const Point &point : points)
      for (int64_t own = 0; own < count; ++own) {
        Value *place = tile.sideBySide[axis]
                           ? b.CreateNSWAdd(b.CreateNSWMul(digits[axis], e.i64(count)), e.i64(own))
                           : b.CreateNSWAdd(digits[axis], e.i64(own * tiles[axis]));
        Point next = point;
        if ((own + 1) * tiles[axis] > extents[axis]) { // the last one again, which nobody stores
          next.exists = e.emitAnd(point.exists, b.CreateICmpSLT(place, e.i64(extents[axis])));
          place = b.CreateBinaryIntrinsic(Intrinsic::umin, place, e.i64(extents[axis] - 1));
        }
        next.places[axis] = b.CreateNSWAdd(place, low);
        more.push_back(std::move(next));
      }
    points = std::move(more);
  }
  return lanes;
}

void PointTileEmitter::enter(const Point &point) {
  for (auto [axis, place] : enumerate(point.places))
    if (place)
      e.values[axes.getAxes()[axis]] = place;
  for (auto [result, value] : point.results)
    e.values[result] = value;
}

void PointTileEmitter::emit(Value *number) {
  Value *lanes = findPoints(number);
  if (!lanes)
    return emitBody();
  e.withLanes(axes.getAxes()[*tile.lane], unsigned(tile.points[*tile.lane]), lanes, nullptr,
              [&] { emitBody(); });
}

void PointTileEmitter::emitBody() {
  for (mlir::Operation &op : nest.getBody().front()) {
    if (e.failed())
      return;
    if (isa<tgl::YieldOp>(op) || done.contains(&op))
      continue;
    if (auto reduce = dyn_cast<tgl::ReduceOp>(op)) {
      emitReductions(reduce);
      continue;
    }
    for (Point &point : points) {
      enter(point);
      if (point.exists && isa<tgl::WriteOp>(op))
        e.emitIf(point.exists, [&] { e.emitOp(&op); });
      else
        e.emitOp(&op);
      for (mlir::Value result : op.getResults())
        point.results[result] = e.values.lookup(result);
    }
  }
}

/// Sums of the first reduction and of those over the same axes that can be computed where it
/// stands, for all points.
void PointTileEmitter::emitReductions(tgl::ReduceOp first) {
  SmallVector<tgl::ReduceOp> together = e.takeTogether(first);
  llvm::erase_if(together, [&](tgl::ReduceOp op) { return done.contains(op); });
  Sums sums;
  for (size_t point = 0; point < points.size(); ++point)
    for (tgl::ReduceOp op : together) {
      Accumulator start = initialAccumulator(e, op);
      sums.push_back(e.lanes ? splatAccumulator(e, op, std::move(start), e.lanes->width) : start);
    }
  sums = walk(together, 0, std::move(sums));
  auto *sum = sums.begin();
  for (Point &point : points)
    for (tgl::ReduceOp op : together)
      point.results[op.getResult()] = resultOf(e, op, *sum++);
  for (tgl::ReduceOp op : together)
    done.insert(op);
}

/// Loops over the reductions' axes from this one on: the innermost takes a few terms at a time.
PointTileEmitter::Sums PointTileEmitter::walk(ArrayRef<tgl::ReduceOp> together, unsigned axis,
                                              Sums sums) {
  constexpr int64_t termsAtOnce = 4;
  auto first = cast<tgl::AxesOp>(tgl::ReduceOp(together.front()).getOperation());
  unsigned numAxes = first.getAxes().size();
  if (axis == numAxes)
    return addTerm(together, sums);
  int64_t extent = *tgl::knownPoints(first, {axis});
  int64_t step = axis + 1 == numAxes ? std::min(termsAtOnce, extent) : 1;
  Value *low = e.emitIndex(e.lowOf(first, axis));
  auto terms = [&](Value *from, int64_t count, Sums all) {
    for (int64_t term = 0; term < count; ++term) {
      Value *at = b.CreateNSWAdd(low, b.CreateNSWAdd(from, e.i64(term)));
      for (tgl::ReduceOp op : together)
        e.values[op.getAxes()[axis]] = at;
      all = walk(together, axis + 1, std::move(all));
    }
    return all;
  };
  SmallVector<Value *> flat;
  SmallVector<size_t> sizes;
  for (const Accumulator &one : sums) {
    sizes.push_back(one.size());
    flat.append(one.begin(), one.end());
  }
  auto unflatten = [&](ArrayRef<Value *> all) {
    Sums parts;
    for (size_t size : sizes) {
      parts.emplace_back(all.take_front(size));
      all = all.drop_front(size);
    }
    return parts;
  };
  auto flatten = [](const Sums &parts) {
    SmallVector<Value *> all;
    for (const Accumulator &one : parts)
      all.append(one.begin(), one.end());
    return all;
  };
  int64_t whole = extent - extent % step;
  e.keepNextLoopRolled = true;
  SmallVector<Value *> all = e.emitLoop(e.i64(0), e.i64(whole), e.i64(step), flat,
                                        [&](Value *from, ArrayRef<Value *> now) {
                                          return flatten(terms(from, step, unflatten(now)));
                                        });
  return terms(e.i64(whole), extent - whole, unflatten(all));
}

/// What a sum adds up at each term, one after the other: `a*b - c*d` are two products that are each
/// added by one instruction.
static SmallVector<std::pair<mlir::Value, bool>> addendsOf(tgl::ReduceOp op) {
  SmallVector<std::pair<mlir::Value, bool>> pending{{op.getReduced(), false}}, addends;
  if (op.getKind() != tgl::ReduceKind::Sum || op.getFilter())
    return {};
  while (!pending.empty()) {
    auto [value, isNegative] = pending.pop_back_val();
    mlir::Operation *sum = value.getDefiningOp();
    bool isOwn = sum && sum->getBlock() == &op.getBody().front() && value.hasOneUse();
    auto flagged = isOwn ? dyn_cast<mlir::arith::ArithFastMathInterface>(sum) : nullptr;
    mlir::arith::FastMathFlagsAttr flags =
        flagged ? flagged.getFastMathFlagsAttr() : mlir::arith::FastMathFlagsAttr();
    bool contracts = flags && mlir::arith::bitEnumContainsAll(flags.getValue(),
                                                              mlir::arith::FastMathFlags::contract);
    if (contracts && isa<mlir::arith::AddFOp, mlir::arith::SubFOp>(sum)) {
      bool turns = isa<mlir::arith::SubFOp>(sum);
      pending.push_back({sum->getOperand(1), isNegative != turns});
      pending.push_back({sum->getOperand(0), isNegative});
    } else {
      addends.push_back({value, isNegative});
    }
  }
  bool areProducts = all_of(addends, [](const auto &addend) {
    return isa_and_nonnull<mlir::arith::MulFOp>(addend.first.getDefiningOp());
  });
  return addends.size() > 1 && areProducts ? addends : SmallVector<std::pair<mlir::Value, bool>>();
}

PointTileEmitter::Sums PointTileEmitter::addTerm(ArrayRef<tgl::ReduceOp> together,
                                                 const Sums &sums) {
  Sums results;
  const auto *sum = sums.begin();
  for (const Point &point : points) {
    enter(point);
    for (tgl::ReduceOp op : together) {
      SmallVector<std::pair<mlir::Value, bool>> addends = addendsOf(op);
      if (addends.empty()) {
        results.push_back(e.emitReducePoint(op, *sum++));
        continue;
      }
      e.emitBlock(op.getBody().front());
      Value *all = (sum++)->front();
      IRBuilder<>::FastMathFlagGuard guard(b);
      FastMathFlags flags = b.getFastMathFlags();
      flags.setAllowContract();
      b.setFastMathFlags(flags);
      for (auto [value, isNegative] : addends) {
        Value *operands[] = {all, e.valueOf(value)};
        e.align(operands);
        all = isNegative ? b.CreateFSub(operands[0], operands[1])
                         : b.CreateFAdd(operands[0], operands[1]);
      }
      results.push_back({all});
    }
  }
  return results;
}

void tegula::emitPointTiles(DeviceEmitter &e, tgl::ParallelOp nest, RegisterTile tile) {
  assert(e.shape.cluster == 1 && "a team has the point alone");
  if (tile.lane && !e.options.vectorBytes) { // accesses are checked one by one
    tile.sideBySide[*tile.lane] = true;
    tile.lane.reset();
  }
  bool seen = e.exchanges(nest);
  if (seen)
    e.barrier(); // earlier writes of all threads are seen, earlier reads are over
  e.perThread = true;
  int64_t all = PointTileEmitter(e, nest, tile).numTiles();
  auto emitTile = [&](Value *number) {
    e.emitOfPoint(nest, [&] { PointTileEmitter(e, nest, tile).emit(number); });
  };
  if (all <= int64_t(e.shape.team)) {
    if (all < int64_t(e.shape.team))
      e.emitIf(e.b.CreateICmpULT(e.thread, e.i64(all)), [&] { emitTile(e.thread); });
    else
      emitTile(e.thread);
  } else {
    e.keepNextLoopRolled = true;
    e.emitLoop(e.thread, e.i64(all), e.i64(e.shape.team), {},
               [&](Value *number, ArrayRef<Value *>) {
                 emitTile(number);
                 return SmallVector<Value *>();
               });
  }
  e.perThread = false;
  if (seen)
    e.barrier();
}
