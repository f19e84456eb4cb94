//===- StatementWalk.cpp - Counts the work of a scheduled statement -------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "strategies/expected/StatementWalk.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/analysis/Nest.h"
#include "passes/analysis/SortedRows.h"
#include "strategies/expected/Instructions.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"
#include <cmath>

using namespace llvm;
using namespace tegula;
using namespace tegula::tgl;

StatementWalk::StatementWalk(ParallelOp statement, LaunchWork &work, StatementThreads threads,
                             bool isGeneral, std::optional<double> rowsTogether)
    : statement(statement), work(work), threads(std::move(threads)), isGeneral(isGeneral),
      rowsTogether(rowsTogether) {}

bool StatementWalk::count() {
  for (mlir::Operation *above = statement->getParentOp(); !isa<KernelOp>(above);
       above = above->getParentOp())
    if (auto loop = dyn_cast<ForOp>(above)) {
      enter(loop.getLoopVar(), {loop.getLowExpr(), loop.getHighExpr()}, loop);
      work.runs *= extents[loop.getLoopVar()];
      outerLoops.insert(loop.getLoopVar());
      levels.clear(); // the loop's other steps are other runs
      varies.clear();
    }
  auto axes = cast<AxesOp>(statement.getOperation());
  for (auto [axis, range] : zip_equal(axes.getAxes(), getAxisRanges(axes)))
    enter(axis, range, statement);
  work.points = pointsAround();
  work.team = dealing = threads.team;
  work.vector = threads.vector;
  work.columnSplit = threads.columnSplit;
  work.blockThreads = threads.block / threads.columnSplit; // of as many points
  lane = threads.lane;
  width = threads.vector;
  for (Level &level : levels)
    level.turns = 1;
  // The last axis is fastest; a vector's before all others.
  if (threads.across) {
    double side = std::sqrt(width);
    neighbours = {{threads.across, 8, side}, {threads.along, 4, side}};
  }
  if (threads.team > 1)
    neighbours.push_back({nullptr, std::min(threads.team, threadsOfWarp), 1});
  if (lane)
    neighbours.push_back({lane, extents[lane] / width, width});
  for (mlir::Value axis : reverse(axes.getAxes()))
    if (axis != lane && axis != threads.across && axis != threads.along)
      neighbours.push_back({axis, extents[axis], 1});
  written = accessesOf(statement).writes;
  computed.emplace_back();
  work.chain = visitBlock(statement.getBody().front(), 0);
  if (!isKnown)
    return false;
  for (auto &[tensor, own] : traffic) {
    own.written = std::min(own.written, own.size);
    own.read = std::min(own.read, own.size) + drawnAgain.lookup(tensor);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

std::optional<int64_t> StatementWalk::valueOf(mlir::Value value) const {
  auto known = middles.find(value);
  return known == middles.end() ? std::nullopt : std::optional(known->second);
}

std::optional<int64_t> StatementWalk::valueOf(const ValueExpr &expr) const {
  return expr.expr().evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
    return var.isSymbol() ? std::nullopt : valueOf(expr.operands()[var.position()]);
  });
}

/// How far a range goes whose bounds are data: over the dim that its axis is a subscript of, of
/// which each point that bounds it at both ends has its part.
double StatementWalk::estimateExtent(mlir::Value axis, const AxisRange &range,
                                     mlir::Operation *owner) {
  work.isEstimate = true;
  double longest = 0;
  // The axis, or one that runs over the tile that begins there.
  auto isAlong = [&](mlir::Value operand) {
    auto argument = dyn_cast<mlir::BlockArgument>(operand);
    std::optional<AxisRange> own = argument ? getRange(argument) : std::nullopt;
    return operand == axis || (own && own->lo.uses(axis));
  };
  auto look = [&](ArrayRef<ValueExpr> subscripts, TglTensorType type) {
    for (auto [subscript, dim] : zip_equal(subscripts, type.getDims()))
      if (any_of(subscript.operands(), isAlong))
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

/// The value of a bound whose data are as large as may be; nothing where they alone decide it.
std::optional<int64_t> StatementWalk::mostOf(const ValueExpr &bound) const {
  constexpr int64_t large = int64_t(1) << 40;
  std::optional<int64_t> most =
      bound.expr().evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
        if (var.isSymbol())
          return std::nullopt;
        return valueOf(bound.operands()[var.position()]).value_or(large);
      });
  return most && *most < large / 2 ? most : std::nullopt;
}

void StatementWalk::enter(mlir::Value axis, const AxisRange &range, mlir::Operation *owner) {
  Levels bounds = 0;
  for (const ValueExpr &bound : {range.lo, range.hi})
    bounds |= levelsOf(bound.operands());
  varies[axis] = bounds | Levels(1) << levels.size();
  std::optional<int64_t> low = valueOf(range.lo), high = valueOf(range.hi);
  if (low && high) {
    extents[axis] = double(std::max<int64_t>(*high - *low, 0));
    middles[axis] = *low + std::max<int64_t>(*high - *low, 0) / 2;
  } else {
    isKnown &= usesData(range.lo) || usesData(range.hi) || hasUnknownTile(range);
    std::optional<int64_t> most = low ? mostOf(range.hi) : std::nullopt;
    work.isEstimate = true;
    extents[axis] =
        most ? double(std::max<int64_t>(*most - *low, 0)) : estimateExtent(axis, range, owner);
    middles[axis] = low.value_or(0) + int64_t(extents[axis] / 2);
  }
  levels.push_back({axis, extents[axis], extents[axis]});
}

/// Bounds that follow from values that are estimated.
bool StatementWalk::hasUnknownTile(const AxisRange &range) const {
  auto isOpen = [&](mlir::Value value) { return !middles.count(value); };
  return any_of(range.lo.operands(), isOpen) || any_of(range.hi.operands(), isOpen);
}

StatementWalk::Levels StatementWalk::levelsOf(mlir::ValueRange values) const {
  Levels all = 0;
  for (mlir::Value value : values)
    all |= varies.lookup(value);
  return all;
}

double StatementWalk::pointsAround() const {
  double points = 1;
  for (const Level &level : levels)
    points *= level.extent;
  return points;
}

double StatementWalk::turnsOf(Levels own) const {
  double turns = 1;
  unsigned innermost = own ? 64 - countl_zero(own) : 0;
  for (const Level &level : ArrayRef(levels).take_front(innermost))
    turns *= level.turns;
  return turns / sharedInTile(own);
}

double StatementWalk::lanesOf(Levels own) const {
  if (threads.across) {
    bool isAcross = own & varies.lookup(threads.across),
         isAlong = own & varies.lookup(threads.along);
    return (isAcross ? std::sqrt(width) : 1) * (isAlong ? std::sqrt(width) : 1);
  }
  return lane && (own & varies.lookup(lane)) == varies.lookup(lane) ? width : 1;
}

double StatementWalk::threadsInAll() const {
  return work.points * work.team * threads.columnSplit / work.vector;
}

//===----------------------------------------------------------------------===//
// What is computed once
//===----------------------------------------------------------------------===//

size_t StatementWalk::nameOf(mlir::Value value) {
  auto known = names.find(value);
  if (known != names.end())
    return known->second;
  size_t name = hash_value(value.getAsOpaquePointer());
  auto argument = dyn_cast<mlir::BlockArgument>(value);
  auto owner = argument ? dyn_cast<AxesOp>(argument.getOwner()->getParentOp()) : AxesOp();
  if (owner && owner != statement.getOperation() &&
      argument.getArgNumber() < owner.getAxes().size()) {
    // Nests side by side over the same points have the same axes.
    AxisRange range = getAxisRange(owner, argument.getArgNumber());
    name = hash_combine(owner->getParentOp(), argument.getArgNumber());
    for (const ValueExpr &bound : {range.lo, range.hi}) {
      name = hash_combine(name, bound.expr());
      for (mlir::Value operand : bound.operands())
        name = hash_combine(name, nameOf(operand));
    }
  }
  return names[value] = name;
}

size_t StatementWalk::nameOf(mlir::Operation *op) {
  size_t name = hash_value(op->getName().getAsOpaquePointer());
  for (mlir::NamedAttribute attribute : op->getAttrs())
    if (attribute.getName() != "fastmath")
      name = hash_combine(name, attribute.getName().getAsOpaquePointer(),
                          attribute.getValue().getAsOpaquePointer());
  for (mlir::Value operand : op->getOperands())
    name = hash_combine(name, nameOf(operand));
  if (auto read = dyn_cast<ReadOp>(op))
    name = hash_combine(name, versions.lookup(read.getTensor()));
  return name;
}

bool StatementWalk::isRepeated(mlir::Operation *op) {
  size_t name = nameOf(op);
  for (mlir::Value result : op->getResults())
    names[result] = name;
  if (any_of(computed, [&](const DenseSet<size_t> &nest) { return nest.contains(name); }))
    return true;
  computed.back().insert(name);
  return false;
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

double StatementWalk::readyAt(mlir::ValueRange values) const {
  double last = 0;
  for (mlir::Value value : values)
    last = std::max(last, ready.lookup(value));
  return last;
}

double StatementWalk::visitBlock(mlir::Block &block, double begin) {
  double end = begin;
  for (mlir::Operation &op : block)
    end = std::max(end, visit(op, begin));
  return end;
}

double StatementWalk::visit(mlir::Operation &op, double begin) {
  begin = std::max(begin, readyAt(op.getOperands()));
  if (op.getNumRegions())
    begin = std::max(begin, readyAt(valuesUsedBy(&op).getArrayRef()));
  double end = TypeSwitch<mlir::Operation *, double>(&op)
                   .Case<ReadOp>([&](ReadOp read) { return visitRead(read, begin); })
                   .Case<WriteOp>([&](WriteOp write) { return visitWrite(write, begin); })
                   .Case<SortOp>([&](SortOp sort) { return visitSort(sort, begin); })
                   .Case<ForOp>([&](ForOp loop) { return visitLoop(loop, begin); })
                   .Case<TilesOp>([&](TilesOp tiles) { return visitTiles(tiles, begin); })
                   .Case<AxesOp>([&](AxesOp axes) { return visitNest(axes, begin); })
                   .Default([&](mlir::Operation *other) { return visitPlain(*other, begin); });
  for (mlir::Value result : op.getResults())
    ready[result] = end;
  return end;
}

double StatementWalk::visitPlain(mlir::Operation &op, double begin) {
  Levels own = levelsOf(op.getOperands());
  for (mlir::Value result : op.getResults())
    varies[result] = own;
  if (isOperation(&op))
    work.operations += pointsAround();
  if (op.getNumResults() && isRepeated(&op))
    return begin;
  // What varies along no axis is computed before.
  if (!own)
    return begin;
  // A tile is written out: numbers that its places give are constants.
  bool isOfAxes = !isGeneral && op.getNumResults() == 1 &&
                  op.getResult(0).getType().isIntOrIndex() &&
                  all_of(op.getOperands(), [&](mlir::Value operand) {
                    return isa<mlir::BlockArgument>(operand) || numbers.contains(operand) ||
                           operand.getDefiningOp<mlir::arith::ConstantOp>();
                  });
  if (isOfAxes) {
    numbers.insert(op.getResult(0));
    return begin;
  }
  double shared = neighboursOf(op.getOperands());
  for (mlir::Value result : op.getResults())
    sharedBy[result] = shared;
  double lanes = (isGeneral ? instructionsOf(&op) : instructionsInTiles(&op)) / shared *
                 lanesOf(own) * turnsOf(own);
  // Quotients by one divisor share its reciprocal.
  if (auto quotient = dyn_cast<mlir::arith::DivFOp>(op);
      quotient && !computed.back().insert(hash_combine(nameOf(quotient.getRhs()), 1)).second)
    lanes = lanesOf(own) * turnsOf(own);
  work.instructions += lanes * threadsInAll();
  if (op.getNumResults() == 1 && op.getResult(0).getType().isF64())
    work.doubles += lanes * threadsInAll();
  return isBeforeLoop(own) ? begin : begin + latencyOf(&op);
}

/// Neighbours along the innermost axis of a tile that have all of these values in common.
double StatementWalk::neighboursOf(mlir::ValueRange operands) const {
  if (isGeneral || levels.empty())
    return 1;
  double all = levels.back().extent;
  for (mlir::Value operand : operands)
    if (varies.lookup(operand) >> (levels.size() - 1) & 1) {
      auto known = sharedBy.find(operand);
      all = std::min(all, known == sharedBy.end() ? 1 : known->second);
    }
  return std::max(all, 1.0);
}

/// Neighbours that read one element, as its subscripts are quotients such as k // 32.
double StatementWalk::neighboursOf(ReadOp read) const {
  constexpr int64_t most = 64;
  if (isGeneral || levels.empty())
    return 1;
  mlir::Value axis = levels.back().axis;
  double all = levels.back().extent;
  for (const ValueExpr &subscript : read.getSubscriptExprs())
    for (mlir::Value operand : subscript.operands()) {
      if (operand != axis) {
        all = std::min(all, neighboursOf(mlir::ValueRange(operand)));
        continue;
      }
      auto at = [&](int64_t place) {
        return subscript.expr().evaluate([&](const IndexVar &var) -> std::optional<int64_t> {
          if (var.isSymbol())
            return std::nullopt;
          mlir::Value own = subscript.operands()[var.position()];
          return own == axis ? place : valueOf(own).value_or(0);
        });
      };
      int64_t count = 1;
      while (count < most && at(0) && at(0) == at(2 * count - 1))
        count *= 2;
      all = std::min(all, double(count));
    }
  return std::max(all, 1.0);
}

/// Whether what varies so is computed before the innermost loop.
bool StatementWalk::isBeforeLoop(Levels own) const {
  return levels.size() > ParallelOp(statement).getAxes().size() &&
         !(own >> (levels.size() - 1) & 1);
}

/// Sorts of rows by general code (codegen/simt/TeamSort.h): a step compares words of a key and a
/// number with others, and keeps the lesser or the greater.
double StatementWalk::visitSort(SortOp sort, double begin) {
  constexpr double step = 11, stepLatency = 45, merge = 21, mostWords = 4, inPlace = 60;
  auto type = cast<TglTensorType>(sort.getValues().getType());
  double length = double(type.getDims().back().getExpr().asConstant().value_or(0));
  if (length < 2)
    return begin;
  double rows = pointsAround(), team = isShared ? 1 : threads.team;
  double bits = std::ceil(std::log2(length)), steps = bits * (bits + 1) / 2,
         padded = std::exp2(bits);
  std::optional<IndexExpr> looked = elementsRead(sort);
  double read = double((looked ? looked->asConstant() : std::nullopt).value_or(int64_t(length)));
  bool isInRegisters = team >= threadsOfWarp && !type.getElementType().isF64();
  if (isInRegisters && read <= threadsOfWarp) {
    // A warp sorts 32 elements where one of them is among the least so far, and merges them.
    double groups = std::ceil(length / team), merged = 0;
    for (double group = 1; group <= std::min(groups, 4096.0); ++group)
      merged += 1 - std::pow(1 - 1 / (group + 1), threadsOfWarp);
    merged += std::log2(team / threadsOfWarp) / 2;
    work.instructions += rows * team * (merged * merge * step + groups * 8);
    return begin + merged * merge * stepLatency;
  }
  if (isInRegisters && padded / team <= mostWords) {
    work.instructions += rows * padded * steps * step;
    return begin + steps * stepLatency * std::max(1.0, padded / team / 2);
  }
  // Where the row lies: two elements and two numbers are loaded and stored by each comparison.
  double comparisons = padded / 2 * steps;
  work.instructions +=
      (isShared ? turnsOf(allLevels()) * threadsInAll() : rows) * comparisons * inPlace;
  work.cacheBytes += rows * comparisons * 4 * sectorBytes;
  return begin +
         std::max(1.0, comparisons / team) * (Latency::cache + inPlace * Latency::instruction);
}
