//===- WalkLoops.cpp - Loops and nests of a scheduled statement -----------===//
//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/simt/NestShape.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/analysis/Nest.h"
#include "passes/analysis/PrefixLoop.h"
#include "strategies/expected/Instructions.h"
#include "strategies/expected/StatementWalk.h"
#include <cmath>

using namespace llvm;
using namespace tegula;
using namespace tegula::tgl;

/// The share of the bound for the largest of several normal numbers that it is expected to reach.
static constexpr double expectedShare = 0.65;

/// Turns of a thread that do not depend on each other: those that are written out, or taken
/// together, wait together.
double StatementWalk::timeOfTurns(mlir::Operation *op, double turns, double each) const {
  constexpr double writtenOut = 8;
  bool isPlain = none_of(op->getRegion(0).front(),
                         [](mlir::Operation &nested) { return nested.getNumRegions() > 0; });
  double together = !isPlain ? 1 : isShared ? writtenOut : writtenOut / 2;
  double apart = isa<ReduceOp>(op) ? Latency::instruction : 1; // a sum's terms follow each other
  return std::ceil(turns / together) * each + turns * apart;
}

double StatementWalk::combineTeam(double team) {
  constexpr double shuffle = 28, perWarp = 6, shuffleInstructions = 2.5;
  double steps = std::log2(std::min(team, threadsOfWarp));
  double warps = team / threadsOfWarp;
  double instructions = steps * shuffleInstructions + (warps > 1 ? 12 + 2 * warps : 0);
  work.instructions += instructions * turnsOf(allLevels()) * threadsInAll();
  return steps * shuffle +
         (warps > 1 ? 2 * Latency::barrier + 2 * Latency::near + perWarp * warps : 0);
}

/// Points of a thread's tile, vectors as one, that have what varies so in common.
double StatementWalk::sharedInTile(Levels own) const {
  double points = 1;
  if (tile)
    for (auto [number, axis] : enumerate(AxesOp(tiledNest).getAxes()))
      if (number != tile->lane && (own & varies.lookup(axis)) != varies.lookup(axis))
        points *= double(tile->points[number]);
  return points;
}

/// Elements that the tile's accesses take as a vector beside the lanes: of neighbouring points, or
/// neighbouring terms of a sum.
double StatementWalk::neighboursInTile(const ValueExpr &offset, double bytes) const {
  constexpr double vectorBytes = 16;
  bool isLanes = lane && offset.uses(lane);
  if (!tile || isLanes)
    return 1;
  for (auto [number, axis] : enumerate(AxesOp(tiledNest).getAxes()))
    if (tile->sideBySide[number] && stepAlong(offset, axis) == 1)
      return std::min(double(tile->points[number]), vectorBytes / bytes);
  bool isAlongTerms = levels.back().axis != AxesOp(tiledNest).getAxes().back() &&
                      stepAlong(offset, levels.back().axis) == 1 &&
                      std::fmod(levels.back().extent, vectorBytes / bytes) == 0;
  return isAlongTerms ? vectorBytes / bytes : 1;
}

/// Makes the tiles of a nest, whose axes have been entered, what the team's threads take. Returns
/// how many a thread has.
double StatementWalk::enterTile(ParallelOp nest, const RegisterTile &own) {
  tile = own;
  tiledNest = cast<AxesOp>(nest.getOperation());
  isShared = true;
  SmallVector<ThreadAxis> lanes, others;
  double points = 1, tiles = 1;
  for (auto [number, axis] : enumerate(nest.getAxes())) {
    auto side = double(own.points[number]);
    double count = std::ceil(extents[axis] / side);
    tiles *= count;
    if (number == own.lane) {
      lane = axis;
      width = side;
      lanes.push_back({axis, count, side});
    } else {
      points *= side;
      others.push_back({axis, count, own.sideBySide[number] ? side : 1});
    }
  }
  for (Level &level : MutableArrayRef(levels).take_back(nest.getAxes().size()))
    level.turns = 1;
  double turns = std::ceil(tiles / threads.team);
  levels.back().turns = turns * points;
  lanes.append(others.rbegin(), others.rend());
  if (threads.team < threadsOfWarp) // others beside it
    lanes.append(neighbours.begin() + 1, neighbours.end());
  neighbours = std::move(lanes);
  return turns;
}

/// As DeviceEmitter::takeTogether: reductions over the same points, of which the second needs
/// nothing that is computed after the first.
bool StatementWalk::areWalkedTogether(ReduceOp first, ReduceOp second) {
  constexpr double written = 64; // shorter ones of a thread are written out one after the other
  auto one = cast<AxesOp>(first.getOperation()), other = cast<AxesOp>(second.getOperation());
  if (one.getAxes().size() != other.getAxes().size())
    return false;
  for (auto [axis, own] : zip_equal(one.getAxes(), other.getAxes()))
    if (nameOf(axis) != nameOf(own))
      return false;
  bool isOfThread = threads.team == 1 || isShared;
  if (isOfThread && (one.getAxes().size() > 1 || extents.lookup(one.getAxes()[0]) <= written))
    return false;
  DenseSet<mlir::Value> changed;
  for (mlir::Operation *op = first->getNextNode(); op != second; op = op->getNextNode())
    changed.insert_range(accessesOf(op).writes);
  bool isFree = none_of(accessesOf(second).reads,
                        [&](mlir::Value tensor) { return changed.contains(tensor); });
  return isFree && none_of(valuesUsedBy(second), [&](mlir::Value value) {
           mlir::Operation *definition = value.getDefiningOp();
           return definition && definition->getBlock() == first->getBlock() &&
                  !definition->isBeforeInBlock(first);
         });
}

/// How much longer than the mean the longest of ranges is that threads of a warp go through, where
/// data give both their ends: as if each of many had come to one of them by chance.
double StatementWalk::longestOfWarp(AxesOp axes) const {
  double ranges = threads.team < threadsOfWarp ? threadsOfWarp / threads.team : 1;
  if (threads.team == 1) // threads along the vectors of a point have its range
    ranges = lane ? std::max(1.0, threadsOfWarp * width / extents.lookup(lane)) : threadsOfWarp;
  AxisRange range = getAxisRange(axes, unsigned(axes.getAxes().size() - 1));
  if (!usesData(range.lo) || !usesData(range.hi) || ranges <= 1)
    return 1;
  double mean = std::max(levels.back().extent, 1.0);
  return 1 + std::sqrt(2 * std::log(ranges) / mean) * expectedShare;
}

double StatementWalk::visitNest(AxesOp axes, double begin) {
  constexpr double writtenOut = 8;
  size_t outer = levels.size();
  auto savedLane = std::pair(lane, width);
  auto savedNeighbours = neighbours;
  bool wasShared = isShared;
  double wasDealing = dealing, team = dealing;
  auto parallel = dyn_cast<ParallelOp>(axes.getOperation());
  bool inParts = isGeneral && threads.team > 1 && !isShared && parallel && dealsToParts(parallel);
  bool isDealtOut = threads.team > 1 && !isShared && !isa<ScanOp>(axes.getOperation()) &&
                    !(parallel && runsSerially(parallel));
  for (auto [axis, range] : zip_equal(axes.getAxes(), getAxisRanges(axes)))
    enter(axis, range, axes);
  double points = 1;
  for (Level &level : MutableArrayRef(levels).drop_front(outer))
    points *= level.extent;
  std::optional<RegisterTile> ownTile = isGeneral && threads.team > 1 && !isShared && parallel
                                            ? registerTileOf(parallel)
                                            : std::nullopt;
  if (!lane && !inParts && !ownTile)
    if (std::optional<LaneChoice> choice = threads.laneOf(axes)) {
      lane = axes.getAxes()[choice->axis];
      width = choice->width;
      for (Level &level : levels)
        if (level.axis == lane)
          level.turns = std::ceil(level.extent / width);
    }
  double turns = std::max(1.0, points / (lane != savedLane.first ? width : 1));
  if (double longest = isGeneral && !axes.getAxes().empty() ? longestOfWarp(axes) : 1;
      longest > 1) {
    turns *= longest;
    levels.back().turns *= longest;
  }
  if (threads.columnSplit > 1 && isa<ReduceOp>(axes.getOperation()) && levels.size() > outer) {
    turns = std::ceil(turns / threads.columnSplit);
    levels.back().turns = std::ceil(levels.back().turns / threads.columnSplit);
  }
  if (inParts) { // each point to a part, whose threads the nests inside are dealt out to
    dealing = threadsOfPart(parallel, unsigned(team),
                            [&](AxesOp inner) { return threads.laneOf(inner); });
    team /= dealing;
  }
  if (ownTile) {
    turns = enterTile(parallel, *ownTile);
  } else if (isDealtOut) {
    isShared = !inParts;
    turns = std::ceil(turns / team);
    for (Level &level : MutableArrayRef(levels).drop_front(outer))
      level.turns = 1;
    if (levels.size() > outer)
      levels.back().turns = turns;
    SmallVector<ThreadAxis> own;
    if (lane && lane != savedLane.first)
      own.push_back({lane, extents[lane] / width, width});
    for (mlir::Value axis : reverse(axes.getAxes()))
      if (axis != lane)
        own.push_back({axis, extents[axis], 1});
    // A team that is part of a warp has others beside it.
    if (inParts)
      own.insert(own.begin(), {nullptr, dealing, 1});
    else if (!own.empty() && team < threadsOfWarp) {
      own.front().points = std::min(own.front().points, team);
      own.append(neighbours.begin() + 1, neighbours.end());
    }
    neighbours = std::move(own);
  }
  computed.emplace_back();
  LaunchWork before = work;
  auto reduce = dyn_cast<ReduceOp>(axes.getOperation());
  if (reduce && isGeneral)
    for (auto sibling : axes->getBlock()->getOps<ReduceOp>())
      if (auto found = computedInSums.find(sibling);
          found != computedInSums.end() && areWalkedTogether(sibling, reduce))
        computed.back().insert_range(found->second);
  double end = visitBlock(axes->getRegion(0).front(), begin);
  if (reduce) {
    bool addsProduct =
        tile && isa_and_nonnull<mlir::arith::MulFOp, mlir::arith::AddFOp, mlir::arith::SubFOp>(
                    reduce.getReduced().getDefiningOp());
    if (!addsProduct)
      work.instructions += turnsOf(allLevels()) * lanesOf(allLevels()) * threadsInAll();
    work.operations += pointsAround();
    if (matchContraction(reduce)) {
      work.products += pointsAround();
      if (rowsTogether)
        keepFactors(before, pointsAround());
    }
  }
  double total = begin + (ownTile ? turns * (end - begin) : timeOfTurns(axes, turns, end - begin));
  DenseSet<size_t> inside = computed.pop_back_val();
  if (reduce)
    computedInSums[reduce] = inside;
  if ((turns <= writtenOut || (tile && reduce)) && isGeneral) // a tile walks its sums together
    computed.back().insert_range(inside);
  levels.truncate(outer);
  std::tie(lane, width) = savedLane;
  neighbours = std::move(savedNeighbours);
  isShared = wasShared;
  dealing = wasDealing;
  if (ownTile)
    tile.reset();
  if (isDealtOut)
    total += reduce ? combineTeam(team) : team > threadsOfWarp ? Latency::barrier : 0;
  for (mlir::Value result : axes->getResults())
    varies[result] = allLevels();
  if (!reduce)
    for (mlir::Value tensor : accessesOf(axes).writes)
      ready[tensor] = total;
  return total;
}

double StatementWalk::visitLoop(ForOp loop, double begin) {
  if (loop->hasAttr(seldomAttribute)) {
    for (auto [result, init] : zip_equal(loop.getResults(), loop.getInits())) {
      varies[result] = allLevels();
      ready[result] = std::max(begin, ready.lookup(init));
    }
    return begin;
  }
  size_t outer = levels.size();
  enter(loop.getLoopVar(), {loop.getLowExpr(), loop.getHighExpr()}, loop);
  double turns = extents[loop.getLoopVar()];
  bool isScan = threads.team > 1 && !isShared && matchPrefixLoop(loop);
  bool wasShared = isShared;
  double scanned = 0;
  if (isScan) {
    isShared = true;
    // Vectors of the row (TeamScan.cpp).
    constexpr double vector = 4;
    turns = levels.back().turns = std::ceil(turns / threads.team);
    scanned = std::ceil(turns / vector);
    neighbours.insert(neighbours.begin(), {loop.getLoopVar(), extents[loop.getLoopVar()], 1});
  }
  for (mlir::Value carried : loop.getIterArgs()) {
    varies[carried] = allLevels();
    ready[carried] = begin;
  }
  computed.emplace_back();
  std::optional<LoadsAhead> outerLoads = std::exchange(loadsAhead, std::nullopt);
  if (loadsStepsAhead(loop))
    loadsAhead = LoadsAhead{loop.getLoopVar(), levels.size() - 1};
  double end = visitBlock(loop.getBody().front(), begin);
  computed.pop_back();
  end = std::max(end, begin + waitForLoads());
  loadsAhead = outerLoads;
  double total = begin + turns * (end - begin);
  std::optional<SteppedLoop> stepped = isScan ? std::nullopt : matchSteppedLoop(loop);
  if (stepped && (isShared || threads.team == 1)) {
    // What does not need the step before is done for several (DeviceEmitter::emitFor).
    double after = 0;
    for (mlir::Operation *op : stepped->after)
      after += isa<WriteOp, ForOp>(op) ? 0 : latencyOf(op);
    if (unsigned together = stepsTogether(*stepped, bool(lane)); together > 1)
      total =
          begin + turns * after + std::ceil(turns / together) * std::max(end - begin - after, 0.0);
  }
  levels.truncate(outer);
  if (isScan) {
    neighbours.erase(neighbours.begin());
    total = begin + scanned * (end - begin + combineTeam(threads.team));
  }
  isShared = wasShared;
  for (mlir::Value result : loop.getResults())
    varies[result] = allLevels();
  for (mlir::Value tensor : accessesOf(loop).writes)
    ready[tensor] = total;
  return total;
}

double StatementWalk::visitTiles(TilesOp tiles, double begin) {
  size_t outer = levels.size();
  AxisRange range = {tiles.getLowExpr(), tiles.getHighExpr()};
  enter(tiles.getTileLow(), range, tiles);
  double size = double(tiles.getSize().value_or(0));
  Level &level = levels.back();
  if (size > 0)
    level.extent = level.turns = std::max(1.0, std::ceil(level.extent / size));
  else
    size = level.extent, level.extent = level.turns = 1;
  extents[tiles.getTileLow()] = level.extent;
  varies[tiles.getTileHigh()] = varies[tiles.getTileLow()];
  int64_t low = valueOf(range.lo).value_or(0);
  middles[tiles.getTileLow()] = low;
  middles[tiles.getTileHigh()] = low + int64_t(size);
  double turns = level.turns;
  for (mlir::Value carried : tiles.getIterArgs()) {
    varies[carried] = allLevels();
    ready[carried] = begin;
  }
  computed.emplace_back();
  double end = visitBlock(tiles.getBody().front(), begin);
  computed.pop_back();
  levels.truncate(outer);
  for (mlir::Value result : tiles.getResults())
    varies[result] = allLevels();
  double total = begin + turns * (end - begin);
  for (mlir::Value tensor : accessesOf(tiles).writes)
    ready[tensor] = total;
  return total;
}

/// Inside of a product of tensor cores: two reads, a multiplication and an addition for each point
/// are not lanes' work, and what is computed of a factor is done once for rows that share it.
void StatementWalk::keepFactors(const LaunchWork &before, double points) {
  double inside = work.instructions - before.instructions - 2 * points;
  work.instructions =
      before.instructions + (*rowsTogether > 0 ? std::max(inside, 0.0) / *rowsTogether : 0);
  work.sectors = before.sectors;
  work.cacheBytes = before.cacheBytes;
  work.doubles = before.doubles;
}
