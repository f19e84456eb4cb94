//===- DeviceWindows.cpp - Neighbouring windows done by one thread --------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Windows of points one below the other share most of their rows. A thread takes several such points, along an axis
// other than that along which threads are neighbours in memory, and all their windows are written out together: what
// several of them read is one load, and what several of them add up or compare, row by row, is computed once. LLVM
// finds both, as the expressions are the same.
//
//===----------------------------------------------------------------------===//
#include "codegen/DeviceEmitter.h"
#include "ir/TglUtils.h"

using namespace llvm;
using namespace tegula;

/// Terms of all windows of a tile: more only fill the instruction cache.
static constexpr int64_t mostTerms = 256;
/// Loads of a tile, each of which may need a register: 81 made an average pooling of 3 x 3 x 3 at stride 2 6 % slower.
static constexpr int64_t mostLoads = 72;
/// Threads that are left to hide what a load takes.
static constexpr int64_t enoughThreads = 1 << 15;

/// Reads of one element of a tensor for each point and term: where it moves with them.
static std::optional<int64_t> stepOf(tgl::ReadOp read, mlir::Value axis) {
  return tgl::stepAlong(tgl::elementOffset(read.getTensorType(), read.getSubscriptExprs()), axis);
}

/// Loads that the windows of so many points side by side along `axis` need; nothing where that is not known.
static std::optional<int64_t> countLoads(tgl::ReduceOp reduce, mlir::Value axis, int64_t points) {
  auto nest = cast<tgl::AxesOp>(reduce.getOperation());
  int64_t loads = 0;
  for (mlir::Operation &nested : reduce.getBody().front()) {
    auto read = dyn_cast<tgl::ReadOp>(nested);
    if (!read)
      continue;
    std::optional<int64_t> step = stepOf(read, axis);
    if (!step || !read.getExactExprs().empty() || read.getGuard() || read.getChecked())
      return std::nullopt;
    SmallVector<int64_t> places{0};
    auto spread = [&](int64_t extent, int64_t apart) {
      SmallVector<int64_t> more;
      for (int64_t place : places)
        for (int64_t n = 0; n < extent; ++n)
          more.push_back(place + n * apart);
      places = std::move(more);
    };
    for (auto [number, own] : enumerate(reduce.getAxes())) {
      std::optional<int64_t> ownStep = stepOf(read, own);
      if (!ownStep)
        return std::nullopt;
      spread(*tgl::knownPoints(nest, unsigned(number)), *ownStep);
    }
    spread(points, *step);
    sort(places);
    loads += std::unique(places.begin(), places.end()) - places.begin();
  }
  return loads;
}

void DeviceEmitter::planWindows(tgl::ParallelOp op, ArrayRef<unsigned> outer, const std::optional<LaneChoice> &lane) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  windows = WindowTile();
  runs.clear();
  std::optional<int64_t> all = tgl::knownPoints(axes);
  if (!all || options.checked || shape.sharers > 1 || outer.size() != axes.getAxes().size())
    return;
  SmallVector<tgl::ReduceOp> reductions(op.getBody().getOps<tgl::ReduceOp>());
  int64_t terms = 0;
  for (tgl::ReduceOp reduce : reductions) {
    std::optional<int64_t> own = tgl::knownPoints(cast<tgl::AxesOp>(reduce.getOperation()));
    bool isPlain = all_of(reduce.getBody().front(), [](mlir::Operation &nested) {
      return !nested.getNumRegions() && !isa<mlir::math::MathDialect>(nested.getDialect());
    });
    if (!own || *own < 2 || *own > mostTerms || !isPlain || !hasRowShape(cast<tgl::AxesOp>(reduce.getOperation())))
      return;
    terms += *own;
  }
  bool isOther = any_of(op.getBody().front(), [](mlir::Operation &nested) {
    return isa<tgl::TempOp, tgl::SortOp>(nested) || (nested.getNumRegions() && !isa<tgl::ReduceOp>(nested));
  });
  if (reductions.empty() || isOther)
    return;
  int64_t best = 0, fewest = terms; // loads saved of each hundred; for the points of a tile
  for (unsigned axis : outer) {
    mlir::Value variable = axes.getAxes()[axis];
    int64_t extent = *tgl::knownPoints(axes, {axis});
    // Threads stay neighbours in memory.
    bool isAcross = !(lane && lane->axis == axis);
    op.walk([&](mlir::Operation *nested) {
      std::optional<int64_t> step = 0;
      if (auto read = dyn_cast<tgl::ReadOp>(nested))
        step = stepOf(read, variable);
      else if (auto write = dyn_cast<tgl::WriteOp>(nested))
        step = tgl::stepAlong(tgl::elementOffset(write.getTensorType(), write.getSubscriptExprs()), variable);
      constexpr int64_t line = 32; // elements
      isAcross &= step && (*step == 0 || std::abs(*step) >= line);
    });
    for (int64_t points : {8, 4, 2}) {
      if (!isAcross || extent < 2 * points || terms * points > mostTerms || *all / points < enoughThreads)
        continue;
      int64_t loads = 0, apart = 0;
      for (tgl::ReduceOp reduce : reductions) {
        std::optional<int64_t> together = countLoads(reduce, variable, points), one = countLoads(reduce, variable, 1);
        if (!together || !one)
          return;
        loads += *together;
        apart += *one * points;
      }
      int64_t saved = 100 - 100 * loads / apart;
      if (loads > mostLoads || saved < 20 || saved <= best)
        continue;
      best = saved;
      fewest = loads;
      windows = {axis, unsigned(points)};
    }
  }
  unsigned innermost = axes.getAxes().size() - 1;
  // Elements of vectors that begin anywhere are loaded one by one; what points of several lines share is fewer still.
  if (lane && lane->axis == innermost && windows.points == 1) {
    fewest = 0;
    for (tgl::ReduceOp reduce : reductions)
      fewest += 2 * countLoads(reduce, axes.getAxes()[innermost], lane->width).value_or(0);
    planRuns(op, outer, fewest, lane->width);
  } else if (!lane && *all / 4 >= enoughThreads && 4 * terms <= mostTerms) {
    planRuns(op, outer, fewest, windows.points);
  }
}

/// A window, row by row: rows that several windows share are then the same expression. Products with weights, which
/// differ from row to row, are added up in order.
Emitter::Accumulator DeviceEmitter::emitWindowRows(tgl::ReduceOp op) {
  auto nest = cast<tgl::AxesOp>(op.getOperation());
  mlir::Value axis = statement.getAxes()[windows.axis];
  bool isShared = all_of(op.getBody().front(), [&](mlir::Operation &nested) {
    auto read = dyn_cast<tgl::ReadOp>(nested);
    return !read || stepOf(read, axis) != 0;
  });
  SmallVector<unsigned> all = to_vector(seq<unsigned>(0, op.getAxes().size()));
  int64_t row = isShared ? *tgl::knownPoints(nest, {all.back()}) : *tgl::knownPoints(nest);
  Accumulator total;
  for (int64_t point = 0, points = *tgl::knownPoints(nest); point < points; point += row) {
    Accumulator part = initialAccumulator(op);
    if (lanes)
      part = splatAccumulator(op, std::move(part), lanes->width);
    for (int64_t term = point; term < point + row; ++term)
      setAxes(nest, all, i64(term), std::nullopt, [&] { part = emitReducePoint(op, std::move(part)); });
    total = point ? combine(op, total, part) : part;
  }
  return total;
}

/// The points of a tile: together where all of them exist and all that their windows read, else one by one.
void DeviceEmitter::emitWindows(tgl::ParallelOp op) {
  auto axes = cast<tgl::AxesOp>(op.getOperation());
  mlir::Value axis = op.getAxes()[windows.axis];
  int64_t extent = *tgl::knownPoints(axes, {windows.axis}), points = windows.points;
  Value *low = emitIndex(lowOf(axes, windows.axis)), *high = emitIndex(highOf(axes, windows.axis));
  Value *first = runs.empty() ? values[axis] : emitRunStart(op, values[axis]);
  Value *last = b.CreateNSWAdd(first, i64(points - 1));
  Value *inside = extent % points || windows.slack ? b.CreateICmpSLT(last, high) : nullptr;
  if (windows.slack)
    inside = emitAnd(inside, b.CreateICmpSGE(first, low));
  DenseSet<mlir::Operation *> unchecked;
  bool isKnown = true;
  for (tgl::ReduceOp reduce : op.getBody().getOps<tgl::ReduceOp>())
    for (Value *corner : {first, last}) {
      values[axis] = corner;
      SmallVector<mlir::Operation *> free;
      inside = emitAnd(inside, emitInterior(reduce, free));
      unchecked.insert_range(free);
      reduce.walk([&](tgl::ReadOp read) { isKnown &= !read.getFill() || unchecked.contains(read); });
    }
  if (!isKnown)
    inside = b.getFalse();
  if (!runs.empty()) {
    values[axis] = first;
    inside = emitAnd(inside, emitRunsInside(op));
  }
  auto together = [&] {
    insideReads.insert_range(unchecked);
    inWindows = true;
    if (!runs.empty())
      emitRuns(op, first);
    for (int64_t point = 0; runs.empty() && point < points; ++point) {
      values[axis] = b.CreateNSWAdd(first, i64(point));
      emitBlock(op.getBody().front());
    }
    inWindows = false;
    insideReads.clear();
  };
  if (!inside)
    return together();
  emitIf(inside, together);
  emitIf(b.CreateNot(inside), [&] {
    Value *end = b.CreateBinaryIntrinsic(Intrinsic::smin, b.CreateNSWAdd(first, i64(points)), high);
    nextLoopStays = true;
    if (windows.slack)
      first = b.CreateBinaryIntrinsic(Intrinsic::smax, first, low);
    emitLoop(first, end, i64(1), {}, [&](Value *position, ArrayRef<Value *>) {
      values[axis] = position;
      emitBlock(op.getBody().front());
      return SmallVector<Value *>();
    });
  });
}
